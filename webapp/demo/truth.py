"""The quality of a demo query's answers, compared with the ground truth of its simulated world."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TypedDict

import numpy as np

from webapp.accounts.permissions import AnyUser
from webapp.config.openapi import TimeRange
from webapp.demo.simulation.scenarios import read_scenario, truth_of
from webapp.demo.simulation.world import TruthEvent
from webapp.demo.simulation.worlds import WORLDS
from webapp.detections.models import Detection
from webapp.detections.selectors import detection_list
from webapp.feeds.models import Feed
from webapp.feeds.recent import accepted, log_of
from webapp.feeds.selectors import feed_head
from webapp.queries.selectors import query_list

SLACK_MS = 60_000
"""The tolerance of an answer's beginning and end: receivers report only at intervals."""

PAUSE_MS = 10_000
"""No demo world is silent for this long: a longer silence means that the simulator did not run."""
Span = tuple[int, int]


class Missed(TypedDict):
    """Something that happened and was not reported."""

    entities: list[str]
    start: int
    end: int


class ScoreFields(TypedDict):
    """A `Score` as JSON; precision and recall null: of nothing."""

    happened: int
    found: int
    reported: int
    right: int
    recall: float | None
    precision: float | None
    missed: list[Missed]
    wrong: list[str]


@dataclass(frozen=True)
class Score:
    """`found` of the `happened` things were reported; `right` of the `reported` answers are
    about something that happened."""

    happened: int
    found: int
    reported: int
    right: int
    missed: tuple[TruthEvent, ...]
    wrong: tuple[str, ...]
    """Ids of answers about nothing that happened."""

    def as_row(self) -> ScoreFields:
        return {
            "happened": self.happened,
            "found": self.found,
            "reported": self.reported,
            "right": self.right,
            "recall": self.found / self.happened if self.happened else None,
            "precision": self.right / self.reported if self.reported else None,
            "missed": [{"entities": list(one.entities), "start": one.start, "end": one.end} for one in self.missed],
            "wrong": list(self.wrong),
        }


class ScoreRow(TimeRange, ScoreFields):
    """The quality of demo queries for one kind of ground-truth event."""

    kind: str
    family: str
    queries: list[int]


def truth_scores(*, feed: Feed, user: AnyUser, span_ms: int) -> list[ScoreRow]:
    """A score for each demo query on the last `span_ms` of the feed; empty for a feed that is not
    of the demo or has no answers yet.

    Only events between the feed's beginning and its watermark count: the others cannot be known
    yet. Events that were missed while the world was not sent do not count either, because no row
    shows them.
    """
    head = feed_head(feed)
    if feed.name not in WORLDS or head is None or head["watermark"] is None:
        return []
    place = read_scenario(feed.name).world
    end = int(head["watermark"])
    begin = max(end - span_ms, round(feed.created_at.timestamp() * 1000) + SLACK_MS)
    if begin >= end:
        return []
    # A page asks every 15 s; the queries' specifications, regions and stops are not needed, and
    # most of the cost of a list of hundreds.
    queries = dict(query_list(user=user).filter(feed=feed).prefetch_related(None).values_list("name", "pk"))
    truth_events = [one for one in place.truth(begin, end) if one.start >= begin and one.end + SLACK_MS <= end]
    silent = cache(partial(pauses, feed, begin, end))
    rows: list[ScoreRow] = []
    for reporting in truth_of(feed.name, queries):
        kind = reporting.kind
        ids = [queries[name] for name, _ in reporting.queries]
        names_and_answers = {(queries[name], answers) for name, answers in reporting.queries}
        reported = [
            answer
            for answer in detection_list(feed_id=feed.pk, query_ids=ids, from_t=begin, to_t=end)
            if not names_and_answers.isdisjoint({(answer.query_id, answer.kind), (answer.query_id, None)})
        ]
        everything = [one for one in place.truth(begin - span_ms, end + span_ms) if one.kind == kind]
        score = compare([one for one in truth_events if one.kind == kind], everything, reported, silent)
        rows.append({"kind": kind, "family": reporting.family, "queries": ids, "from": begin, "to": end, **score.as_row()})
    return rows


def pauses(feed: Feed, begin: int, end: int) -> list[Span]:
    """The spans between `begin` and `end` in which the feed got no row for
    PAUSE_MS and more, in order."""
    rows = log_of(feed).tail(begin, end, lateness=feed.lateness, columns=["event", "t", "clock"])
    times = accepted(feed, rows).column("t").to_numpy() if rows.num_rows else np.empty(0, np.int64)
    edges = np.sort(np.concatenate([[begin, end], times]).astype(np.int64))
    before = np.flatnonzero(np.diff(edges) >= PAUSE_MS)
    return list(zip(edges[before].tolist(), edges[before + 1].tolist(), strict=True))


def nothing_silent() -> list[Span]:
    """The pauses of a feed that had none."""
    return []


def compare(
    happened: Sequence[TruthEvent],
    everything: Sequence[TruthEvent],
    reported: Iterable[Detection],
    silent: Callable[[], Sequence[Span]] = nothing_silent,
) -> Score:
    """`happened` must be reported, unless it touches one of the `silent` spans, which are
    read when something was not reported; an answer is right when it is about any of `everything`,
    settled or not."""
    reported = list(reported)
    unseen = [one for one in happened if not any(is_about(answer, one) for answer in reported)]
    missed = tuple(one for one in unseen if all(one.end < begin or end < one.start for begin, end in silent()))
    wrong = tuple(bytes(answer.key).hex() for answer in reported if not any(is_about(answer, one) for one in everything))
    matched = len(happened) - len(unseen)
    return Score(matched + len(missed), matched, len(reported), len(reported) - len(wrong), missed, wrong)


def is_about(answer: Detection, event: TruthEvent) -> bool:
    """Whether the answer is about the event: one of its things, at its time."""
    named = {*answer.entities, *(item["entity"] for item in answer.evidence or () if item.get("entity"))}
    if not named & set(event.entities):
        return False
    return answer.start <= event.end + SLACK_MS and (answer.end is None or answer.end >= event.start - SLACK_MS)
