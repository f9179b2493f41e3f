"""Rows for tests of the event log, and what a log holds of them."""

import pyarrow as pa

from engine.sources.eventlog import EventLog


def rows(*times: int, entity: str = "a", **columns: object) -> pa.Table:
    """One row for each time."""
    n = len(times)
    table = pa.table({"event": pa.array(["position"] * n), "entity": pa.array([entity] * n), "t": pa.array(times, pa.int64())})
    for name, value in columns.items():
        table = table.append_column(name, pa.array([value] * n))
    return table


def stored(log: EventLog, from_seq: int = 0, to_seq: int | None = None) -> list[tuple[int, int, int]]:
    """(seq, t, clock) of the rows of `read`; checks that the numbers are dense."""
    found = [row for table in log.read(from_seq, to_seq) for row in zip(*(table[c].to_pylist() for c in ("seq", "t", "clock")), strict=True)]
    assert [seq for seq, _, _ in found] == list(range(found[0][0], found[0][0] + len(found))) if found else True
    return found


def times(log: EventLog, from_seq: int = 0, to_seq: int | None = None) -> list[int]:
    return [t for _, t, _ in stored(log, from_seq, to_seq)]
