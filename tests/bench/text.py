"""Rows of text: our writer and reader of numbers alone (bench_numbers), a whole answer where text is copied (bench_answers)."""
from core import of_limit
from rows import LIMIT, PEER, Skip, row, speed


def numbers(run):
    """Each process is the median of fifteen rounds already, and takes seconds."""
    return [run.numbers() for _ in range(run.rounds(3, 1))]


def of_numbers(run, ours, theirs, against):
    """Millions of numbers per second, by the lines of bench_numbers."""
    found = run.once(numbers)
    if not {ours, theirs} <= found[0].keys():
        raise Skip(f"bench_numbers prints no line {ours!r} or {theirs!r}")
    return speed(*([each[name] for each in found] for name in (ours, theirs)), "M/s", against)


@row("json", "JSON out, shortest f32", PEER, quick=True)
def json_shortest(run):
    return of_numbers(run, "print f32 shortest", "jansson build and dump, 9 digits", "jansson")


@row("json_digits", "JSON out, 4 digits", PEER, quick=True)
def json_digits(run):
    return of_numbers(run, "print f32, 4 digits", "snprintf %.4f", "snprintf")


@row("json_in", "JSON number arrays in", PEER, quick=True)
def json_in(run):
    return of_numbers(run, "read shortest f32", "jansson", "jansson")


@row("json_map", "JSON out, Toeplitz map 8×1024×1024, the whole answer", LIMIT, quick=True)
def json_map(run):
    return of_limit(run, "json_map", "memcpy", (5, 3), 5)
