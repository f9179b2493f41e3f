"""Minimum conditions and occurrence bitmaps, each alone, never refute a detection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from engine.complex_events.bitmaps import beside, may_end
from engine.complex_events.detection import note_all
from engine.complex_events.fragments import AT_ONCE, CHECKS, CHECKS_END, GUARDS, GUARDS_END, OFFSET
from engine.complex_events.history import SHIFT, nothing
from engine.complex_events.operator import CompositeOperator, recent
from engine.complex_events.plan import Program
from engine.complex_events.search import KIND, Ints
from tests.engine.complex_events.worlds import PLANE, documents, longer, rows
from tests.engine.runs import registered
from tests.oracles.complex_events import TIMER, Row, detections, matches

Kinds = Mapping[int, set[int]]
"""The classes of each row, by seq."""


def program_of(document: Mapping[str, Any]) -> Program:
    index = CompositeOperator().compile(registered([document], PLANE), PLANE)
    return index.programs[0 if document["per"] else 1]


def classes(program: Program, world: Sequence[Row], document: Mapping[str, Any]) -> Kinds:
    leaves = program.tables.leaves.tolist()
    named = {program.names[leaf]: int(program.tables.nodes[leaf, KIND]) for leaf in leaves}
    return {row["seq"]: {kind for name, kind in named.items() if matches(row, name, document)} for row in world}


def noted(program: Program, seen: Sequence[Row], kinds: Kinds) -> tuple[Ints, Ints]:
    """Last times and bitmaps after these rows."""
    last, bits = recent(program, nothing())
    events = [(kind << SHIFT, row["t"]) for row in seen for kind in sorted(kinds[row["seq"]])]
    key, t = np.array([one for one, _ in events], np.int64), np.array([one for _, one in events], np.int64)
    note_all(program.tables, key, t, np.argsort(t, kind="stable"), last, bits)
    return last, bits


def asked(program: Program, kinds: set[int]) -> list[Ints]:
    """The triggers of an event of these classes that complete the pattern at once."""
    tables = program.tables
    instances = [i for i, kind in enumerate(tables.kind.tolist()) if kind in kinds]
    found = [row for i in instances for row in tables.triggers[tables.trigger_ends[i] : tables.trigger_ends[i + 1]]]
    return [row for row in found if row[OFFSET] == AT_ONCE]


def nothing_refuted(world: Sequence[Row], document: Mapping[str, Any], ahead: bool) -> int:
    """Asserts this for all detections and returns their number. `ahead`: the bitmaps also contain the rest of the slot, as in a batch."""
    program = program_of(document)
    tables, stack = program.tables, np.zeros(300, np.uint64)
    kinds, width, within = classes(program, world, document), int(tables.narrowest[0]), int(tables.within[0])
    whole, whole_end, whole_width = tables.whole[0].tolist()
    for completed in detections(world, document).values():
        for end, seq in completed:
            before = [row for row in world if (row["t"], row["seq"]) <= (end, seq)]
            slot = [row for row in world if row["t"] >> width <= end >> width]
            last, bits = noted(program, slot if ahead else before, kinds)
            begin = end >> width << width
            assert whole == whole_end or may_end(tables.steps, whole, whole_end, bits, end >> whole_width, stack)
            if seq == TIMER:
                continue
            last, _ = noted(program, before, kinds)
            passed = [
                all(last[kind] >= end - age for kind, age in tables.guards[row[GUARDS] : row[GUARDS_END]])
                and (
                    row[CHECKS] == row[CHECKS_END]
                    or beside(tables.checks, row[CHECKS], row[CHECKS_END], tables.steps, bits, begin, begin + (1 << width) - 1, within, stack) > 0
                )
                for row in asked(program, kinds[int(seq)])
            ]
            assert any(passed)
    return sum(len(completed) for completed in detections(world, document).values())


@settings(max_examples=200)
@given(
    rows(most=10),
    st.sampled_from([2, 3, 3]).flatmap(documents),
    st.integers(1, 9),
    st.sampled_from([1, 10, 100]),
    st.integers(-70, 70),
    st.booleans(),
)
def test_no_detection_is_refuted(world: list[Row], drawn: Any, factor: int, wider: int, shift: int, ahead: bool) -> None:
    """`wider`: a longer `within` makes longer slots."""
    document = longer(drawn, factor)
    document["within"] *= wider
    assume(len(program_of(document).tables.steps) > 0)
    nothing_refuted([{**row, "t": row["t"] * factor + shift} for row in world], document, ahead)


def test_spans_that_cross_the_end_of_a_slot() -> None:
    primitives = {name: {"where": [["reader", "=", name.lower()]]} for name in "ABC"}
    for pattern in ("(A :[0,3] B) : C", "(A ;[3] B) AND C", "A :[3,3] (B : C)", "C AND (A :[2,4] B)"):
        document = longer({"family": "composite", "pattern": pattern, "primitives": primitives, "within": 1000, "per": None}, 1)
        for start in range(-8, 40):
            times = {"a": start, "b": start + 3, "c": start + 7}
            world = [{"seq": seq, "entity": "x", "t": t, "x": None, "y": None, "reader": reader} for seq, (reader, t) in enumerate(times.items())]
            assert nothing_refuted(world, document, ahead=False) == 1
