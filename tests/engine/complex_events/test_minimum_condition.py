"""The minimum condition, alone, never refutes a detection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.complex_events.fragments import AT_ONCE, GUARDS, GUARDS_END, OFFSET
from engine.complex_events.history import SHIFT, no_events
from engine.complex_events.operator import CompositeOperator, recent
from engine.complex_events.plan import Program
from engine.complex_events.search import KIND, Ints
from tests.engine.complex_events.worlds import PLANE, documents, longer, registered, rows
from tests.examples import examples
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


def last_times(program: Program, seen: Sequence[Row], kinds: Kinds) -> Ints:
    """The last times after these rows."""
    events = np.array([(kind << SHIFT, row["t"]) for row in seen for kind in sorted(kinds[row["seq"]])], np.int64).reshape(-1, 2)
    return recent(program, no_events()._replace(key=events[:, 0], t=events[:, 1]))


def asked(program: Program, kinds: set[int]) -> list[Ints]:
    """The triggers of an event of these classes that complete the pattern at once."""
    tables = program.tables
    instances = [i for i, kind in enumerate(tables.kind.tolist()) if kind in kinds]
    found = [row for i in instances for row in tables.triggers[tables.trigger_ends[i] : tables.trigger_ends[i + 1]]]
    return [row for row in found if row[OFFSET] == AT_ONCE]


@settings(max_examples=examples(200))
@given(rows(most=10), st.sampled_from([2, 3, 3]).flatmap(documents), st.integers(1, 9), st.integers(-70, 70))
def test_no_detection_is_refuted(world: list[Row], drawn: Any, factor: int, shift: int) -> None:
    document = longer(drawn, factor)
    world = [{**row, "t": row["t"] * factor + shift} for row in world]
    program = program_of(document)
    guards, kinds = program.tables.guards, classes(program, world, document)
    for completed in detections(world, document).values():
        for end, seq in completed:
            if seq == TIMER:
                continue
            last = last_times(program, [row for row in world if (row["t"], row["seq"]) <= (end, seq)], kinds)
            triggers = asked(program, kinds[int(seq)])
            assert any(all(last[kind] >= end - age for kind, age in guards[row[GUARDS] : row[GUARDS_END]]) for row in triggers)
