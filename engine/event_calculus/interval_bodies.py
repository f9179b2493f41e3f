"""Bodies of holdsFor rules: lists of intervals, interval constructs, and
conditions over the arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from engine.event_calculus import builtins
from engine.event_calculus.literals import InvalidClause, event_pattern, expression_of, fluent_pattern, is_cut, literal_of, name_of, unknown
from engine.event_calculus.syntax import Construct, Happens, IntervalLiteral, Literal, NonEmpty, Retrieve, timed
from engine.event_calculus.terms import NEGATION, Compound, ListTerm, Term, Variable, variables
from engine.model.messages import Message, either

_UNARY = {"union_all": 0, "intersect_all": 0, "complement_all": 0}


def interval_body(body: tuple[Term, ...]) -> tuple[tuple[IntervalLiteral, ...], tuple[Literal, ...]]:
    intervals: list[IntervalLiteral] = []
    conditions: list[Literal] = []
    aliases: dict[str, str] = {}
    for term in body:
        if is_cut(term):
            continue
        literal = _interval_literal(term, intervals, aliases)
        if literal is None:
            conditions.append(literal_of(term))
    renamed = tuple(_rename(literal, aliases) for literal in intervals)
    for condition in timed(conditions):
        raise InvalidClause(condition.location, Message("happensAt and holdsAt have a time; they cannot be conditions of holdsFor"))
    return renamed, tuple(conditions)


def _rename(literal: IntervalLiteral, aliases: Mapping[str, str]) -> IntervalLiteral:
    if isinstance(literal, Construct):
        return replace(literal, inputs=tuple(aliases.get(name, name) for name in literal.inputs), out=aliases.get(literal.out, literal.out))
    if isinstance(literal, Retrieve):
        return replace(literal, out=aliases.get(literal.out, literal.out))
    return replace(literal, list=aliases.get(literal.list, literal.list))


def _interval_literal(term: Term, into: list[IntervalLiteral], aliases: dict[str, str]) -> bool | None:
    """Appends `term` to `into` if it is an interval literal."""
    if not isinstance(term, Compound):
        return None
    inner, negated = term, False
    if term.name == NEGATION and isinstance(term.arguments[0], Compound):
        inner, negated = term.arguments[0], True
    if inner.name in ("=", "\\=", "==", "\\==") and any(isinstance(side, ListTerm) for side in inner.arguments):
        side = next((side for side in inner.arguments if isinstance(side, Variable)), None)
        if side is None or any(isinstance(other, ListTerm) and other.items for other in inner.arguments):
            raise InvalidClause(inner.location, Message("lists can only be compared with []"))
        empty = inner.name in ("=", "==")
        into.append(NonEmpty(side.name, empty != negated, term.location))
        return True
    bound = {literal.out for literal in into if isinstance(literal, Retrieve | Construct)}
    if inner.name == "=" and not negated and all(isinstance(side, Variable) for side in inner.arguments):
        names = [side.name for side in inner.arguments if isinstance(side, Variable)]
        for new, old in (names, names[::-1]):
            if old in bound and new not in bound:
                aliases[new] = old
                return True
        return None
    if negated:
        if inner.name == "holdsFor":
            raise InvalidClause(term.location, Message("holdsFor cannot be negated; use complement_all or compare its list with []"))
        return None
    if inner.name == "holdsFor":
        arguments = inner.arguments[1:] if len(inner.arguments) == 3 else inner.arguments
        if len(arguments) != 2 or not isinstance(arguments[1], Variable):
            raise InvalidClause(inner.location, Message("holdsFor takes a fluent with its value and a variable for its list"))
        into.append(Retrieve(fluent_pattern(arguments[0]), arguments[1].name, inner.location))
        return True
    construct = _construct(inner, bound)
    if construct is None:
        return None
    into.append(construct)
    return True


def _construct(term: Compound, bound: set[str]) -> Construct | None:
    """`term` as a construct, null if it is none; `bound` are the lists before it. An Allen relation
    has lists, a fact such as meets(A, B) has none."""
    name, arguments = term.name, term.arguments
    if name in _UNARY:
        _expect(term, 2)
        return Construct(name, _lists(arguments[0]), _list(arguments[1]), term.location)
    if name == "relative_complement_all":
        _expect(term, 3)
        return Construct(name, (_list(arguments[0]), *_lists(arguments[1])), _list(arguments[2]), term.location)
    if name == "intDurGreater":
        _expect(term, 3)
        return Construct("longer_than", (_list(arguments[0]),), _list(arguments[2]), term.location, amount=expression_of(arguments[1]))
    if name == "impliedSpeedBelow":
        _expect(term, 4)
        position, locations = event_pattern(arguments[1])
        return Construct(
            "slower_than", (_list(arguments[0]),), _list(arguments[3]), term.location, amount=expression_of(arguments[2]),
            position=Happens(position, locations, "", arguments[1].location),
        )  # fmt: skip
    if name == "allen" or (name in builtins.ALLEN and (term.indicator in builtins.RESERVED or bound & {v.name for v in variables(term)})):
        return _allen(term)
    return None


def _allen(term: Compound) -> Construct:
    arguments = term.arguments
    if term.name == "allen":
        _expect(term, 5, 6)
        relation = name_of(arguments[0])
        if relation not in builtins.ALLEN:
            raise InvalidClause(term.location, unknown(Message("Allen relation"), relation, builtins.ALLEN))
        arguments = arguments[1:]
    else:
        _expect(term, 4, 5)
        relation = term.name
    mode = name_of(arguments[2])
    if mode not in builtins.ALLEN_MODES:
        raise InvalidClause(term.location, unknown(Message("output mode"), mode, builtins.ALLEN_MODES))
    return Construct(
        "allen", (_list(arguments[0]), _list(arguments[1])), _list(arguments[-1]), term.location, relation=relation, mode=builtins.ALLEN_MODES[mode],
        satisfied=_requires_pair(arguments[3]) if len(arguments) == 5 else None,
    )  # fmt: skip


def _requires_pair(term: Term) -> bool | None:
    """Whether some pair must be in the relation; null (an anonymous variable): it need not."""
    if isinstance(term, Variable) and term.name.startswith("_"):
        return None
    if str(term) not in ("true", "false", "0"):
        raise InvalidClause(term.location, Message("says whether some pair must be in the relation: true, false or _, not {term}", term=term))
    return str(term) == "true"


def _expect(term: Compound, *arities: int) -> None:
    if len(term.arguments) not in arities:
        raise InvalidClause(
            term.location,
            Message("{name} takes {arities} arguments, not {count}", name=term.name, arities=either(arities), count=len(term.arguments)),
        )


def _list(term: Term) -> str:
    if isinstance(term, Variable):
        return term.name
    raise InvalidClause(term.location, Message("expected a variable that stands for a list of intervals, not {term}", term=term))


def _lists(term: Term) -> tuple[str, ...]:
    if isinstance(term, ListTerm) and term.items:
        return tuple(_list(item) for item in term.items)
    if isinstance(term, Variable):
        return (term.name,)
    raise InvalidClause(term.location, Message("expected a list of variables, as in [I1, I2]"))


def lists_read(literal: IntervalLiteral) -> tuple[str, ...]:
    if isinstance(literal, Construct):
        return literal.inputs
    return (literal.list,) if isinstance(literal, NonEmpty) else ()
