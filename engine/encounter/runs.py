"""Runs of consecutive T at which a pair meets: new meetings extend a run, a decided T
without a meeting ends it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
SIDES = 2


class Runs(NamedTuple):
    """Runs by `pair` (code of the first << 32 | code of the other) and first T. `least`: the least
    distance, with the tuples of both sides (n, 2) from which its places were derived. `sent`: the
    least distance last asserted, NaN if none was, with the tuples in `sent_t` and so on."""

    pair: Ints
    first: Ints
    last: Ints
    least: Floats
    t: Ints
    seq: Ints
    x: Floats
    y: Floats
    sent: Floats
    sent_t: Ints
    sent_seq: Ints
    sent_x: Floats
    sent_y: Floats

    def take(self, rows: Ints | Bools) -> Runs:
        return Runs._make(column[rows] for column in self)

    def as_sent(self, rows: Bools) -> Runs:
        """The same runs, with the present values of `rows` as the ones last asserted."""
        columns = self._asdict()
        for sent, own in (("sent", "least"), ("sent_t", "t"), ("sent_seq", "seq"), ("sent_x", "x"), ("sent_y", "y")):
            kept = columns[sent].copy()
            kept[rows] = columns[own][rows]
            columns[sent] = kept
        return Runs(**columns)


def no_runs() -> Runs:
    return runs_of(
        np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0), *(np.empty((0, SIDES), kind) for kind in (np.int64, np.int64, float, float))
    )


def runs_of(pair: Ints, at: Ints, distance: Floats, t: Ints, seq: Ints, x: Floats, y: Floats) -> Runs:
    """Each meeting as a run of one T, not yet asserted."""
    not_sent = np.full(len(pair), np.nan)
    return Runs(pair, at, at, distance, t, seq, x, y, not_sent, np.zeros_like(t), np.zeros_like(seq), np.zeros_like(x), np.zeros_like(y))


def extended(runs: Runs, meetings: Runs, every: int) -> tuple[Runs, Bools]:
    """Runs extended by meetings: (all runs by (pair, first), whether each
    is the newest of its pair)."""
    joined = Runs._make(np.concatenate(pair) for pair in zip(runs, meetings, strict=True))
    joined = joined.take(np.lexsort((joined.first, joined.pair)))
    if not len(joined.pair):
        return joined, np.empty(0, np.bool_)
    goes_on = (joined.pair[1:] == joined.pair[:-1]) & (joined.first[1:] == joined.last[:-1] + every)
    begin = np.flatnonzero(np.concatenate([[True], ~goes_on]))
    end = np.append(begin[1:], len(joined.pair)) - 1
    group = np.repeat(np.arange(len(begin)), end - begin + 1)
    # The first row with the least distance; the values last asserted are in the run's first row.
    nearest = np.lexsort((joined.first, joined.least, group))[begin]
    whole = joined.take(nearest)._replace(first=joined.first[begin], last=joined.last[end])
    sent = {name: getattr(joined, name)[begin] for name in ("sent", "sent_t", "sent_seq", "sent_x", "sent_y")}
    whole = whole._replace(**sent)
    return whole, np.append(whole.pair[1:] != whole.pair[:-1], True)
