"""Compiles clauses to a checked program: every fault is found here, with its place,
so evaluation finds none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from engine.event_calculus import builtins
from engine.event_calculus.completion import Completion
from engine.event_calculus.declarations import Declarations
from engine.event_calculus.heads import DECLARATIONS, HEADS, RULE_HEADS
from engine.event_calculus.literals import MAX_ARGUMENTS, InvalidClause, event_pattern, is_near, term_text, unknown
from engine.event_calculus.parsed_program import ParsedProgram
from engine.event_calculus.parser import ProgramRefused, parse
from engine.event_calculus.program import Program
from engine.event_calculus.rule_clauses import RuleClauses
from engine.event_calculus.terms import Atom, Clause, Compound, Number, variables
from engine.model.messages import Message, either

MAX_FACTS = 200_000


def compile_text(text: str, *, inputs: Mapping[str, tuple[str, int]] | None = None, regions: Iterable[str] | None = None) -> Program:
    """The program written in `text`.

    `inputs`: name to (EVENT, POINTS or INTERVALS, number of arguments) for inputs declared outside
    the text; `regions`: names of stored regions, null if they are not to be checked. Raises
    ProgramRefused with all faults found.
    """
    parsed = ParsedProgram(inputs or {}, None if regions is None else set(regions))
    _Clauses(parsed).read(parse(text))
    program = Completion(parsed).program()
    if parsed.problems:
        raise ProgramRefused(parsed.problems)
    return program


class _Clauses:
    """Reads facts and background rules, and passes the other clauses to their readers."""

    def __init__(self, parsed: ParsedProgram) -> None:
        self.parsed = parsed
        self.declarations, self.rules = Declarations(parsed), RuleClauses(parsed)

    def read(self, clauses: Iterable[Clause]) -> None:
        rules: list[Clause] = []
        for clause in clauses:
            if self._is_rule_of_ours(clause):
                rules.append(clause)
            elif clause.head is not None:
                self._background(clause)
        for clause in rules:
            try:
                self._clause(clause)
            except InvalidClause as faulty:
                self.parsed.fault(faulty.location, faulty.message)

    def _is_rule_of_ours(self, clause: Clause) -> bool:
        head = clause.head
        if isinstance(head, Atom):
            return False
        if head is None:
            body = clause.body
            if not (isinstance(body, Compound) and body.name in ("dynamic", "discontiguous", "multifile")):
                self.parsed.fault(
                    clause.location, Message("directives are not run; only dynamic, discontiguous and multifile are accepted (and ignored)")
                )
            else:
                self.parsed.notice(
                    clause.location, Message("the directive {directive}; nothing has to be declared before it is used", directive=term_text(body))
                )
            return False
        return isinstance(head, Compound) and head.name in HEADS and self._is_of_language(head)

    @staticmethod
    def _is_of_language(head: Compound) -> bool:
        """Whether a clause with this head is a rule or a declaration, not a fact with the same
        name: p(_) with a fluent, not p(a, 3)."""
        arities = RULE_HEADS.get(head.name) or DECLARATIONS[head.name]
        fluent = any(isinstance(argument, Compound) and argument.name == "=" for argument in head.arguments)
        return len(head.arguments) in arities or fluent or head.name in RULE_HEADS

    def _background(self, clause: Clause) -> None:
        head = clause.head
        if not isinstance(head, Compound):
            self.parsed.fault(clause.location, Message("a clause must start with a name and arguments, not {head}", head=head))
            return
        if len(head.arguments) > MAX_ARGUMENTS:
            self.parsed.fault(
                clause.location,
                Message("{name} has {count} arguments; at most {most} are allowed", name=head.name, count=len(head.arguments), most=MAX_ARGUMENTS),
            )
        elif head.indicator in builtins.RESERVED:
            self.parsed.fault(clause.location, Message("{name}/{count} is built in and cannot be defined", name=head.name, count=len(head.arguments)))
        elif any(isinstance(argument, Compound) and argument.name == "=" for argument in head.arguments) or (
            any(isinstance(argument, Compound) for argument in head.arguments) and is_near(head.name, RULE_HEADS)
        ):
            self.parsed.fault(clause.location, unknown(Message("kind of rule"), head.name, HEADS))
        elif clause.body is not None:
            self.parsed.expander.define(head, clause.body)
        elif next(variables(head), None) is not None:
            self.parsed.expander.define(head, None)
        else:
            self._fact(head)

    def _fact(self, head: Compound) -> None:
        try:
            indicator, arguments = (head.name, len(head.arguments)), head.arguments
            if not all(isinstance(argument, Atom | Number) for argument in arguments):
                name, arguments = event_pattern(head)
                indicator = (name, len(arguments))
        except InvalidClause as faulty:
            self.parsed.fault(faulty.location, faulty.message)
            return
        self.parsed.expander.facts.add(head.indicator)
        self.parsed.fact_locations.setdefault(indicator, head.location)
        rows = self.parsed.facts.setdefault(indicator, [])
        rows.append(arguments)
        if len(rows) == MAX_FACTS + 1:
            self.parsed.fault(
                head.location, Message("more than {most:,} facts {name}/{arity}", most=MAX_FACTS, name=indicator[0], arity=indicator[1])
            )

    def _clause(self, clause: Clause) -> None:
        head = clause.head
        assert isinstance(head, Compound)
        known = RULE_HEADS.get(head.name) or DECLARATIONS[head.name]
        if len(head.arguments) not in known:
            raise InvalidClause(
                head.location,
                Message("{name} takes {arities} arguments, not {count}", name=head.name, arities=either(known), count=len(head.arguments)),
            )
        if head.name in DECLARATIONS:
            self.declarations.read(head, clause)
        else:
            self.rules.read(head, clause)
