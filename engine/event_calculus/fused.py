"""holdsFor rules over few lists in one compiled call: the groundings, and the results
of the interval constructs.

Most windows have some dozens of lists for a rule. Evaluated literal by literal, a rule takes some
20 calls into numpy, which take most of the time (measured on the CAVIAR windows: 185 us a rule, of
which 10 us in arithmetic). Here the lists of a rule are concatenated, and one kernel joins and
merges them. Joining compares all rows of two lists: rules with more than MAX_ROWS rows are
evaluated literal by literal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from engine.event_calculus.candidates import Needs
from engine.event_calculus.compiled import jit
from engine.event_calculus.intervals import INF, INTERSECTION, UNION, Intervals, Ints, grow, write_difference, write_intersection, write_union
from engine.event_calculus.keys import find_indexed, number_rows, take_rows
from engine.event_calculus.memory import IndexedRows
from engine.event_calculus.syntax import Construct, IntervalRule, Retrieve
from engine.event_calculus.tables import FluentTable
from engine.event_calculus.terms import Atom, Number, Term, Variable, variable_names

MAX_ROWS = 128
"""Rows of one list's table up to which comparing all pairs is faster than sorting."""
_OPERATORS = ("union_all", "intersect_all", "relative_complement_all", "complement_all")
COMPLEMENT = 3


@dataclass(frozen=True)
class FusedRule:
    """A rule as numbers for the kernels.

    `names`: its variables, at most two. `retrieves`: its lists. `shape`: for each key column of
    each list the variable's index, or -1 - p for the constant at index p of `constants`. `head`:
    the same for the key columns of the answer. `needs`: alternatives, each a row of list indexes
    ended by -1 (`alternatives` are the same as tuples); none if the declared groundings of the head
    are the candidates. `program`: operator, number of inputs, inputs of each construct; null if the
    constructs must be evaluated one by one. `out`: index of the answer.
    """

    names: tuple[str, ...]
    retrieves: tuple[Retrieve, ...]
    shape: Ints
    widths: Ints
    head: Ints
    constants: tuple[Atom | Number, ...]
    needs: Ints
    alternatives: tuple[tuple[int, ...], ...]
    program: Ints | None
    out: int

    def lacks_lists(self, tables: Sequence[FluentTable]) -> bool:
        """Whether each alternative has an empty list."""
        return bool(self.alternatives) and not any(all(tables[place].n for place in needs) for needs in self.alternatives)


def fused_rule(rule: IntervalRule, names: Sequence[str], alternatives: Sequence[Needs], *, grounded: bool) -> FusedRule | None:
    """The rule as numbers, or null if it has a form that cannot be evaluated in this way.
    `grounded`: its head has declared groundings."""
    lists = [literal for literal in rule.intervals if isinstance(literal, Retrieve)]
    place_of = {position: lists.index(literal) for position, literal in enumerate(rule.intervals) if isinstance(literal, Retrieve)}
    terms = [literal.fluent.terms for literal in lists]
    used = [variable_names(own) for own in terms]
    variables = sum(isinstance(term, Variable) for own in terms for term in own)
    head = variable_names(rule.head.terms)
    from_grounding = grounded and list(alternatives) == [frozenset()]
    covered = from_grounding or all(set(names) <= set().union(*(used[place_of[position]] for position in needs)) for needs in alternatives)
    if (
        not 1 <= len(names) <= 2
        or not covered
        or not alternatives
        or variables != sum(map(len, used))
        or not set().union(*used) <= set(names) == head
    ):
        return None
    constants: list[Atom | Number] = []
    shape = [_encode_term(term, names, constants) for own in terms for term in own]
    head_ = [_encode_term(term, names, constants) for term in rule.head.terms]
    most = max(map(len, alternatives))
    places = tuple(tuple(sorted(place_of[position] for position in needs)) for needs in alternatives if needs)
    needed = np.array([[*one, *[-1] * (most + 1 - len(one))] for one in places], np.int64).reshape(len(places), most + 1)
    program, out = _program(rule, {literal.out: place for place, literal in enumerate(lists)})
    widths = np.array([len(own) for own in terms])
    return FusedRule(tuple(names), tuple(lists), np.array(shape), widths, np.array(head_), tuple(constants), needed, places, program, out)


def _encode_term(term: Term, names: Sequence[str], constants: list[Atom | Number]) -> int:
    if isinstance(term, Variable):
        return names.index(term.name)
    assert isinstance(term, Atom | Number)
    constants.append(term)
    return -len(constants)


