"""The language of the formulas of GET /schemes/NAME (core/formula.c says what it is), evaluated in arithmetic of 50 digits: the text itself is what
is computed, so a wrong sign in it is a wrong number here.

    rules = Formula(lines, values)             lines: the `formula` of a scheme, and of a scaling; values: fields and tensors of a request
    rules.value("bias", h=2, q=7, k=3)         what a line defines, at a point
"""
import re

import mpmath

CONTEXT = mpmath.MPContext()
CONTEXT.prec = 180
NEAR = CONTEXT.mpf(10) ** -35  # of an integer: a floor of logarithms whose quotient is one

TOKEN = re.compile(r"\s*(\d[\d.]*|[A-Za-z][\w']*|!=|<=|>=|.)")
LEVELS = [("or",), ("and",), ("is", "=", "!=", "<", "<=", ">", ">="), ("+", "-"), ("*", "/", "mod")]


def divide(a, b):
    whole = isinstance(a, int) and isinstance(b, int) and a % b == 0
    return a // b if whole else CONTEXT.mpf(a) / b


def rounded(x, function):
    near = CONTEXT.nint(x)
    return int(near if abs(x - near) < NEAR * max(1, abs(x)) else function(x))


def power(a, b):
    return a ** b if isinstance(a, int) and isinstance(b, int) and b >= 0 else CONTEXT.mpf(a) ** b


def sigmoid(x):
    return 1 / (1 + CONTEXT.exp(-x))


OPERATORS = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": divide, "^": power,
             "mod": lambda a, b: a - b * rounded(divide(a, b), CONTEXT.floor), "=": lambda a, b: a == b, "!=": lambda a, b: a != b,
             "<": lambda a, b: a < b, "<=": lambda a, b: a <= b, ">": lambda a, b: a > b, ">=": lambda a, b: a >= b}
FUNCTIONS = {"sin": CONTEXT.sin, "cos": CONTEXT.cos, "exp": CONTEXT.exp, "ln": CONTEXT.ln, "log2": lambda x: CONTEXT.log(x, 2), "sqrt": CONTEXT.sqrt,
             "abs": abs, "min": min, "max": max, "floor": lambda x: rounded(x, CONTEXT.floor), "ceil": lambda x: rounded(x, CONTEXT.ceil),
             "sign": CONTEXT.sign, "tanh": CONTEXT.tanh, "sigmoid": sigmoid, "relu": lambda x: max(x, 0), "identity": lambda x: x,
             "gelu": lambda x: x * (1 + CONTEXT.erf(x / CONTEXT.sqrt(2))) / 2}


