"""From starts and ends to signed changes: maximal intervals. An open one is asserted immediately;
at its end it is retracted and asserted closed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from numba import njit

from engine.model.batch import EntityDictionary
from engine.model.changes import NO_CHANGES, Evidence, changes
from engine.motion_patterns.evaluation import START, MatchEvents, no_events

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

_KIND = pa.array(["match"])


@dataclass
class OpenMatches:
    """The matches that still hold, sorted by (query, entity), each once: their START events, with
    score and witnesses of that time."""

    began: MatchEvents

    @property
    def keys(self) -> Ints:
        return keys_of(self.began)

    def check(self) -> None:
        assert (np.diff(self.keys) > 0).all()


def keys_of(events: MatchEvents) -> Ints:
    """(query, entity) as one number."""
    return events.query << 32 | events.entity


def none_of(width: int) -> MatchEvents:
    """No events, with room for `width` witnesses each."""
    none, witnesses = np.empty(0, np.int64), np.empty((0, width), np.int64)
    return MatchEvents(none, none, none, none, np.empty(0), witnesses, witnesses, np.empty((0, width)), np.empty((0, width)))


def taken(events: MatchEvents, which: npt.NDArray[np.integer[Any]] | npt.NDArray[np.bool_]) -> MatchEvents:
    """The events at `which`, in that order."""
    return MatchEvents._make(column[which] for column in events)


def joined(parts: list[MatchEvents]) -> MatchEvents:
    """All events in order."""
    return MatchEvents._make(np.concatenate(columns) for columns in zip(*parts, strict=True))


def widened(events: MatchEvents, width: int) -> MatchEvents:
    """The same events with columns for `width` witnesses; added columns are
    empty, as are those cut off."""
    had = events.seq.shape[1]
    if had == width:
        return events
    columns = {}
    for name in ("t", "seq", "x", "y"):
        column = getattr(events, name)
        wide = np.full((len(column), width), -1, column.dtype)
        wide[:, : min(had, width)] = column[:, :width]
        columns[name] = wide
    return events._replace(**columns)


def state_changes(open_matches: OpenMatches, events: MatchEvents, dictionary: EntityDictionary) -> tuple[OpenMatches, pa.Table]:
    """The open matches after `events` (STARTs and ENDs; those of one pair alternate in order
    of time), and the changes."""
    if len(events.query) == 0:
        return open_matches, NO_CHANGES
    # Most matches continue: only those with an event are processed.
    keys, event_keys = open_matches.keys, keys_of(events)
    touched = np.zeros(len(keys), np.bool_)
    at = np.searchsorted(keys, event_keys)
    known = at < len(touched)
    known[known] = keys[at[known]] == event_keys[known]
    touched[at[known]] = True
    held = int(touched.sum())
    every = joined([taken(open_matches.began, touched), events])
    order = np.argsort(keys_of(every), kind="stable")
    every = taken(every, order)
    key = keys_of(every)
    begins = np.flatnonzero(every.what == START)
    ends = np.full(len(begins), -1, np.int64)
    following = begins + 1
    ended = following < len(key)
    ended[ended] = (key[following[ended]] == key[begins[ended]]) & (every.what[following[ended]] != START)
    ends[ended] = every.at[following[ended]]
    was_open = order[begins] < held
    retracted, closed, opened = begins[was_open & ended], ended, ~ended & ~was_open
    rows = np.concatenate([retracted, begins[closed], begins[opened]])
    end = np.concatenate([np.zeros(len(retracted), np.int64), ends[closed], np.zeros(opened.sum(), np.int64)])
    no_end = np.concatenate([np.ones(len(retracted), np.bool_), np.zeros(closed.sum(), np.bool_), np.ones(opened.sum(), np.bool_)])
    weight = np.ones(len(rows), np.int8)
    weight[: len(retracted)] = -1
    asserted = match_changes(taken(every, rows), pa.array(end, pa.int64(), mask=no_end), weight, dictionary)
    fresh = taken(every, begins[~ended])
    return OpenMatches(_merged(keys, open_matches.began, touched, keys_of(fresh), fresh)), asserted


@njit(cache=True, nogil=True)
def _merged(keys, began, gone, fresh_keys, fresh):  # type: ignore[no-untyped-def]
    """`began` without the rows marked in `gone`, merged with `fresh`, by (query, entity): `keys`
    and `fresh_keys`, both ascending."""
    merged = no_events(len(keys) - gone.sum() + len(fresh_keys), fresh.seq.shape[1])
    i = n = 0
    for j in range(len(fresh_keys) + 1):
        while i < len(keys) and (j == len(fresh_keys) or keys[i] <= fresh_keys[j]):
            if not gone[i]:
                _copy(began, i, merged, n)
                n += 1
            i += 1
        if j < len(fresh_keys):
            _copy(fresh, j, merged, n)
            n += 1
    return merged


@njit(cache=True, nogil=True)
def _copy(events, i, to, n):  # type: ignore[no-untyped-def]
    """Event i of `events` becomes event n of `to`."""
    to.query[n], to.entity[n], to.at[n], to.what[n], to.score[n] = events.query[i], events.entity[i], events.at[i], events.what[i], events.score[i]
    for j in range(events.seq.shape[1]):
        to.t[n, j], to.seq[n, j], to.x[n, j], to.y[n, j] = events.t[i, j], events.seq[i, j], events.x[i, j], events.y[i, j]


def match_changes(matches: MatchEvents, end: pa.Array, weight: npt.NDArray[np.int8], dictionary: EntityDictionary) -> pa.Table:
    """CHANGES rows; one evidence item for each predicate, in their order."""
    if len(matches.query) == 0:
        return NO_CHANGES
    has_witness = matches.seq >= 0
    counts = has_witness.sum(axis=1)
    owner, predicate = np.nonzero(has_witness)
    labels = pa.array([f"P{j + 1}" for j in range(has_witness.shape[1])], pa.string())
    evidence = Evidence(
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        entity=matches.entity[owner],
        t=matches.t[has_witness],
        x=matches.x[has_witness],
        y=matches.y[has_witness],
        seq=matches.seq[has_witness],
        variable=labels.take(pa.array(predicate)),
    )
    return changes(
        dictionary,
        query=matches.query,
        kind=_KIND.take(pa.array(np.zeros(len(matches.query), np.int64))),
        entities=matches.entity,
        start=matches.at,
        end=end,
        evidence=evidence,
        score=matches.score,
        weight=weight,
    )
