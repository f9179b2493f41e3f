"""Sums in comparisons: `V1.temp - V2.temp`, `2 * V1.sog + 3`, read from text and written back.

Products bind tighter than + and -; operators of one rank are evaluated from left to right, all in
doubles, without constant folding.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

from engine.model.messages import Message

_NUMBER = r"(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_NAME = r"[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = re.compile(rf"\s*(?:(?P<column>{_NAME}\.{_NAME})|(?P<number>{_NUMBER})|(?P<op>[-+*]))")
NAMED = re.compile(rf"(?<![A-Za-z0-9_.])({_NAME})\.({_NAME})")
"""A possible column of a variable within a text."""
FIRST, PLUS, MINUS, TIMES = "", "+", "-", "*"


class NoSum(ValueError):
    """The text is not a sum; the message gives the reason."""


@dataclass(frozen=True, order=True)
class Factor:
    """One operand, and the operator before it: FIRST, PLUS, MINUS or TIMES.
    `variable` is -1 for a constant."""

    op: str
    variable: int = -1
    column: str = ""
    constant: float = 0.0


Sum = tuple[Factor, ...]


@dataclass(frozen=True, order=True)
class SumComparison:
    """`left op right` of at least one sum, over any variables."""

    left: Sum
    op: str
    right: Sum

    @property
    def columns(self) -> set[tuple[int, str]]:
        """(variable, column) of all operands that are columns."""
        return {(one.variable, one.column) for one in (*self.left, *self.right) if one.variable >= 0}


def parts_of(text: str) -> list[tuple[str, str]]:
    """(operator before it, operand) of a sum, a `-` before the first constant as
    part of it. Raises NoSum.

    >>> parts_of("-2 * V1.sog + 3")
    [('', '-2'), ('*', 'V1.sog'), ('+', '3')]
    """
    parts: list[tuple[str, str]] = []
    at, op = 0, FIRST
    expects_operand, sign = True, ""
    while at < len(text.rstrip()):
        token = _TOKEN.match(text, at)
        if token is None:
            raise NoSum(Message("unexpected {found}: a sum holds columns, numbers, +, - and *, no parentheses", found=repr(text[at:].split()[0])))
        at = token.end()
        if token["op"]:
            if expects_operand and (parts or sign or token["op"] != MINUS):
                raise NoSum(
                    Message(
                        "unexpected {found}: an operator goes between two operands; a - is allowed before the first constant",
                        found=repr(token["op"]),
                    )
                )
            if expects_operand:
                sign = MINUS
            else:
                op, expects_operand = token["op"], True
        elif not expects_operand:
            raise NoSum(Message("an operator is missing before {found}", found=repr(token[0].strip())))
        else:
            if sign and token["column"] and not parts:
                raise NoSum(Message("a - is allowed only before the first constant: write -1 * {column}", column=token["column"]))
            parts.append((op, sign + (token["column"] or token["number"])))
            expects_operand, sign = False, ""
    if expects_operand:
        raise NoSum(Message("the sum ends too early"))
    for begin, end in _products(parts):
        if sum(one[0].isalpha() or one[0] == "_" for _, one in parts[begin:end]) > 1:
            raise NoSum(Message("a product has at most one column"))
    return parts


def _products(parts: Sequence[tuple[str, str]]) -> list[tuple[int, int]]:
    begins = [i for i, (op, _) in enumerate(parts) if op != TIMES]
    return list(zip(begins, [*begins[1:], len(parts)], strict=True))


def constant_of(text: str) -> float:
    """A constant as a double. Raises NoSum if it exceeds the range of doubles."""
    found = float(text)
    if not math.isfinite(found):
        raise NoSum(Message("{text} is beyond all that can be computed with", text=text))
    return found


def text_of(terms: Sum, names: Sequence[str]) -> str:
    """The sum as text; `parts_of` reads it back."""
    words = []
    for one in terms:
        operand = repr(one.constant) if one.variable < 0 else f"{names[one.variable]}.{one.column}"
        words.append(operand if one.op == FIRST else f"{one.op} {operand}")
    return " ".join(words)


def time_difference(comparison: SumComparison) -> tuple[int, int, str, float] | None:
    """(i, j, op, c) if the comparison means `V_j.t - V_i.t op c`, with all
    constants on one side; else null."""
    weights: dict[int, int] = {}
    constant = 0.0
    for side, terms in ((1, comparison.left), (-1, comparison.right)):
        for begin, end in _products([(one.op, "") for one in terms]):
            product = terms[begin:end]
            sign = -side if product[0].op == MINUS else side
            if any(one.variable >= 0 for one in product):
                if len(product) > 1 or product[0].column != "t":
                    return None
                weights[product[0].variable] = weights.get(product[0].variable, 0) + sign
            else:
                constant += sign * math.prod(one.constant for one in product)
    ends = sorted((weight, variable) for variable, weight in weights.items() if weight)
    if [weight for weight, _ in ends] != [-1, 1]:
        return None
    return ends[0][1], ends[1][1], comparison.op, -constant