def _program(rule: IntervalRule, places: dict[str, int]) -> tuple[Ints | None, int]:
    program: list[int] = []
    for literal in rule.intervals:
        if isinstance(literal, Construct):
            if literal.operator not in _OPERATORS:
                return None, -1
            program += [_OPERATORS.index(literal.operator), len(literal.inputs), *(places[name] for name in literal.inputs)]
            places[literal.out] = len(places)
        elif not isinstance(literal, Retrieve):
            return None, -1
    return np.array(program, np.int64), places[rule.out]


class _Tables(NamedTuple):
    """The tables of a rule's lists, concatenated: key columns, offsets and ends of the
    lists, rows of each table."""

    keys: Ints
    ptr: Ints
    s: Ints
    e: Ints
    rows: Ints


class _Form(NamedTuple):
    """The arrays of a `FusedRule` for the kernels, with the codes of its constants."""

    widths: Ints
    shape: Ints
    constants: Ints
    needs: Ints
    head: Ints
    names: int


class ListTables:
    """The tables of a rule's lists, concatenated."""

    def __init__(self, rule: FusedRule, tables: Sequence[FluentTable], constants: Ints, declared: IndexedRows | None) -> None:
        """`declared`: the groundings of the head, if they are declared and listed."""
        self.rule = rule
        self.form = _Form(rule.widths, rule.shape, constants, rule.needs, rule.head, len(rule.names))
        self.declared = declared
        self.tables = _Tables(
            keys=np.concatenate([table.keys.reshape(-1) for table in tables]),
            ptr=np.concatenate([table.lists.ptr for table in tables]),
            s=np.concatenate([table.lists.s for table in tables]),
            e=np.concatenate([table.lists.e for table in tables]),
            rows=np.array([table.n for table in tables]),
        )

    def candidates(self) -> Ints:
        """Distinct values of the rule's variables (one row each) for which it may have an
        answer."""
        if not len(self.form.needs):
            assert self.declared is not None
            return _declared_candidates(self.declared.keys, self.form)
        return _candidates(self.tables.keys, self.tables.rows, self.form)

    def algebra(self, variables: Ints | None, begin: int) -> FluentTable:
        """The non-empty answers of the candidates `variables` (null: of all)."""
        program = self.rule.program
        assert program is not None
        if variables is None:
            variables = self.candidates()
        keys, ptr, s, e = _algebra(
            self.tables, self.form, variables, (program, self.rule.out), begin, self.declared or _ALL, self.declared is not None
        )
        return FluentTable(keys, Intervals(ptr, s, e))


_ALL = IndexedRows(np.empty((0, 0), np.int64), np.empty(0, np.int64))


@jit
def _fits(
    keys: Ints, at: int, rows: int, width: int, row: int, shape: Ints, column: int, constants: Ints, first: int, second: int
) -> tuple[bool, int, int]:
    """Whether a row of a list agrees with the variables so far (-1: not bound),
    and the variables after it."""
    for j in range(width):
        value, code = keys[at + j * rows + row], shape[column + j]
        if code < 0:
            if value != constants[-1 - code]:
                return False, first, second
        elif code == 0:
            if first >= 0 and first != value:
                return False, first, second
            first = value
        else:
            if second >= 0 and second != value:
                return False, first, second
            second = value
    return True, first, second


@jit
def _candidates(keys: Ints, rows: Ints, form: _Form) -> Ints:
    widths, shape, constants, needs, _, variables = form
    lists = len(rows)
    at, column = np.zeros(lists, np.int64), np.zeros(lists, np.int64)
    for i in range(1, lists):
        at[i] = at[i - 1] + rows[i - 1] * widths[i - 1]
        column[i] = column[i - 1] + widths[i - 1]
    found = np.empty((64, 2), np.int64)
    n = 0
    for alternative in range(len(needs)):
        begin = n
        if n + 1 >= len(found):
            found = _grow_rows(found)
        found[n, 0] = found[n, 1] = -1
        end = n + 1
        for k in range(needs.shape[1]):
            one = needs[alternative, k]
            if one < 0:
                break
            low, high = begin, end
            for i in range(low, high):
                for row in range(rows[one]):
                    fits, first, second = _fits(keys, at[one], rows[one], widths[one], row, shape, column[one], constants, found[i, 0], found[i, 1])
                    if fits:
                        if end == len(found):
                            found = _grow_rows(found)
                        found[end, 0], found[end, 1] = first, second
                        end += 1
            # The rows before this join are overwritten by its result.
            for i in range(high, end):
                found[low + i - high] = found[i]
            begin, end = low, low + end - high
        n = end
    rows_ = np.empty((variables, n), np.int64)
    for i in range(n):
        for j in range(variables):
            rows_[j, i] = found[i, j]
    return take_rows(rows_, number_rows(rows_)[1]) if len(needs) > 1 else rows_


