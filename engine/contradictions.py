"""Conditions that no row satisfies together: a query whose conditions exclude each other never
answers, and mostly one of them is a slip."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from engine.model.conditions import Condition, Constant, conditions_within, read_where
from engine.model.messages import Message

MOST = 100
"""Conditions on one column that are compared with each other; more are not looked at."""


def notices_of(document: Mapping[str, Any]) -> list[str]:
    """A sentence for each contradiction of a checked document."""
    return [
        str(Message("no row satisfies these conditions together: {conditions}", conditions=", ".join(map(str, conditions))))
        for conditions in contradictions(document)
    ]


def contradictions(document: Mapping[str, Any]) -> Iterator[list[Condition]]:
    """For each column of each `where` of a checked document the conditions on it, if no value
    satisfies all. Those of the whole query also apply to its parts."""
    whole = read_where(document.get("where", ()))
    yield from _unsatisfied(whole)
    for part in conditions_within({key: value for key, value in document.items() if key != "where"}):
        own = {condition.column for condition in part}
        yield from _unsatisfied([*(condition for condition in whole if condition.column in own), *part])


def _unsatisfied(conditions: Sequence[Condition]) -> Iterator[list[Condition]]:
    for column in dict.fromkeys(condition.column for condition in conditions):
        together = [condition for condition in conditions if condition.column == column]
        if len(together) <= MOST and not _is_satisfied(together):
            yield together


def _is_satisfied(conditions: Sequence[Condition]) -> bool:
    """Whether some value satisfies all of these conditions on one column."""
    lists = [set(condition.constant) for condition in conditions if isinstance(condition.constant, tuple)]
    others = [condition for condition in conditions if not isinstance(condition.constant, tuple)]
    # Lists may be very long: each value is looked up, not searched for.
    values = set.intersection(*lists) if lists else _candidates({condition.constant for condition in others})
    return any(all(condition.holds(value) for condition in others) for value in values)


def _candidates(constants: set[Any]) -> Iterable[Any]:
    """Values of which one satisfies all conditions with these constants, if any value does: the
    constants, and a value in each gap between them."""
    first = next(iter(constants))
    if isinstance(first, bool):
        return (False, True)
    if isinstance(first, str):
        # Nothing lies between a text and the same text with the least character after it.
        return ("", *constants, *(f"{constant}\0" for constant in constants))
    return _around(sorted(map(Fraction, constants)))


def _around(numbers: Sequence[Fraction]) -> Iterator[Constant | Fraction]:
    yield numbers[0] - 1
    for number, following in zip(numbers, [*numbers[1:], numbers[-1] + 2], strict=True):
        yield number
        yield (number + following) / 2
