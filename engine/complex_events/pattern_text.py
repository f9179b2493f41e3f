"""Translates the text of a pattern to the equivalent JSON tree, with the place of each part."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from engine.model.messages import Message, either

MAX_CHARACTERS = 50_000
MAX_PRIMITIVES = 256
"""The greatest number of primitives in one pattern; each counts as often as it is named."""
Location = tuple[int, int]
"""Line and column, from 1."""

_WORDS = {
    "NAME": Message("a primitive"), "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "COLON": "':'", "SEMICOLON": "';'", "COMMA": "','",
    "BANG": "'!'", "NUMBER": Message("a number"), "DURATION": Message("a duration"), "NULL": "null", "_AND": "AND", "_OR": "OR",
    "$END": Message("the end"),
}  # fmt: skip


class PatternRefused(ValueError):
    """The text is not a pattern; has the fault and its place."""

    def __init__(self, location: Location, message: Message) -> None:
        self.location, self.message = location, message
        super().__init__(Message("line {line}, column {column}: {message}", line=location[0], column=location[1], message=message))


@dataclass
class TranslatedPattern:
    """The JSON tree of a text, and the places of its parts by JSON pointer inside the tree."""

    tree: Any
    locations: dict[str, Location] = field(default_factory=dict)

    def location(self, pointer: str) -> Location:
        """The place of the nearest part around `pointer`."""
        while pointer and pointer not in self.locations:
            pointer = pointer.rpartition("/")[0]
        return self.locations.get(pointer, (1, 1))


def translate(text: str) -> TranslatedPattern:
    """The tree that is equivalent to `text`. Raises PatternRefused.

    >>> translate("A : !(B OR C)[PT5M] AND D").tree
    {'and': [{'absence': ['A', {'or': ['B', 'C']}], 'span': 'PT5M'}, 'D']}
    """
    if len(text) > MAX_CHARACTERS:
        raise PatternRefused((1, 1), Message("the text has {count:,} characters; at most {most:,} are allowed", count=len(text), most=MAX_CHARACTERS))
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as fault:
        raise _syntax_fault(fault, text) from None
    # Not by `scan_values`, which calls itself for each level: a long pattern is as
    # deep as it has operators.
    names = sum(1 for part in tree.iter_subtrees() if part.data == "primitive")
    if names > MAX_PRIMITIVES:
        raise PatternRefused((1, 1), Message("the pattern names {names} primitives; at most {most} are allowed", names=names, most=MAX_PRIMITIVES))
    found = TranslatedPattern(None)
    found.tree = _Translator(found.locations).node(tree, "")
    return found


@cache
def _lark() -> Lark:
    grammar = (Path(__file__).parent / "pattern.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", maybe_placeholders=False, propagate_positions=True)


class _Translator:
    """Translates parse trees to JSON and notes the place of each part."""

    def __init__(self, locations: dict[str, Location]) -> None:
        self.locations = locations

    def node(self, tree: Tree[Token], pointer: str) -> Any:
        location = (tree.meta.line, tree.meta.column)
        self.locations[pointer] = location
        if tree.data == "primitive":
            return str(tree.children[0])
        parts = [one for one in tree.children if isinstance(one, Tree)]
        if tree.data in ("either", "both"):
            return self.operands({"either": "or", "both": "and"}[tree.data], parts, pointer)
        if tree.data in ("absence", "interval", "before", "around"):
            span = next(one for one in parts if one.data == "span")
            operands = [one for one in parts if one.data != "span"]
            return self.operands(str(tree.data), operands, pointer) | {"span": self.bound(span, f"{pointer}/span")}
        bounds = [one for one in parts if one.data == "bounds"]
        operands = [one for one in parts if one.data != "bounds"]
        found: dict[str, Any] = self.operands("sequence", [operands[0], operands[-1]], pointer)
        if len(operands) == 3:
            found["without"] = self.node(operands[1], f"{pointer}/without")
        for one in bounds:
            self.locations[f"{pointer}/bounds"] = (one.meta.line, one.meta.column)
            found["bounds"] = [self.bound(child, f"{pointer}/bounds/{i}") for i, child in enumerate(one.children) if isinstance(child, Tree)]
        return found

    def operands(self, key: str, parts: list[Tree[Token]], pointer: str) -> dict[str, Any]:
        return {key: [self.node(part, f"{pointer}/{key}/{i}") for i, part in enumerate(parts)]}

    def bound(self, tree: Tree[Token], pointer: str) -> int | float | str | None:
        (token,) = tree.children
        assert isinstance(token, Token)
        self.locations[pointer] = (token.line or 1, token.column or 1)
        if tree.data == "open":
            return None
        text = str(token).strip("'")
        if token.type == "DURATION":
            return text
        # Longer ones exceed every bound; as doubles they are infinite, which the
        # checks refuse at their place.
        return int(text) if re.fullmatch(r"[-+]?\d{1,400}", text) else float(text)


def _syntax_fault(fault: UnexpectedInput, text: str) -> PatternRefused:
    if isinstance(fault, UnexpectedCharacters):
        expected = _expected(fault.allowed or ())
        return PatternRefused(
            (fault.line, fault.column),
            Message("unexpected {found}; expected {expected}", found=repr(text[fault.pos_in_stream or 0]), expected=expected),
        )
    token = getattr(fault, "token", None)
    expected = _expected((fault.accepts or fault.expected) if isinstance(fault, UnexpectedToken) else ())
    if token is None or token.type == "$END":
        lines = text.rstrip().split("\n")
        return PatternRefused((len(lines), len(lines[-1]) + 1), Message("the text ends too early; expected {expected}", expected=expected))
    location, found = (token.line, token.column), repr(str(token))
    if token.type == "BANG":
        remedy = Message("non-occurrence is written p : !q : r, p : !q[D], !q[D] : r or p AND !q[D], bounds before r, several as !(q OR r)")
        return PatternRefused(location, Message("unexpected {found}; expected {expected}; {remedy}", found=found, expected=expected, remedy=remedy))
    return PatternRefused(location, Message("unexpected {found}; expected {expected}", found=found, expected=expected))


def _expected(names: Any) -> Message:
    words = sorted({_WORDS[name] for name in names if name in _WORDS})
    return either(words) if words else Message("something else")
