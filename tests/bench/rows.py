"""What a row is: its words, its sort, what it needs, and the function that measures it."""
import dataclasses
import statistics

ALL = []  # every row, in the order of the table

# What a row is set against. A peer is another program with the same task: we are ahead of it or behind. A limit is a measure of the machine
# (a copy, bare products, a file that is ready to be sent): it shows how much is left, and judges nothing. All rows can be set against an
# earlier commit of ours, and those of the third sort against nothing else.
PEER, LIMIT, COMMIT = "peer", "limit", "commit"


class Skip(Exception):
    """A row that cannot be measured here; the text says what is missing."""


@dataclasses.dataclass
class Row:
    name: str
    group: str
    what: str
    sort: str
    needs: tuple
    quick: bool
    measure: object  # run -> Outcome


def group(group_name):
    """What adds rows to a group; quick: also of `make bench-quick`."""
    def row(name, what, sort, measure, needs=(), quick=False):
        ALL.append(Row(name, group_name, what, sort, tuple(needs), quick, measure))
    return row


@dataclasses.dataclass
class Outcome:
    """Samples in pairs, ours and theirs of one round each. theirs is empty where only our side was measured."""
    ours: list
    theirs: list
    unit: str
    against: str = ""
    is_cost: bool = False  # less is better: time, memory

    def ratios(self):
        """How many times as good as theirs, of each pair: 2 is twice the speed, or half the cost."""
        return [t / o if self.is_cost else o / t for o, t in zip(self.ours, self.theirs)]

    def figure(self):
        """The median of the ratios, not the ratio of medians, so that a slow minute affects both sides."""
        return statistics.median(self.ratios())

    def spread(self):
        """The quartiles of the ratios."""
        ratios = sorted(self.ratios())
        quarter = len(ratios) // 4
        return ratios[quarter], ratios[-1 - quarter]


def speed(ours, theirs, unit, against):
    return Outcome(list(ours), list(theirs), unit, against)


def cost(ours, theirs, unit, against=""):
    return Outcome(list(ours), list(theirs), unit, against, is_cost=True)


def times(ours, theirs, against):
    """Of seconds, kept in milliseconds."""
    return cost([1e3 * t for t in ours], [1e3 * t for t in theirs], "ms", against)