class Parser:
    """Functions of (rules, bound), where bound has the variables of the point, of sums and of what is being defined."""

    def __init__(self, text):
        self.tokens, self.at = TOKEN.findall(text) + [""], 0
        self.names, self.sums = set(), set()

    def next(self):
        return self.tokens[self.at]

    def take(self, *words):
        found = self.next() in words
        self.at += found
        return found

    def expect(self, word):
        assert self.take(word), f"{self.next()!r}, not {word!r}, in {' '.join(self.tokens)}"

    def line(self):
        """(symbol, variables, term, names in it, variables of its sums)"""
        symbol, variables = self.tokens[self.at], []
        self.at += 1
        if self.take("["):
            while not variables or self.take(","):
                variables.append(self.next())
                self.at += 1
            self.expect("]")
        self.expect("=")
        term = self.term()
        self.expect("")
        return symbol, variables, term, self.names, self.sums

    def term(self, level=0):
        if level == len(LEVELS):
            return self.factor()
        left = self.term(level + 1)
        while self.next() in LEVELS[level]:
            word = self.next()
            self.at += 1
            left = self.joined(word, left, level)
        return left

    def joined(self, word, left, level):
        if word == "is":
            name = self.next()
            self.at += 1
            return (lambda rules, bound: left(rules, bound) is not None) if name == "given" else (lambda rules, bound: left(rules, bound) == name)
        right = self.term(level + 1)
        if word == "or":
            return lambda rules, bound: left(rules, bound) or right(rules, bound)
        if word == "and":
            return lambda rules, bound: left(rules, bound) and right(rules, bound)
        operator, compares = OPERATORS[word], level == 2

        def both(rules, bound):
            a, b = left(rules, bound), right(rules, bound)
            return False if compares and (a is None or b is None) else operator(a, b)  # a field without a value fulfils nothing
        return both

    def factor(self):
        if self.take("-"):
            inner = self.factor()
            return lambda rules, bound: -inner(rules, bound)
        base = self.atom()
        if not self.take("^"):
            return base
        exponent = self.factor()
        return lambda rules, bound: power(base(rules, bound), exponent(rules, bound))

    def many(self, end):
        found = [self.term()]
        while self.take(","):
            found.append(self.term())
        self.expect(end)
        return found

    def atom(self):
        word = self.next()
        self.at += 1
        if word == "(":
            inner = self.term()
            self.expect(")")
            return inner
        if word == "{":
            return self.choice()
        if word[0].isdigit():
            number = CONTEXT.mpf(word) if "." in word else int(word)
            return lambda rules, bound: number
        assert word[0].isalpha(), word
        self.names.add(word)
        if word == "sum" and self.take("("):
            return self.sum()
        if self.take("("):
            arguments = self.many(")")
            return lambda rules, bound: rules.function(word)(*(a(rules, bound) for a in arguments))
        if self.take("["):
            arguments = self.many("]")
            return lambda rules, bound: rules.element(word, [a(rules, bound) for a in arguments], bound)
        return lambda rules, bound: rules.name(word, bound)

    def choice(self):
        cases, last = [], None
        while last is None:
            term = self.term()
            if self.take("if"):
                cases.append((self.term(), term))
                self.expect(";")
            else:
                last = term
        self.expect("}")

        def chosen(rules, bound):
            return next((term for condition, term in cases if condition(rules, bound)), last)(rules, bound)
        return chosen

    def sum(self):
        variable = self.next()
        self.at += 1
        self.sums.add(variable)
        self.expect(",")
        first, last, term = self.many(")")

        def added(rules, bound):
            return sum(term(rules, {**bound, variable: i}) for i in range(int(first(rules, bound)), int(last(rules, bound)) + 1))
        return added


PARSED = {}


def parsed(expression):
    if expression not in PARSED:
        PARSED[expression] = Parser(expression).line()
    return PARSED[expression]


def exact(value):
    """A number of a request: an integer, or a double, exactly; what is no number as it is."""
    return CONTEXT.mpf(float(value)) if isinstance(value, float) or type(value).__module__ == "numpy" and not hasattr(value, "__len__") else value


class Formula:
    """A line takes the place of one before it that defines the same symbol: those of a scaling come last."""

    def __init__(self, lines, values):
        found = {line[0]: line[1:] for line in (parsed(line["expression"]) for line in lines)}
        self.lines = {symbol: (variables, term) for symbol, (variables, term, _, _) in found.items()}
        self.values, self.known, self.needs, before = values, {}, dict.fromkeys(found, frozenset()), None
        while before != self.needs:  # of which variables around it a line depends
            before = dict(self.needs)
            for symbol, (variables, _, names, sums) in found.items():
                below = frozenset().union(*(self.needs[name] for name in names & set(found)))
                self.needs[symbol] = (names - set(found) | below) - set(variables) - sums

    def value(self, symbol, **point):
        """A variable that a line defines is none of the point's."""
        point = {name: value for name, value in point.items() if name in self.lines[symbol][0] or name not in self.lines}
        return self.once(symbol, tuple(point[name] for name in self.lines[symbol][0]), point)

    def name(self, name, bound):
        if name in bound:
            return bound[name]
        if name in self.lines:
            return self.once(name, (), bound)
        return CONTEXT.pi if name == "pi" else exact(self.values.get(name))

    def element(self, name, place, bound):
        if name in self.lines and self.lines[name][0]:
            return self.once(name, tuple(place), bound)
        if name in bound:
            return exact(bound[name][place[0]])
        key = name, *place
        if key not in self.known:
            found = self.values[name]
            for i in place:
                found = found[int(i)] if hasattr(found, "__len__") else found  # a number stands for as many as are asked for
            self.known[key] = exact(found)
        return self.known[key]

    def once(self, name, place, bound):
        """A line is computed once for the same variables: a recursion would never end, and many points share what they need."""
        variables, term = self.lines[name]
        around = {other: bound[other] for other in self.needs[name] if other in bound}
        key = name, place, *around.items()
        if key not in self.known:
            self.known[key] = term(self, {**around, **dict(zip(variables, place))})
        return self.known[key]

    def function(self, name):
        return FUNCTIONS.get(name) or FUNCTIONS[self.values[name]]
