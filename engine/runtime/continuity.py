"""The log's rows one after the other, each once, whatever a listing of its folder showed."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from engine.model.batch import SEQ
from engine.sources.eventlog import EventLog
from engine.sources.segments import LogDamaged

_MOST_RUNS = 200
"""More runs of rows without a gap than this are sorted row by row."""


class MissingRows(LogDamaged):
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
        raise MissingRows(log.folder.name, f"rows {position} to {found - 1} are in no file of the log")


def _ordered(rows: pa.Table) -> pa.Table:
    """By seq, each once. Spark delivers the files of one batch in any order, larger ones first."""
    seq = rows.column(SEQ).to_numpy()
    if bool((seq[1:] > seq[:-1]).all()):
        return rows
    # A file's rows follow each other without a gap: whole files change places, and nothing is copied.
    ends = np.concatenate([[0], np.flatnonzero(seq[1:] != seq[:-1] + 1) + 1, [len(seq)]])
    runs = np.argsort(seq[ends[:-1]])
    first, last = seq[ends[:-1]][runs], seq[ends[1:] - 1][runs]
    if len(runs) <= _MOST_RUNS and bool((first[1:] > last[:-1]).all()):
        return pa.concat_tables([rows.slice(ends[run], ends[run + 1] - ends[run]) for run in runs.tolist()])
    order = np.argsort(seq, kind="stable")
    ordered = seq[order]
    return rows.take(pa.array(order[np.append(True, np.diff(ordered) > 0)]))