@jit
def _declared_candidates(keys: Ints, form: _Form) -> Ints:
    """The variables of the declared groundings that have the head's constants."""
    head, constants = form.head, form.constants
    found = np.empty((form.names, keys.shape[1]), np.int64)
    n = 0
    for i in range(keys.shape[1]):
        fits = True
        for j in range(len(head)):
            fits = fits and (head[j] >= 0 or keys[j, i] == constants[-1 - head[j]])
        if fits:
            for j in range(len(head)):
                if head[j] >= 0:
                    found[head[j], n] = keys[j, i]
            n += 1
    return np.ascontiguousarray(found[:, :n])


@jit
def _grow_rows(found: Ints) -> Ints:
    larger = np.empty((2 * len(found), 2), np.int64)
    larger[: len(found)] = found
    return larger


@jit
def _algebra(
    tables: _Tables, form: _Form, variables: Ints, program: tuple[Ints, int], begin: int, declared: IndexedRows, only_declared: bool
) -> tuple[Ints, Ints, Ints, Ints]:
    """Keys and lists (ptr, s, e) of the candidates `variables` that have an answer. `program`: the
    constructs, and the index of the answer."""
    keys, ptr, s, e, rows = tables
    widths, shape, constants, _, head, _ = form
    constructs, out = program
    n, lists = variables.shape[1], len(rows)
    answer = np.empty((len(head), n), np.int64)
    for j in range(len(head)):
        for i in range(n):
            answer[j, i] = variables[head[j], i] if head[j] >= 0 else constants[-1 - head[j]]
    allowed = find_indexed(declared.keys, declared.slots, answer) if only_declared else np.zeros(n, np.int64)
    # A construct has at most as many intervals as it reads, and one more for a complement; each
    # candidate reads at most all lists.
    size = (len(s) + len(constructs) + 2) * (lists + len(constructs) + 1)
    ws, we = np.empty(size, np.int64), np.empty(size, np.int64)
    low, high = np.zeros(lists + len(constructs), np.int64), np.zeros(lists + len(constructs), np.int64)
    picked, out_ptr = np.empty(n, np.int64), np.zeros(n + 1, np.int64)
    capacity = max(64, len(s))
    out_s, out_e = np.empty(capacity, np.int64), np.empty(capacity, np.int64)
    m = total = 0
    for i in range(n):
        if allowed[i] < 0:
            continue
        first, second = variables[0, i], variables[-1, i]
        w = 0
        at = column = pointer = base = 0
        for one in range(lists):
            low[one] = w
            for row in range(rows[one]):
                fits, _, _ = _fits(keys, at, rows[one], widths[one], row, shape, column, constants, first, second)
                if fits:
                    for k in range(base + ptr[pointer + row], base + ptr[pointer + row + 1]):
                        if e[k] > begin:
                            ws[w], we[w] = max(s[k], begin), e[k]
                            w += 1
                    break
            high[one] = w
            base += ptr[pointer + rows[one]]
            at += rows[one] * widths[one]
            column += widths[one]
            pointer += rows[one] + 1
        _run(constructs, lists, ws, we, low, high, w, begin)
        if high[out] > low[out]:
            while total + high[out] - low[out] > len(out_s):
                out_s, out_e = grow(out_s), grow(out_e)
            for k in range(low[out], high[out]):
                out_s[total], out_e[total] = ws[k], we[k]
                total += 1
            picked[m] = i
            m += 1
            out_ptr[m] = total
    return take_rows(answer, picked[:m]), out_ptr[: m + 1].copy(), out_s[:total].copy(), out_e[:total].copy()


@jit
def _run(program: Ints, lists: int, s: Ints, e: Ints, low: Ints, high: Ints, w: int, begin: int) -> None:
    """Runs the constructs of a rule in sequence: list i is [s[k], e[k]) for low[i] <= k < high[i];
    results are written from index w on."""
    j, slot = 0, lists
    while j < len(program):
        operator, inputs, a = program[j], program[j + 1], program[j + 2]
        if operator == COMPLEMENT:
            # A complement is the whole window without the union of its inputs.
            s[w], e[w] = begin, INF
            part_low, part_high = w, w + 1
            w += 1
            start = 2
        else:
            part_low, part_high = low[a], high[a]
            start = 3
        for k in range(j + start, j + 2 + inputs):
            b = program[k]
            if operator == UNION:
                end = write_union(s, e, part_low, part_high, s, e, low[b], high[b], s, e, w)
            elif operator == INTERSECTION:
                end = write_intersection(s, e, part_low, part_high, s, e, low[b], high[b], s, e, w)
            else:
                end = write_difference(s, e, part_low, part_high, s, e, low[b], high[b], s, e, w)
            part_low, part_high, w = w, end, end
        low[slot], high[slot] = part_low, part_high
        slot += 1
        j += 2 + inputs
