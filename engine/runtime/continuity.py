"""The log's rows one after the other, each once, whatever a listing of its folder showed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from engine.model.batch import SEQ
from engine.sources.eventlog import EventLog


class MissingRows(RuntimeError):
    """Rows beyond the last stored one are in no file of the log any more: going on would lose them silently."""


def rows_between(log: EventLog, first: int, stop: int) -> Iterator[pa.Table]:
    """Rows [first, stop) of the log, in order of seq. Raises MissingRows when it does not have them all."""
    position = first
    if first < stop:
        for rows in log.read(first, stop):
            if rows.num_rows:
                _expect(log, position, rows.column(SEQ)[0].as_py())
                yield rows
                position += rows.num_rows
    _expect(log, position, max(first, stop))


def continued(log: EventLog, position: int, delivered: pa.Table) -> Iterator[pa.Table]:
    """The rows after `position` up to the last of `delivered`, without gap or repetition, in order of seq.

    Delivered rows that were taken before are left out (a new checkpoint reads all files again); rows that Spark did not deliver yet
    (its listing of the folder is no snapshot) are read from the log. Raises MissingRows.
    """
    rows = _ordered(delivered)
    seq = rows.column(SEQ).to_numpy()
    begin = int(np.searchsorted(seq, position, side="right"))
    if begin == len(seq):
        return
    rows, seq = rows.slice(begin), seq[begin:]
    breaks = np.flatnonzero(np.diff(seq) != 1) + 1
    for low, high in pairwise([0, *breaks.tolist(), len(seq)]):
        yield from rows_between(log, position + 1, int(seq[low]))
        yield rows.slice(low, high - low)
        position = int(seq[high - 1])


def _expect(log: EventLog, position: int, found: int) -> None:
    """The row that comes next is the one at `position`."""
    if found != position:
        raise MissingRows(f"{log.folder.name}: rows {position} to {found - 1} are in no file of the log")


def _ordered(rows: pa.Table) -> pa.Table:
    """By seq, each once. Spark delivers files of one batch in any order, mostly the right one."""
    seq = rows.column(SEQ).to_numpy()
    if len(seq) < 2 or bool((np.diff(seq) > 0).all()):
        return rows
    order = np.argsort(seq, kind="stable")
    ordered = seq[order]
    return rows.take(pa.array(order[np.append(True, np.diff(ordered) > 0)]))
