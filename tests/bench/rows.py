"""What a row of the table is: its words, its floor, what it needs, and the function that measures it."""
import dataclasses
import math
import statistics

ALL = []  # every row, in the order of the table


class Skip(Exception):
    """A row that cannot be measured here; the text says what is missing."""


@dataclasses.dataclass(frozen=True)
class Floor:
    """The least or the most a figure may be. by_isa: another least for each instruction set. A floor found with AVX-512
    only (wide=True) is carried to other machines by the ratio of the table's floors, the one thing known for all three."""
    low: float = -math.inf
    high: float = math.inf
    by_isa: dict = dataclasses.field(default_factory=dict)
    wide: bool = False

    def on(self, isa):
        """(low, high, remark) on a machine with this instruction set; arm64 counts as what has no wider set."""
        isa = isa if isa in TABLE else "base"
        if self.by_isa:
            return self.by_isa[isa], self.high, ""
        if self.wide and isa != "avx512":
            scale = TABLE[isa] / TABLE["avx512"]
            return self.low * scale, self.high, f"floor {self.low:g} is for AVX-512; judged by ×{TABLE[isa]:g}/{TABLE['avx512']:g}"
        return self.low, self.high, ""


TABLE = {"avx512": 0.22, "avx2": 0.17, "base": 0.07}  # of memset: tables of f32
RECORD = Floor()  # no floor: the figure is there to be read


def at_least(low, wide=False):
    return Floor(low=low, wide=wide)


def at_most(high):
    return Floor(high=high)


def between(low, high):
    return Floor(low=low, high=high)


def of_isa(**low):
    return Floor(by_isa=low)


@dataclasses.dataclass
class Row:
    name: str
    group: str
    what: str
    floor: Floor
    reached: str
    needs: tuple
    quick: bool
    measure: object  # run -> Outcome


def row(name, what, floor, reached="", needs=(), quick=False):
    """Declares the function below it as a row of the table; quick: also of `make bench-quick`."""
    def declare(measure):
        ALL.append(Row(name, measure.__module__, what, floor, reached, tuple(needs), quick, measure))
        return measure
    return declare


@dataclasses.dataclass
class Outcome:
    """Samples in pairs, ours and theirs of one round each, and how a pair becomes the figure that is judged:
    `rate`: ours/theirs of speeds (or of anything, where the floor is a most); `time`: theirs/ours of times, how many
    times faster; `alone`: ours, with nothing to set it against. value: where the figure is none of these."""
    ours: list
    theirs: list
    unit: str
    kind: str
    against: str = ""
    value: float = None
    note: str = ""

    def figures(self):
        if self.value is not None:
            return [self.value]
        if self.kind == "alone":
            return list(self.ours)
        pairs = zip(self.ours, self.theirs)
        return [o / t for o, t in pairs] if self.kind == "rate" else [t / o for o, t in pairs]

    def figure(self):
        """The median over the rounds: of ratios, not the ratio of medians, so that a slow minute touches both sides."""
        return statistics.median(self.figures())


def rate(ours, theirs, unit, against, note=""):
    return Outcome(list(ours), list(theirs), unit, "rate", against, None, note)


def time_of(ours, theirs, against, note=""):
    """Times in seconds, kept in milliseconds."""
    return Outcome([1e3 * t for t in ours], [1e3 * t for t in theirs], "ms", "time", against, None, note)


def alone(ours, unit, value=None, note=""):
    return Outcome(list(ours), [], unit, "alone", "", value, note)
