"""Reads the text form of a constraint query: `CREATE TRIGGER name FOR E AS V1, E AS V2 WHEN ...`.
`trigger_writer.py` writes it.

The text is translated to the equivalent JSON document, with the place of each part, so that faults
of the document have line and column.

References: [CCQ] section 2 (extended SQL).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Tree, UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from engine.context import MAX_NAME, Context
from engine.model.conditions import FLIPPED, Constant
from engine.model.faults import unknown_name
from engine.model.feed import escaped
from engine.model.messages import Message, either

MAX_CHARACTERS = 200_000
_MOST_DIGITS = 300
Location = tuple[int, int]
"""Line and column, from 1."""


class TriggerRefused(ValueError):
    """The text is not a valid trigger; `locations` holds line and column of each message."""

    def __init__(self, faults: list[tuple[Location, Message]]) -> None:
        self.faults = sorted(faults)
        super().__init__("; ".join(f"line {line}, column {column}: {message}" for (line, column), message in self.faults))


@dataclass
class TranslatedTrigger:
    """The document of a text, and the places of its parts by JSON pointer."""

    document: dict[str, Any]
    locations: dict[str, Location] = field(default_factory=dict)

    def location(self, pointer: str) -> Location:
        """The place of the nearest part around `pointer`."""
        while pointer and pointer not in self.locations:
            pointer = pointer.rpartition("/")[0]
        return self.locations.get(pointer, (1, 1))


def read_trigger(document: Mapping[str, Any], context: Context) -> TranslatedTrigger | None:
    """The translation of a document with the key `trigger`; faults of the text have its pointer
    and name line and column."""
    context.object(document, required=("family", "trigger"), optional=("version", "name"))
    here, text = context.at("trigger"), document["trigger"]
    if not isinstance(text, str):
        here.fault(Message('must be a text: "CREATE TRIGGER name FOR E AS V1, E AS V2 WHEN ..."'))
        return None
    try:
        return translate(text)
    except TriggerRefused as refused:
        for (line, column), message in refused.faults:
            here.fault(Message("line {line}, column {column}: {message}", line=line, column=column, message=message))
        return None


# -- from text -------------------------------------------------------------------------------------


def translate(text: str) -> TranslatedTrigger:
    """The document that is equivalent to `text`. Raises TriggerRefused.

    >>> text = "CREATE TRIGGER near FOR E AS A, E AS B WHEN B.t - A.t IN [0, 5]"
    >>> translate(text).document["constraints"]
    [{'between': ['A', 'B'], 'dt': [0, 5]}]
    """
    if len(text) > MAX_CHARACTERS:
        length, most = len(text), MAX_CHARACTERS
        raise TriggerRefused([((1, 1), Message("the text has {count:,} characters; at most {most:,} are allowed", count=length, most=most))])
    try:
        tree = _lark().parse(text)
    except UnexpectedInput as fault:
        raise TriggerRefused([_syntax_fault(fault, text)]) from None
    return _Translator().translated(tree)


def with_names(text: str, names: Mapping[str, str]) -> str:
    """A valid text in which stored regions have other names, by their names so far;
    comments and layout stay.

    >>> text = "CREATE TRIGGER t FOR E AS A WHEN INSIDE(A.r, 'quay') -- near 'quay'"
    >>> with_names(text, {"quay": "pier's end"})
    "CREATE TRIGGER t FOR E AS A WHEN INSIDE(A.r, 'pier''s end') -- near 'quay'"
    """
    parts, end = [], 0
    for token in sorted((_first(area) for area in _lark().parse(text).find_data("stored")), key=lambda one: one.start_pos or 0):
        name = _unquote(token)
        parts += [text[end : token.start_pos], "'" + names[name].replace("'", "''") + "'" if name in names else str(token)]
        end = token.end_pos or 0
    return "".join([*parts, text[end:]])


@cache
def _lark() -> Lark:
    return Lark((Path(__file__).parent / "trigger.lark").read_text(encoding="utf-8"), parser="lalr", maybe_placeholders=False)


def _syntax_fault(fault: UnexpectedInput, text: str) -> tuple[Location, Message]:
    if isinstance(fault, UnexpectedCharacters):
        found = repr(text[fault.pos_in_stream or 0])
        return (fault.line, fault.column), Message("unexpected {found}; expected {expected}", found=found, expected=_expected(fault.allowed or ()))
    token = getattr(fault, "token", None)
    expected = _expected(fault.accepts or fault.expected if isinstance(fault, UnexpectedToken) else ())
    if token is None or token.type == "$END":
        lines = text.rstrip().split("\n")
        return (len(lines), len(lines[-1]) + 1), Message("the text ends too early; expected {expected}", expected=expected)
    return (token.line, token.column), Message("unexpected {found}; expected {expected}", found=repr(str(token)), expected=expected)


_TOKENS = {
    "NAME": Message("a name"), "NUMBER": Message("a number"), "STRING": Message("a text in '...'"), "COMPARISON": Message("a comparison"),
    "TRUTH": Message("TRUE or FALSE"), "NULL": "NULL",
    "DOT": "'.'", "COMMA": "','", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'",
    "OPERATOR": Message("+, - or *"), "SEMICOLON": "';'", "$END": Message("the end"),
}  # fmt: skip


def _expected(names: Any) -> Message:
    words = sorted({_TOKENS.get(name, name.lstrip("_")) for name in names if name not in ("WS",) and not name.startswith("__")})
    return either(words) if words else Message("something else")


class _Translator:
    """Translates one parse tree to a document and collects its faults."""

    def __init__(self) -> None:
        self.faults: list[tuple[Location, Message]] = []
        self.variables: dict[str, Any] = {}
        self.streams: set[str] = set()
        self.result = TranslatedTrigger({"family": "constraint", "variables": self.variables, "constraints": []})

    def translated(self, tree: Tree[Token]) -> TranslatedTrigger:
        nodes = [node for node in tree.children if isinstance(node, Tree)]
        for node in nodes:
            if node.data == "stream":
                self.stream(node)
        for node in nodes:
            if node.data != "stream":
                getattr(self, str(node.data))(node)
        if self.faults:
            raise TriggerRefused(self.faults)
        return self.result

    def fault(self, token: Token, message: Message) -> None:
        self.faults.append((_location(token), message))

    def note(self, pointer: str, token: Token) -> None:
        self.result.locations[pointer] = _location(token)

    def trigger_name(self, node: Tree[Token]) -> None:
        (name,) = _tokens(node)
        text = _unquote(name) if name.type == "STRING" else str(name)
        self.note("/name", name)
        if len(text) > MAX_NAME:
            self.fault(name, Message("a name has at most {most} characters, not {count}", most=MAX_NAME, count=len(text)))
        elif text:
            self.result.document["name"] = text

    def stream(self, node: Tree[Token]) -> None:
        stream, name = _tokens(node)
        if self.streams and stream not in self.streams:
            self.fault(stream, Message("a trigger reads one stream; it is called {name} before", name=repr(min(self.streams))))
        self.streams.add(str(stream))
        if name in self.variables:
            self.fault(name, Message("variable {name} is declared twice", name=repr(str(name))))
        self.variables[str(name)] = {}
        if len(self.variables) == 1:
            self.note("/variables", stream)
        self.note(f"/variables/{escaped(name)}", name)

    # -- conditions --------------------------------------------------------------------------------

    def variable(self, node: Tree[Token], column: str | None = None) -> str:
        """The variable of `variable.column`; `column`: the only column allowed."""
        name, given = _tokens(node)
        if name not in self.variables:
            self.fault(name, unknown_name(str(name), self.variables, what=Message("variable")))
        if column is not None and given != column:
            what = {"r": Message("positions are written"), "t": Message("times are written")}[column]
            self.fault(given, Message("{what} {name}.{column}, not {name}.{given}", what=what, name=name, column=column, given=given))
        return str(name)

    def constraint(self, first: Token, sides: list[Tree[Token]], names: list[str], **said: Any) -> str:
        """Adds a constraint and returns its pointer."""
        constraints = self.result.document["constraints"]
        pointer = f"/constraints/{len(constraints)}"
        constraints.append({"between": names, **said})
        self.note(pointer, first)
        if len(constraints) == 1:
            self.note("/constraints", first)
        for i, side in enumerate(sides):
            self.note(f"{pointer}/between/{i}", _first(side))
        return pointer

    def distance(self, node: Tree[Token]) -> None:
        sides, (op, number) = _trees(node), [token for token in node.children if isinstance(token, Token)]
        limits = {"<": {"max", "open"}, "<=": {"max"}, ">": {"min", "open"}, ">=": {"min"}}.get(str(op))
        if limits is None:
            self.fault(op, Message("a distance is compared with <, <=, > or >="))
            return
        value = _number(number)
        said: dict[str, Any] = {key: True if key == "open" else value for key in sorted(limits)}
        pointer = self.constraint(_first(node), sides, [self.variable(side, "r") for side in sides], distance=said)
        self.note(f"{pointer}/distance", number)

    def difference(self, node: Tree[Token]) -> None:
        total, low, high = _trees(node)
        sides = list(total.find_data("side"))
        later, earlier = sides[0] if sides else total, sides[-1] if sides else total
        if [str(one) for one in total.children if isinstance(one, Token)] != ["-"] or len(sides) != 2:
            self.fault(_first(total), Message("IN [lo, hi] bounds a difference of two times: V2.t - V1.t IN [lo, hi]"))
            return
        spans = [_span(_first(one)) for one in (low, high)]
        names = [self.variable(earlier, "t"), self.variable(later, "t")]
        pointer = self.constraint(_first(node), [earlier, later], names, dt=spans)
        self.note(f"{pointer}/dt", _first(low))
        for i, one in enumerate((low, high)):
            self.note(f"{pointer}/dt/{i}", _first(one))

    def inside(self, node: Tree[Token]) -> None:
        side, area = _trees(node)
        tokens = _tokens(area)
        region: Any = {"region": _unquote(tokens[0])}
        if area.data == "circle":
            x, y, radius = map(_number, tokens)
            region = {"center": [x, y], "radius": radius}
        elif area.data == "geojson":
            try:
                region = json.loads(_unquote(tokens[0]), parse_int=_integer)
            except (ValueError, RecursionError) as error:
                self.fault(tokens[0], Message("not GeoJSON: {error}", error=error))
        pointer = self.constraint(_first(node), [side], [self.variable(side, "r")], inside=region)
        self.note(f"{pointer}/inside", tokens[0])

    def comparison(self, node: Tree[Token]) -> None:
        left, right = _trees(node)
        op = next(token for token in node.children if isinstance(token, Token))
        word = "!=" if op == "<>" else str(op)
        if "sum" in (left.data, right.data):
            self.sums(left, op, word, right)
        elif left.data == "side" and right.data == "side":
            texts = [".".join(_tokens(side)) for side in (left, right)]
            names = list(dict.fromkeys(self.variable(side) for side in (left, right)))
            pointer = self.constraint(_first(node), [left, right][: len(names)], names, compare=[[texts[0], word, texts[1]]])
            for i, token in ((0, _tokens(left)[1]), (1, op), (2, _tokens(right)[1])):
                self.note(f"{pointer}/compare/0/{i}", token)
        elif left.data == "side":
            self.filter(left, word, _constant(right), op, _first(right))
        elif right.data == "side":
            self.filter(right, FLIPPED[word], _constant(left), op, _first(left))
        else:
            self.fault(_first(node), Message("compares no variable"))

    def sums(self, left: Tree[Token], op: Token, word: str, right: Tree[Token]) -> None:
        sides = [*left.find_data("side"), *right.find_data("side")]
        if not sides:
            self.fault(_first(left), Message("compares no variable"))
            return
        names = list(dict.fromkeys(self.variable(side) for side in sides))
        first = {name: next(side for side in sides if _tokens(side)[0] == name) for name in names}
        compare = [[_operand_text(left), word, _operand_text(right)]]
        pointer = self.constraint(_first(left), [first[name] for name in names], names, compare=compare)
        for i, token in ((0, _first(left)), (1, op), (2, _first(right))):
            self.note(f"{pointer}/compare/0/{i}", token)

    def one_of(self, node: Tree[Token]) -> None:
        side, *constants = _trees(node)
        last = _first(constants[-1]) if constants else _first(side)
        self.filter(side, "in", [_constant(one) for one in constants], _first(side), last)

    def filter(self, side: Tree[Token], op: str, constant: Any, at_op: Token, at_constant: Token) -> None:
        """A condition of one variable, or of the whole stream."""
        name, column = _tokens(side)
        is_stream = name in self.streams and name not in self.variables
        if is_stream:
            conditions, pointer = self.result.document.setdefault("where", []), "/where"
        elif name in self.variables:
            conditions, pointer = self.variables[str(name)].setdefault("where", []), f"/variables/{escaped(name)}/where"
        else:
            self.fault(name, unknown_name(str(name), [*self.variables, *self.streams], what=Message("variable")))
            return
        pointer += f"/{len(conditions)}"
        conditions.append([str(column), op, constant])
        self.note(pointer, name)
        for i, token in ((0, column), (1, at_op), (2, at_constant)):
            self.note(f"{pointer}/{i}", token)

    # -- the rest ----------------------------------------------------------------------------------

    def symmetric(self, node: Tree[Token]) -> None:
        groups = _trees(node)
        self.result.document["symmetric"] = [[str(name) for name in _tokens(group)] for group in groups]
        self.note("/symmetric", _first(node))
        for i, group in enumerate(groups):
            for k, name in enumerate(_tokens(group)):
                self.note(f"/symmetric/{i}/{k}", name)

    def report(self, node: Tree[Token]) -> None:
        self.word("report", node)

    def expiration(self, node: Tree[Token]) -> None:
        self.word("expiration", node)

    def word(self, key: str, node: Tree[Token]) -> None:
        (word,) = _tokens(node)
        self.result.document[key] = word.lower()
        self.note(f"/{key}", word)


def _operand_text(node: Tree[Token]) -> Any:
    """A side of a comparison in the form of the document."""
    if node.data == "side":
        return ".".join(_tokens(node))
    if node.data != "sum":
        return _constant(node)
    words = [str(one) if isinstance(one, Token) else ".".join(_tokens(one)) for one in node.children]
    return " ".join(words)


def _tokens(node: Tree[Token]) -> list[Token]:
    return list(node.scan_values(lambda one: isinstance(one, Token)))


def _trees(node: Tree[Token]) -> list[Tree[Token]]:
    return [one for one in node.children if isinstance(one, Tree)]


def _first(node: Tree[Token]) -> Token:
    return _tokens(node)[0]


def _location(token: Token) -> Location:
    return token.line or 1, token.column or 1


def _unquote(token: Token) -> str:
    return str(token)[1:-1].replace("''", "'")


def _number(token: Token) -> int | float:
    text = str(token)
    return _integer(text) if re.fullmatch(r"[-+]?\d+", text) else float(text)


def _integer(digits: str) -> int | float:
    # Longer ones exceed every bound; as doubles they are infinite, which the
    # checks refuse at their place.
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


def _constant(node: Tree[Token]) -> Constant:
    token = _first(node)
    if node.data == "truth":
        return token.lower() == "true"
    return _unquote(token) if node.data == "text" else _number(token)


def _span(token: Token) -> Any:
    return None if token.type == "NULL" else _unquote(token) if token.type == "STRING" else _number(token)
