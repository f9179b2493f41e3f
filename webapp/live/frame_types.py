"""The types of the frames that a page gets, for the OpenAPI document and for the code that builds
them."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from webapp.alerts.selectors import AlertRow
from webapp.config.openapi import Length, Schema, hoisted, schema_of
from webapp.detections.selectors import DetectionRow
from webapp.feeds.heads import FeedStatus


class SnapshotFrame(TypedDict):
    """The newest answers and alerts at outbox number `seq`, and positions [id, x, y, t].

    `since`: all answers that began at or after it are among `detections`; null: all answers are.
    `clock`: the greatest event time of the feed.
    """

    type: Literal["snapshot"]
    feed: str
    seq: int
    detections: list[DetectionRow]
    alerts: list[AlertRow]
    positions: list[Annotated[list[str | float], Length(4)]]
    clock: int | None
    since: int | None


_Numbers = TypedDict("_Numbers", {"from": int, "seq": int})


class ChangesFrame(_Numbers):
    """All changes of the numbers `from` to `seq`. `queries`: those of which another version,
    or none, runs from now on."""

    type: Literal["changes"]
    feed: str
    detections: list[DetectionRow]
    alerts: list[AlertRow]
    queries: list[int]


class PositionsFrame(TypedDict):
    """Where entities are, [id, x, y, t] each: a sample for the screen."""

    type: Literal["positions"]
    feed: str
    t: int | None
    entities: list[Annotated[list[str | float], Length(4)]]


class StatusFrame(FeedStatus):
    """The state of a feed's processing."""

    type: Literal["status"]
    feed: str


class ResyncFrame(TypedDict):
    """The reader fell behind, or its permissions changed: it has to subscribe again."""

    type: Literal["resync"]
    feed: str


class ErrorFrame(TypedDict):
    """The client's last frame, or its socket, was refused."""

    type: Literal["error"]
    code: str
    message: str


FRAMES = (SnapshotFrame, ChangesFrame, PositionsFrame, StatusFrame, ResyncFrame, ErrorFrame)


def with_frames(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    """A hook of drf_spectacular: the frames are components, although no endpoint returns them."""
    for frame in FRAMES:
        hoisted(schema_of(frame), result["components"]["schemas"])
    return result
