"""Rows of text: our writer and reader of numbers alone (bench_numbers), a whole answer where text is copied (bench_answers)."""
from rows import Skip, alone, reached, row


def of_numbers(run, name):
    """Millions of numbers per second; each process is the median of fifteen rounds already, and takes seconds."""
    found = run.once(lambda run: [run.numbers() for _ in range(run.rounds(3, 1))])
    if name not in found[0]:
        raise Skip(f"bench_numbers prints no line {name!r}")
    return alone([numbers[name] for numbers in found], "M/s")


@row("json", "JSON out, shortest f32", reached(avx2=(195, 230), avx512=115), quick=True)
def json_shortest(run):
    return of_numbers(run, "print f32 shortest")


@row("json_digits", "JSON out, 4 digits", reached(avx2=298), quick=True)
def json_digits(run):
    return of_numbers(run, "print f32, 4 digits")


@row("json_map", "JSON out, Toeplitz map 8×1024×1024, the whole answer", reached(avx2=28.3), quick=True)
def json_map(run):
    found = [run.answer("json_map", 5) for _ in range(run.rounds(5))]
    return alone([a.bytes / a.ours / 1e9 for a in found], "GB/s")


@row("json_in", "JSON number arrays in", reached(avx2=63.6), quick=True)
def json_in(run):
    return of_numbers(run, "read shortest f32")
