"""Requirements of a pattern on its events, derived from its tree: which must occur, how old they
can be, how far back its parts are searched."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.complex_events import pattern as tree
from engine.complex_events.pattern import Pattern
from engine.complex_events.search import FAR

Ages = Mapping[Any, int]
"""The greatest age of events in an occurrence, by primitive or class; FAR or more: unbounded."""

_EACH = 8.0
"""Assumed events of a primitive within a window, since rates are unknown."""


def required_primitives(pattern: Pattern) -> frozenset[str]:
    """Primitives in every occurrence: the minimum condition.

    >>> either = tree.Or(tree.Primitive("A"), tree.Primitive("B"))
    >>> sorted(required_primitives(tree.Sequence(either, tree.Primitive("C"))))
    ['C']
    """
    match pattern:
        case tree.Primitive(name):
            return frozenset([name])
        case tree.Or(first, second):
            return required_primitives(first) & required_primitives(second)
        case tree.Absence(first, _, _) | tree.Around(first, _, _) | tree.Before(_, first, _):
            return required_primitives(first)
        case tree.And(first, second, _) | tree.Sequence(first, second, _, _, _):
            return required_primitives(first) | required_primitives(second)
    raise TypeError(f"{pattern!r} is no pattern")


# -- the ages of events in an occurrence: the spans of the operators, passed down as in [RFID] 2 on
# RCEDA -------------------------------------------


def longest(pattern: Pattern) -> int:
    """The greatest e - s of an occurrence; FAR or more if it is unbounded.

    >>> absence = tree.Absence(tree.Primitive("B"), tree.Primitive("C"), 5)
    >>> longest(tree.Sequence(tree.Primitive("A"), absence, 0, 3))
    8
    """
    match pattern:
        case tree.Primitive():
            return 0
        case tree.Or(first, second):
            return max(longest(first), longest(second))
        case tree.And(_, _, span):
            return FAR if span is None else span
        case tree.Sequence(first, second, _, high, _):
            return total(longest(first), high, longest(second))
        case tree.Absence(first, _, span) | tree.Around(first, _, span):
            return total(longest(first), span)
        case tree.Before(_, second, _):
            return longest(second)
    raise TypeError(f"{pattern!r} is no pattern")


def reach(pattern: Pattern) -> Ages:
    """For each primitive in every occurrence the greatest e - t of its event.

    >>> reach(tree.Sequence(tree.Primitive("A"), tree.Primitive("B"), 0, 7))
    {'A': 7, 'B': 0}
    """
    match pattern:
        case tree.Primitive(name):
            return {name: 0}
        case tree.Or(first, second):
            return any_of(reach(first), reach(second))
        case tree.And(_, _, span):
            return dict.fromkeys(sorted(required_primitives(pattern)), FAR if span is None else span)
        case tree.Sequence(first, second, _, high, _):
            before = {name: total(age, high, longest(second)) for name, age in reach(first).items()}
            return all_of(before, reach(second))
        case tree.Before(_, second, _):
            return reach(second)
        case tree.Absence(first, _, span) | tree.Around(first, _, span):
            return {name: total(age, span) for name, age in reach(first).items()}
    raise TypeError(f"{pattern!r} is no pattern")


def lookback(pattern: Pattern) -> int:
    """How long before its s events may still rule out an occurrence.

    >>> before = tree.Before(tree.Primitive("A"), tree.Primitive("B"), 5)
    >>> lookback(tree.Sequence(before, tree.Primitive("C")))
    5
    """
    match pattern:
        case tree.Before(without, second, span):
            return max(lookback(second), total(span, lookback(without)))
        case tree.Around(first, without, span):
            return max(lookback(first), total(span, lookback(without)))
    return max(map(lookback, pattern.parts), default=0)


def negates(node: Pattern) -> bool:
    """Whether a node itself contains a negation."""
    return isinstance(node, tree.Absence | tree.Before | tree.Around) or (isinstance(node, tree.Sequence) and node.without is not None)


def requirements(pattern: Pattern, within: int) -> list[list[int]]:
    """Rows of `Tables.requirements` for a pattern without negation, a node before its parts.

    >>> both = tree.And(tree.Primitive("B"), tree.Primitive("C"), 3)
    >>> requirements(tree.Sequence(tree.Primitive("A"), both, 0, 5), 20)
    [[0, 0, 1, 1], [8, 0, 1, 4], [0, 1, 1, 3], [3, 1, 1, 2], [3, 1, 1, 0]]
    """
    order, _ = _rarest_first(pattern, within, 0)
    return [[*asked, place] for asked, place in zip(_ages(pattern, within, 0, 0, 1), order, strict=True)]


def _ages(pattern: Pattern, within: int, back: int, every: int, needed: int) -> Iterator[tuple[int, int, int]]:
    yield back, every, needed
    match pattern:
        case tree.Or(first, second):
            yield from _ages(first, within, back, every, 0)
            yield from _ages(second, within, back, every, 0)
        case tree.And(first, second, span):
            back = min(within, total(back, span))
            yield from _ages(first, within, back, every, needed)
            yield from _ages(second, within, back, every, needed)
        case tree.Sequence(first, second, _, high, _):
            yield from _ages(first, within, min(within, total(back, high, longest(second))), every, needed)
            yield from _ages(second, within, back, every if high is None else 1, needed)


def _rarest_first(pattern: Pattern, within: int, number: int) -> tuple[list[int], float]:
    """The nodes, parts before the whole and the rarer part first; and the expected number of the
    pattern's occurrences within its window.

    The pattern is node `number`. Rates are unknown: each primitive counts as _EACH events.
    """
    match pattern:
        case tree.Or(first, second) | tree.And(first, second, _) | tree.Sequence(first, second, _, _, _):
            nodes, a = _rarest_first(first, within, number + 1)
            others, b = _rarest_first(second, within, number + 1 + len(nodes))
        case _:
            return [number], _EACH
    order = [*nodes, *others, number] if a < b else [*others, *nodes, number]
    match pattern:
        case tree.And(_, _, span):
            share = 1.0 if span is None else min(1.0, span / max(within, 1))
            return order, a * min(1.0, b * share) + b * min(1.0, a * share)
        case tree.Sequence(_, _, low, high, _):
            share = 1.0 if high is None else min(1.0, (high - low) / max(within, 1))
            return order, b * min(1.0, a * share)
    return order, a + b


def total(*spans: int | None) -> int:
    return min(FAR, sum(FAR if one is None else one for one in spans))


def any_of(*ages: Ages) -> Ages:
    """The value if any of the parts holds."""
    return {one: max(some[one] for some in ages) for one in ages[0] if all(one in some for some in ages)}


def all_of(*ages: Ages) -> Ages:
    """The value if all of the parts hold."""
    return {one: min(some[one] for some in ages if one in some) for one in dict.fromkeys(one for some in ages for one in some)}
