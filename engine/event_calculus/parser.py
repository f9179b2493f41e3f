"""Parses the text of an event description to clauses.

Every anonymous variable `_` gets a unique name, so two of them are different variables.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from lark import Lark, Token, Transformer, UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken, v_args

from engine.event_calculus.terms import (
    ANONYMOUS,
    CONJUNCTION,
    CUT,
    DISJUNCTION,
    NEGATION,
    Atom,
    Clause,
    Compound,
    ListTerm,
    Number,
    SourceLocation,
    Term,
    Variable,
)
from engine.model.messages import Message, either

MAX_CHARACTERS = 1_000_000
MAX_DEPTH = 60


@dataclass(frozen=True)
class Problem:
    """One fault of a program and its place."""

    location: SourceLocation
    message: Message

    def sentence(self) -> Message:
        """The message with its place."""
        return Message("line {line}, column {column}: {message}", line=self.location.line, column=self.location.column, message=self.message)

    def __str__(self) -> str:
        return self.sentence()


class ProgramRefused(ValueError):
    """The program has faults; `problems` is not empty and sorted by place."""

    def __init__(self, problems: list[Problem]) -> None:
        self.problems = sorted(problems, key=lambda problem: (problem.location.line, problem.location.column))
        super().__init__("; ".join(map(str, self.problems)))


def parse(text: str) -> list[Clause]:
    """Clauses of `text` in order. Linear in the length of the text.

    Raises ProgramRefused with line and column of the first fault of syntax, or when the text is
    longer than MAX_CHARACTERS or nested deeper than MAX_DEPTH.
    """
    return list(_parse_cached(text))


def parse_term(text: str) -> Term:
    """One term. Raises ProgramRefused."""
    head = _read(f"{text} .")[0].head
    assert head is not None
    return head


@lru_cache(maxsize=4)
def _parse_cached(text: str) -> tuple[Clause, ...]:
    """The clauses, cached, because saving a query parses its program several times: to check it, to
    find its outputs and areas, to describe it."""
    return _read(text)


def _read(text: str) -> tuple[Clause, ...]:
    _refuse_oversize(text)
    try:
        clauses: list[Clause] = _lark().parse(text)  # type: ignore[assignment]
        return tuple(clauses)
    except UnexpectedInput as fault:
        raise ProgramRefused([_problem(fault, text)]) from None


def clause_texts(text: str) -> dict[SourceLocation, str]:
    """The text of every clause as it was written, by the place of its head. Raises
    ProgramRefused like `parse`."""
    lines = text.split("\n")
    found = {}
    for clause in parse(text):
        first, last = clause.location, clause.end
        part = lines[first.line - 1 : last.line]
        part[-1] = part[-1][: last.column]
        part[0] = part[0][first.column - 1 :]
        found[first] = "\n".join(part)
    return found


_NESTING = re.compile(
    r"%[^\n\r\u0085\u2028\u2029]*|/\*.*?(?:\*/|\Z)|'(?:[^'\\\n]|''|\\[^\n])*(?:'|\\?(?=\n|\Z))|[(\[]|[)\]]|\\\+|\n|[^%/'()\[\]\\\n]+|.", re.DOTALL
)
"""A name without a closing quote extends to the end of its line, so that a text of many quotes
is matched in linear time."""


def _refuse_oversize(text: str) -> None:
    """Refuses long or deeply nested texts before any structure is built (the
    transformer and the checks recurse)."""
    if len(text) > MAX_CHARACTERS:
        raise ProgramRefused(
            [
                Problem(
                    SourceLocation(1, 1),
                    Message("the program has {count:,} characters; at most {most:,} are allowed", count=len(text), most=MAX_CHARACTERS),
                )
            ]
        )
    depth = negations = 0
    signs = 0
    line = 1
    for match in _NESTING.finditer(text):
        piece = match.group()
        line += piece.count("\n")
        if piece in "([":
            depth += 1
        elif piece in ")]":
            depth -= 1
        elif piece == "\\+":
            negations += 1
        elif not piece.isspace() and not piece.startswith(_NOT_READ):
            negations = 0
            signs = _longest_run_of_signs(piece)
        if max(depth, negations, signs) > MAX_DEPTH:
            raise ProgramRefused([Problem(SourceLocation(line, 1), Message("terms are nested deeper than {most} levels", most=MAX_DEPTH))])


_NOT_READ = ("%", "/*", "'")
"""The beginnings of comments and quoted names, which contain no operators."""
_OPERATORS = re.compile(r"[-+*/]|\bmod\b|\brem\b")


def _longest_run_of_signs(piece: str) -> int:
    """The greatest depth of a term in `piece` by operators alone: a chain of n
    operators is a term n deep."""
    return max((len(_OPERATORS.findall(part)) for part in re.split(r"[,;.=<>]", piece)), default=0)


def _problem(fault: UnexpectedInput, text: str) -> Problem:
    if isinstance(fault, UnexpectedEOF) or (isinstance(fault, UnexpectedToken) and fault.token.type == "$END"):
        last = text.rstrip().split("\n")
        return Problem(
            SourceLocation(len(last), len(last[-1]) + 1), Message("the text ends inside a clause; a clause ends with '.' and a space or a new line")
        )
    location = SourceLocation(max(fault.line, 1), max(fault.column, 1))
    if text.startswith("/*", fault.pos_in_stream or 0):
        return Problem(location, Message("this comment has no end: '*/' is missing"))
    if isinstance(fault, UnexpectedCharacters):
        return Problem(location, _unexpected(text[fault.pos_in_stream or 0 :]))
    token = fault.token if isinstance(fault, UnexpectedToken) else ""
    if isinstance(fault, UnexpectedToken) and fault.token.type in _BEGINNINGS and {"END", "COMMA"} <= fault.accepts:
        return Problem(
            location, Message("a ',' between conditions or the '.' at the end of a clause is missing before {found}", found=repr(str(token)))
        )
    return Problem(location, Message("unexpected {found}; expected {expected}", found=repr(str(token)), expected=_expected(fault)))


def _unexpected(rest: str) -> Message:
    """What is wrong with the character that `rest` begins with, and the remedy."""
    found = repr(rest[0])
    if rest[0].isalpha():
        return Message("unexpected character {found}; names with other letters than a to z are written in quotes: 'größe'", found=found)
    if rest[0].isspace():
        return Message("unexpected character {found}; use an ordinary space or a new line instead", found=found)
    return Message("unexpected character {found}", found=found)


_BEGINNINGS = ("ATOM", "QUOTED", "VARIABLE", "NAF")
"""Tokens that begin a condition or a clause."""
_TOKEN_NAMES = {
    "END": "'.'", "LPAR": "'('", "RPAR": "')'", "LSQB": "'['", "RSQB": "']'", "COMMA": "','", "SEMICOLON": "';'", "CUT": "'!'",
    "RELATION": Message("a comparison"), "SIGN": Message("'+' or '-'"), "FACTOR": Message("'*' or '/'"), "NUMBER": Message("a number"),
    "VARIABLE": Message("a variable"),
    "ATOM": Message("a name"), "QUOTED": Message("a quoted name"), "NAF": "'\\+'", "$END": Message("the end"),
}  # fmt: skip


def _expected(fault: UnexpectedInput) -> Message:
    accepted: set[str] = getattr(fault, "accepts", None) or getattr(fault, "expected", None) or set()
    names = sorted({_TOKEN_NAMES.get(name, "':-'") for name in accepted})
    return either(names) if names else Message("something else")


@cache
def _lark() -> Lark:
    grammar = (Path(__file__).parent / "grammar.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=False, maybe_placeholders=True, transformer=_Builder())


def _location(token: Token) -> SourceLocation:
    return SourceLocation(token.line or 1, token.column or 1)


def _unquote(text: str) -> str:
    r"""The name between quotes; a doubled quote, and a quote or backslash after a
    backslash, are one character.

    >>> _unquote(r"'St. John''s \'East\' \\'")
    "St. John's 'East' \\"
    """
    return re.sub(r"''|\\(['\\])", lambda match: match[1] or "'", text[1:-1])


@v_args(inline=True)
class _Builder(Transformer[Token, Any]):
    """Builds terms while the parser reduces, without a parse tree."""

    def __init__(self) -> None:
        super().__init__()
        self._anonymous = 0

    def start(self, *clauses: Clause) -> list[Clause]:
        return list(clauses)

    def rule(self, head: Term, body: Term | None, end: Token) -> Clause:
        return Clause(head, body, head.location, _location(end))

    def directive(self, body: Term, end: Token) -> Clause:
        return Clause(None, body, body.location, _location(end))

    def prefixed_directive(self, name: Token, body: Term, end: Token) -> Clause:
        return Clause(None, Compound(str(name), (body,), _location(name)), _location(name), _location(end))

    def disjunction(self, *parts: Term) -> Term:
        return Compound(DISJUNCTION, parts, parts[0].location)

    def conjunction(self, *parts: Term) -> Term:
        return Compound(CONJUNCTION, parts, parts[0].location)

    def negation(self, sign: Token, literal: Term) -> Term:
        return Compound(NEGATION, (literal,), _location(sign))

    def cut(self, token: Token) -> Term:
        return Atom(CUT, _location(token))

    def relation(self, left: Term, operator: Token, right: Term) -> Term:
        return Compound(str(operator), (left, right), left.location)

    def operation(self, left: Term, operator: Token, right: Term) -> Term:
        return Compound(str(operator), (left, right), left.location)

    def signed(self, sign: Token, operand: Term) -> Term:
        if isinstance(operand, Number):
            negative = sign == "-"
            return Number(-operand.value if negative else operand.value, ("-" if negative else "") + operand.text, _location(sign))
        return Compound(str(sign), (operand,), _location(sign))

    def number(self, token: Token) -> Term:
        return Number(float(token), str(token), _location(token))

    def variable(self, token: Token) -> Term:
        if str(token) == "_":
            self._anonymous += 1
            return Variable(f"{ANONYMOUS}{self._anonymous}", _location(token))
        return Variable(str(token), _location(token))

    def atom(self, token: Token) -> Term:
        return Atom(str(token), _location(token))

    def quoted(self, token: Token) -> Term:
        return Atom(_unquote(token), _location(token))

    def compound(self, functor: Token, arguments: tuple[Term, ...]) -> Term:
        name = str(functor)
        return Compound(_unquote(name) if name.startswith("'") else name, arguments, _location(functor))

    def list_term(self, items: tuple[Term, ...] | None = None) -> Term:
        members = items or ()
        return ListTerm(members, members[0].location if members else SourceLocation(1, 1))

    def arguments(self, *items: Term) -> tuple[Term, ...]:
        return items
