"""What a row of the table is: its words, its floor, what it needs, and the function that measures it."""
import dataclasses
import math
import statistics

ALL = []  # every row, in the order of the table


class Skip(Exception):
    """A row that cannot be measured here; the text says what is missing."""


CLASSES = {"avx2": "AVX2", "avx512": "AVX-512"}  # instruction sets with figures of their own
SLACK = 0.1  # what a figure may lose before the row is short


@dataclasses.dataclass(frozen=True)
class Floor:
    """What was reached on a machine of each class. A tenth less, of the worst where runs differ, is the least a speed may
    be; a tenth more is the most a cost may be. So `short` means that something got worse."""
    reached: dict = dataclasses.field(default_factory=dict)  # class: figures of one or more runs
    is_cost: bool = False
    law: tuple = ()  # (low, high) of a figure that is the same on every machine

    def on(self, isa):
        """(low, high, what was reached, remark) on a machine with this instruction set."""
        if self.law:
            return *self.law, "", ""
        figures = self.reached.get(isa) or (self.reached.get("avx2") if isa in CLASSES else None)
        if not figures:
            return -math.inf, math.inf, "", f"no figures of {isa}" if self.reached else ""
        low = -math.inf if self.is_cost else min(figures) * (1 - SLACK)
        high = max(figures) * (1 + SLACK) if self.is_cost else math.inf
        return low, high, span(figures), "" if isa in self.reached else f"no figure of {CLASSES[isa]} yet: AVX2's floor"


def span(figures):
    """"1.12", or "0.59–0.73" where runs differ."""
    return "–".join(f"{figure:.3g}" for figure in sorted(set(figures)))


def of_classes(classes):
    if not classes.keys() <= CLASSES.keys() or "avx2" not in classes:
        raise ValueError(f"figures of {', '.join(classes)}; allowed: {', '.join(CLASSES)}, and avx2 is needed")
    return {isa: figures if isinstance(figures, tuple) else (figures,) for isa, figures in classes.items()}


def reached(**classes):
    """A speed, of which more is better: reached(avx2=1.54, avx512=1.29); by several runs: avx2=(0.508, 0.73)."""
    return Floor(of_classes(classes))


def reached_cost(**classes):
    """Time, memory, processor time: less is better."""
    return Floor(of_classes(classes), is_cost=True)


def law(low, high):
    """Neither speed nor cost: how time grows, what may not change it."""
    return Floor(law=(low, high))


RECORD = Floor()  # no floor: the figure is there to be read


@dataclasses.dataclass
class Row:
    name: str
    group: str
    what: str
    floor: Floor
    needs: tuple
    quick: bool
    measure: object  # run -> Outcome


def row(name, what, floor, needs=(), quick=False):
    """Declares the function below it as a row of the table; quick: also of `make bench-quick`."""
    def declare(measure):
        ALL.append(Row(name, measure.__module__, what, floor, tuple(needs), quick, measure))
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
