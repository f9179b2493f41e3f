"""Patterns of composite events as trees, and their output as text and as a tree for display.

References: [RFID] 2 (event operators); specification 5.5 for their meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Pattern:
    """A node of a pattern: one of the classes below."""

    @property
    def parts(self) -> tuple[Pattern, ...]:
        """The nodes directly below, in the order of the text."""
        return ()


@dataclass(frozen=True)
class Primitive(Pattern):
    """One event that matches the primitive called `name`."""

    name: str


@dataclass(frozen=True)
class _Pair(Pattern):
    first: Pattern
    second: Pattern

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return self.first, self.second


@dataclass(frozen=True)
class And(_Pair):
    """`first AND second`; with `span` an INTERVAL, `first ;[span] second`: max(e) - min(s) <=
    span."""

    span: int | None = None


@dataclass(frozen=True)
class Or(_Pair):
    """`first OR second`."""


@dataclass(frozen=True)
class Sequence(Pattern):
    """`first : second` or `first : !without : second`: s_second > e_first and
    `low <= s_second - e_first <= high` (null: unbounded)."""

    first: Pattern
    second: Pattern
    low: int = 0
    high: int | None = None
    without: Pattern | None = None

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return (self.first, self.second) if self.without is None else (self.first, self.without, self.second)


@dataclass(frozen=True)
class _Without(Pattern):
    first: Pattern
    without: Pattern
    span: int

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return self.first, self.without


@dataclass(frozen=True)
class Absence(_Without):
    """`first : !without[span]`: no `without` in the `span` after `first`; it occurs at the
    end of the span, by timer."""


@dataclass(frozen=True)
class Around(_Without):
    """`first AND !without[span]`: no `without` from `span` before `first` until `span` after it; it
    occurs at the end of that, by timer."""


@dataclass(frozen=True)
class Before(Pattern):
    """`!without[span] : second`: a `second` with no `without` that starts in the `span`
    before it and ends before it."""

    without: Pattern
    second: Pattern
    span: int

    @property
    def parts(self) -> tuple[Pattern, ...]:
        return self.without, self.second


def nodes(pattern: Pattern) -> Iterator[Pattern]:
    """All nodes, a node before its parts."""
    open_nodes = [pattern]
    while open_nodes:
        node = open_nodes.pop()
        yield node
        open_nodes.extend(reversed(node.parts))


def primitives(pattern: Pattern) -> list[str]:
    """Names of the primitives in the order of their first appearance."""
    return list(dict.fromkeys(node.name for node in nodes(pattern) if isinstance(node, Primitive)))


def shortest(pattern: Pattern) -> int | None:
    """How long an occurrence takes at least; null if it cannot occur.

    >>> a, b = Primitive("A"), Primitive("B")
    >>> shortest(Sequence(a, Absence(b, a, 30), low=5))
    35
    >>> shortest(And(Sequence(a, b, low=9), b, span=8)) is None
    True
    """
    match pattern:
        case Primitive() | Before():
            least = 0 if isinstance(pattern, Primitive) else shortest(pattern.second)
        case Or(first, second):
            least = min((one for one in map(shortest, (first, second)) if one is not None), default=None)
        case And(first, second, span):
            both = [shortest(first), shortest(second)]
            least = None if None in both else max(one for one in both if one is not None)
            least = None if least is not None and span is not None and least > span else least
        case Absence(first, _, span) | Around(first, _, span):
            own = shortest(first)
            least = None if own is None else own + span
        case Sequence(first, second, low, high):
            both = [shortest(first), shortest(second)]
            is_empty = high is not None and high < 1
            least = None if None in both or is_empty else max(low, 1) + sum(one for one in both if one is not None)
        case _:
            raise TypeError(f"{pattern!r} is no pattern")
    return least


# -- to text ---------------------------------------------------------------------------------------

_OR, _AND, _SEQUENCE, _ATOM = range(4)


def pattern_text(pattern: Pattern) -> str:
    """The text that is read back as an equal pattern, without redundant parentheses.

    >>> both = And(Primitive("A"), Primitive("B"))
    >>> pattern_text(Sequence(both, Primitive("C"), 0, 5, Primitive("N")))
    '(A AND B) : !N :[0,5] C'
    """
    return _text(pattern, _OR)


def _text(node: Pattern, least: int) -> str:
    """`node` as an operand whose operators must bind at least as tight as `least`."""
    text, binding = _node_text(node)
    return text if binding >= least else f"({text})"


def _node_text(node: Pattern) -> tuple[str, int]:
    match node:
        case Primitive(name):
            return name, _ATOM
        case Or(first, second):
            return f"{_text(first, _OR)} OR {_text(second, _AND)}", _OR
        case And(first, second, None):
            return f"{_text(first, _AND)} AND {_text(second, _SEQUENCE)}", _AND
        case And(first, second, span):
            return f"{_text(first, _SEQUENCE)} ;[{span}] {_text(second, _ATOM)}", _SEQUENCE
        case Absence(first, without, span):
            return f"{_text(first, _SEQUENCE)} : !{_text(without, _ATOM)}[{span}]", _SEQUENCE
        case Before(without, second, span):
            return f"!{_text(without, _ATOM)}[{span}] : {_text(second, _ATOM)}", _SEQUENCE
        case Around(first, without, span):
            return f"{_text(first, _AND)} AND !{_text(without, _ATOM)}[{span}]", _AND
        case Sequence(first, second, low, high, without):
            negated = "" if without is None else f" : !{_text(without, _ATOM)}"
            bounds = "" if (low, high) == (0, None) else f"[{low},{'null' if high is None else high}]"
            return f"{_text(first, _SEQUENCE)}{negated} :{bounds} {_text(second, _ATOM)}", _SEQUENCE
    raise TypeError(f"{node!r} is no pattern")


# -- to be read ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DescribedNode:
    """A node for display. `kind` is the paper's: normal, trigger, virtual or negative; `label`
    names the operator or the primitive.

    A **trigger** node is a primitive whose event can complete the whole pattern (or start its last
    timer), a **virtual** one an OR, a **negative** one the negated part. `bounds` are times as
    written, in the unit of `t`.
    """

    kind: str
    label: str
    bounds: tuple[int | None, ...] = ()
    parts: tuple[DescribedNode, ...] = ()


def describe(pattern: Pattern, kind: str = "trigger") -> DescribedNode:
    """The pattern as a tree for display, with the kinds of [RFID] 3.1.

    >>> shelf, checkout = Primitive("shelf"), Primitive("checkout")
    >>> tree = describe(Sequence(shelf, Primitive("exit"), without=checkout))
    >>> tree.label, [(part.label, part.kind) for part in tree.parts]
    ('SEQUENCE', [('shelf', 'normal'), ('checkout', 'negative'), ('exit', 'trigger')])
    """
    match pattern:
        case Primitive(name):
            return DescribedNode(kind, name)
        case Or(first, second):
            return DescribedNode("negative" if kind == "negative" else "virtual", "OR", (), (describe(first, kind), describe(second, kind)))
        case And(first, second, span):
            label, bounds = ("AND", ()) if span is None else ("INTERVAL", (span,))
            return DescribedNode(_inner(kind), label, bounds, (describe(first, kind), describe(second, kind)))
        case Absence(first, without, span):
            return DescribedNode(_inner(kind), "ABSENCE", (span,), (describe(first, kind), describe(without, "negative")))
        case Before(without, second, span):
            return DescribedNode(_inner(kind), "BEFORE", (span,), (describe(without, "negative"), describe(second, kind)))
        case Around(first, without, span):
            return DescribedNode(_inner(kind), "AROUND", (span,), (describe(first, kind), describe(without, "negative")))
        case Sequence(first, second, low, high, without):
            bounds_ = () if (low, high) == (0, None) else (low, high)
            middle = () if without is None else (describe(without, "negative"),)
            before = "negative" if kind == "negative" else "normal"
            return DescribedNode(_inner(kind), "SEQUENCE", bounds_, (describe(first, before), *middle, describe(second, kind)))
    raise TypeError(f"{pattern!r} is no pattern")


def _inner(kind: str) -> str:
    return "negative" if kind == "negative" else "normal"
