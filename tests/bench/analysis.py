"""Rows of analysis: metrics that compare all pairs of rows, beside the bare product of the Gram matrix in the same process. One
thread, thread CPU time."""
from rows import LIMIT, row, times


def of_product(run, metric, scheme):
    """16384 rows of 512 numbers are the largest analysis of one configuration."""
    pairs = [run.program("bench_analysis", metric, scheme, 512, 4096 if run.quick else 16384).split() for _ in range(run.rounds(3, 1))]
    return times(*([float(pair[i]) for pair in pairs] for i in (0, 1)), "dgemm")


@row("unique", "nearest two of 16384×512 sinusoidal rows (quick: of 4096), against dgemm of the Gram matrix", LIMIT, quick=True)
def unique(run):
    return of_product(run, "unique", "sinusoidal")


@row("unique_equal", "the same of rows that are all equal, where no pair can be given up", LIMIT)
def unique_equal(run):
    return of_product(run, "unique", "none")


@row("similarity", "similarity of 16384×512 rows by distance, against dgemm of the Gram matrix", LIMIT)
def similarity(run):
    return of_product(run, "similarity", "sinusoidal")
