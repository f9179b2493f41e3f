"""Serialises states of windows: plain arrays with a description in JSON, no pickle."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import numpy.typing as npt

from engine.event_calculus.arrivals import InputRows
from engine.event_calculus.intervals import Intervals
from engine.event_calculus.levels import Node
from engine.event_calculus.local_results import LocalMessage, LocalResults
from engine.event_calculus.memory import EndedSources, Memory, OpenStarts, SimpleCarry
from engine.event_calculus.state import WindowState
from engine.event_calculus.tables import SYMBOL, FluentTable, Symbols, Table

VERSION = 5
_COUNTERS = ("last_query", "clock", "first_time", "earliest", "looked_at", "idle", "windows", "pairs_examined", "groundings")

Array = npt.NDArray[Any]


class _Writer:
    """Numbers arrays in sequence; the description refers to them by number."""

    def __init__(self) -> None:
        self.arrays: list[Array] = []

    def put(self, array: Array) -> int:
        self.arrays.append(np.ascontiguousarray(array))
        return len(self.arrays) - 1

    def put_all(self, arrays: tuple[Array, ...]) -> list[int]:
        return [self.put(array) for array in arrays]


def dump_state(states: list[WindowState]) -> bytes:
    """All states of a partition; `load_state` is the inverse."""
    writer = _Writer()
    described = [_describe(state, writer) for state in states]
    with io.BytesIO() as file:
        text = np.frombuffer(json.dumps({"version": VERSION, "states": described}).encode(), np.uint8)
        np.savez(file, allow_pickle=False, text=text, **{f"a{place}": array for place, array in enumerate(writer.arrays)})
        return file.getvalue()


def _describe(state: WindowState, writer: _Writer) -> dict[str, Any]:
    return {
        "symbols": state.symbols.names,
        "counters": [int(getattr(state, name)) for name in _COUNTERS],
        "rows": [[*indicator, _rows(parts, writer)] for indicator, parts in state.rows.items()],
        "waiting": [[*indicator, _rows(parts, writer)] for indicator, parts in state.waiting.items()],
        "simple": [[list(node), writer.put_all((carry.keys, carry.value, carry.start, carry.due))] for node, carry in state.memory.simple.items()],
        "held": [[name, writer.put_all(_open_start_arrays(held))] for name, held in state.memory.held.items()],
        "ended": [[name, writer.put_all((ended.keys, ended.start, ended.end))] for name, ended in state.memory.ended.items()],
        "answers": [[name, writer.put_all((table.keys, *table.lists))] for name, table in state.answers.items()],
        "instants": [[name, writer.put_all(table.columns), writer.put(_times(table))] for name, table in state.instants.items()],
        "beginnings": state.beginnings,
        "share": state.share,
        "members": [[*domain, writer.put(members)] for domain, members in state.members.items()],
        "local_results": None if state.local_results is None else _messages(state.local_results, writer),
    }


def _messages(local_results: LocalResults, writer: _Writer) -> list[list[list[int]]]:
    now = [[partition, writer.put(np.frombuffer(message, np.uint8))] for partition, message in local_results.now.items()]
    return [now, [[moment, partition, writer.put(np.frombuffer(message, np.uint8))] for moment, partition, message in local_results.later]]


def _open_start_arrays(held: OpenStarts) -> tuple[Array, ...]:
    return (held.keys, held.start) if held.places is None else (held.keys, held.start, held.places)


def _times(table: Table) -> Array:
    assert table.t is not None
    return table.t


def _rows(parts: list[InputRows], writer: _Writer) -> list[Any]:
    rows = InputRows.concat(parts)
    return [writer.put_all(rows.columns), writer.put_all((rows.t, rows.end, rows.arrived, rows.x, rows.y))]


def load_state(data: bytes) -> list[WindowState]:
    """The inverse of `dump_state`. Raises ValueError for states of another version of this
    program."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        described = json.loads(arrays["text"].tobytes())
        if not isinstance(described, dict) or described["version"] != VERSION:
            raise ValueError("the windows are those of another version of this program")
        return [_load(entry, lambda place: arrays[f"a{place}"]) for entry in described["states"]]


def _load(entry: dict[str, Any], get: Any) -> WindowState:
    def many(places: list[int]) -> tuple[Array, ...]:
        return tuple(get(place) for place in places)

    # States of the previous release do not have the members of other shares.
    state = WindowState(Symbols(entry["symbols"]), share=entry["share"] if "members" in entry else -1)
    state.members = {(name, arity): get(place) for name, arity, place in entry.get("members", ())}
    if entry["local_results"] is not None:
        now, later = entry["local_results"]
        state.local_results = LocalResults({partition: get(place).tobytes() for partition, place in now})
        state.local_results.later = [LocalMessage(moment, partition, get(place).tobytes()) for moment, partition, place in later]
    # States of the previous release have applied all of them.
    state.beginnings = [(arrived, t) for arrived, t in entry.get("beginnings", ())]
    for name, value in zip(_COUNTERS, entry["counters"], strict=True):
        setattr(state, name, value)
    for key in ("rows", "waiting"):
        getattr(state, key).update({(name, arity): [InputRows(many(columns), *many(rest))] for name, arity, (columns, rest) in entry[key]})
    simple = {Node(*node): SimpleCarry(*many(places)) for node, places in entry["simple"]}
    held = {name: OpenStarts(*many(places)) for name, places in entry["held"]}
    # Snapshots of the previous release have none.
    state.memory = Memory(simple, held, {name: EndedSources(*many(places)) for name, places in entry.get("ended", ())})
    for name, (keys, *lists) in entry["answers"]:
        state.answers[name] = FluentTable(get(keys), Intervals(*many(lists)))
    for name, columns, times in entry["instants"]:
        t = get(times)
        state.instants[name] = Table(many(columns), (SYMBOL,) * len(columns), len(t), t)
    return state
