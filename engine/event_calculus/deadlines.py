"""fi, maxDuration and maxDurationUE: the groundings of a deadline, and its duration.

The conditions of a deadline are background knowledge, so they are satisfied once,
when the program is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from engine.event_calculus.conditions import KnowledgeBase, as_symbols, number, satisfy, without_missing_numbers
from engine.event_calculus.literals import unknown
from engine.event_calculus.ordering import Unsafe, order_body
from engine.event_calculus.syntax import Deadline, Fact, FluentPattern, Indicator, Literal, Negation, timed
from engine.event_calculus.tables import Rows, Symbols, facts_table, number_text, one_row, symbol_name
from engine.event_calculus.terms import Atom, Number, SourceLocation, Term, Variable, is_span
from engine.model.messages import Message

_NOWHERE = SourceLocation(0, 0)
Row = tuple[Atom | Number | None, ...]


@dataclass(frozen=True)
class FiClause:
    """One way to satisfy a fi clause; `extends`: maxDurationUE."""

    before: FluentPattern
    after: FluentPattern
    delay: Term
    conditions: tuple[Literal, ...]
    extends: bool
    location: SourceLocation


class Deadlines:
    """Makes deadlines from clauses; `extends` are the fluents that p declares."""

    def __init__(
        self,
        facts: Mapping[Indicator, Sequence[tuple[Term, ...]]],
        extends: Sequence[FluentPattern],
        fault: Callable[[SourceLocation, Message], None],
    ) -> None:
        self._facts = facts
        self._extends = extends
        self._fault = fault
        self._symbols = Symbols()
        self._used: set[int] = set()

    def compile(self, clauses: Sequence[FiClause]) -> tuple[Deadline, ...]:
        found = [deadline for clause in clauses for deadline in self._compile_clause(clause)]
        for index, pattern in enumerate(self._extends):
            if index not in self._used:
                self._fault(
                    pattern.location,
                    Message("p({pattern}) says that new initiations begin the duration of a fi({pattern}, ...) anew; there is none", pattern=pattern),
                )
        return tuple(found)

    def _compile_clause(self, clause: FiClause) -> list[Deadline]:
        """The deadlines of a clause; several if a grounding has several durations."""
        extends = clause.extends or self._declared_extends(clause.before, clause.location)
        rows = self._rows(clause)
        if rows is None:
            return []
        found: list[dict[Row, int]] = []
        for row, delay in rows:
            own = next((known for known in found if row not in known), None)
            if own is None:
                found.append(own := {})
            own[row] = delay
        before, after = clause.before, clause.after
        return [Deadline(before.indicator, before.value, after.value, tuple(own.items()), extends, clause.location) for own in found]

    def _rows(self, clause: FiClause) -> list[tuple[Row, int]] | None:
        """The constants of the arguments, and the duration, without
        duplicates; null after a fault."""
        satisfied = self._satisfying_rows(clause)
        if satisfied is None:
            return None
        if satisfied.n == 0:
            self._fault(clause.location, Message("no facts satisfy the conditions of this deadline, so it would apply to no grounding"))
            return None
        if isinstance(clause.delay, Variable) and clause.delay.name not in satisfied.columns:
            self._fault(
                clause.delay.location,
                Message("no fact fixes the duration {delay}: add a condition, as in fi(F=V, F=W, D) :- limit(D)", delay=clause.delay),
            )
            return None
        columns = [self._column(satisfied, term) for term in clause.before.arguments]
        delays = np.broadcast_to(np.asarray(number(self._knowledge_base(), satisfied, clause.delay), np.float64), (satisfied.n,))
        rows: dict[tuple[Row, int], None] = {}
        for index, delay in enumerate(delays.tolist()):
            if not is_span(delay):
                shown = "what is no number" if delay != delay else number_text(delay)
                self._fault(
                    clause.location, Message("the duration of a deadline must be a positive whole number below 2^60, not {shown}", shown=shown)
                )
                return None
            rows[tuple(None if column is None else column[index] for column in columns), int(delay)] = None
        return list(rows)

    def _satisfying_rows(self, clause: FiClause) -> Rows | None:
        for timed_ in timed(clause.conditions):
            self._fault(timed_.location, Message("the conditions of a deadline are facts, comparisons and arithmetic: they have no time"))
            return None
        for fact in facts_of(clause.conditions):
            if fact.indicator not in self._facts:
                self._fault(fact.location, unknown(Message("fact"), fact.name, {name for name, _ in self._facts}))
                return None
        try:
            body = order_body(clause.conditions, set())
        except Unsafe as unsafe:
            self._fault(unsafe.location, unsafe.message)
            return None
        kb = self._knowledge_base()
        for fact in facts_of(body):
            if fact.indicator not in kb.facts:
                kb.facts[fact.indicator] = facts_table(self._facts[fact.indicator], self._symbols)
        return without_missing_numbers(satisfy(kb, one_row(), body), clause.before.arguments)

    def _knowledge_base(self) -> KnowledgeBase:
        return KnowledgeBase(self._symbols, 1, 0, 0, lambda pattern: [])

    def _column(self, rows: Rows, term: Term) -> list[Atom | Number] | None:
        """The constants that a term is bound to; null for a variable that
        the conditions leave open."""
        if isinstance(term, Atom | Number):
            return [term] * rows.n
        assert isinstance(term, Variable)
        if term.name not in rows.columns:
            return None
        codes = as_symbols(self._knowledge_base(), rows.columns[term.name], rows.kinds[term.name])
        return [Atom(self._symbols.names[code], _NOWHERE) for code in codes.tolist()]

    def _declared_extends(self, before: FluentPattern, location: SourceLocation) -> bool:
        """Whether p is declared for the deadline's groundings: for all of them, or for none."""
        found = False
        for number_, pattern in enumerate(self._extends):
            pairs = list(zip(pattern.terms, before.terms, strict=True)) if pattern.indicator == before.indicator else []
            names = [tuple(symbol_name(term) if isinstance(term, Atom | Number) else None for term in pair) for pair in pairs]
            if not pairs or any(one is not None and other is not None and one != other for one, other in names):
                continue
            self._used.add(number_)
            if any(one is not None and other is None for one, other in names):
                self._fault(
                    location,
                    Message(
                        "p({pattern}) is only about some groundings of {before}; write a deadline for them and one for the others",
                        pattern=pattern,
                        before=before,
                    ),
                )
            found = True
        return found


def facts_of(literals: Sequence[Literal]) -> list[Fact]:
    """All facts among conditions, also those in negations."""
    found: list[Fact] = []
    for literal in literals:
        if isinstance(literal, Negation):
            found += facts_of(literal.body)
        elif isinstance(literal, Fact):
            found.append(literal)
    return found
