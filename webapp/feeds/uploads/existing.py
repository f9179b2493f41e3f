"""Loads a file into an existing feed (decision 32): read like the files before it, as far as its
columns allow, and checked against the feed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from engine.model.clock import watermark_at
from engine.model.columns import TIME
from engine.model.events import row_schema
from engine.model.faults import Fault, Refused, refuse
from engine.model.messages import Message
from engine.sources.places import IN_ONE, NUMBERS
from engine.sources.reading import PLANE, TICKS, Reading
from webapp.config.faults import InUse
from webapp.feeds.models import Feed, Upload, UploadState
from webapp.feeds.recent import log_of
from webapp.feeds.uploads.inspection import Comparison, Inspection, inspect

WRITTEN = ("encoding", "delimiter", "header", "sheet", "decimal")
"""Keys of a reading that are the same in files of the same kind."""
MEANT = ("time", "entity", "x", "y", "event")
"""Keys that name columns of the file."""
UNFINISHED = (UploadState.READING, UploadState.SENDING, UploadState.PAUSED)


def inspect_for(feed: Feed, path: Path, name: str, chosen: Mapping[str, Any]) -> Inspection:
    """The content of the file for the feed: as from `inspect`, and under `into` the settings of
    the feed. Raises Refused."""
    before = _last_reading(feed)
    inspected = inspect(path, name, {**chosen, **_fixed(feed)})
    if before:
        inspected = inspect(path, name, {**_as_before(before, inspected, chosen), **chosen, **_fixed(feed)})
    attributes = list(chosen.get("attributes") or _attributes(feed, inspected, before))
    if inspected["reading"]["attributes"] != attributes:
        inspected = inspect(path, name, {**inspected["reading"], "attributes": attributes})
    return {**inspected, "into": _comparison(feed, inspected, bool(before))}


def _last_reading(feed: Feed) -> dict[str, Any]:
    """The mapping of the newest file loaded into the feed; empty if there was none."""
    last = feed.uploads.exclude(reading={}).order_by("-created_at").first()
    return dict(last.reading) if last is not None else {}


def _fixed(feed: Feed) -> dict[str, Any]:
    """The part of the reading that follows from the feed alone."""
    return {**({"crs": PLANE} if feed.crs == "planar" else {}), **({"time_format": TICKS} if feed.time == "ticks" else {})}


def _as_before(before: Mapping[str, Any], inspected: Mapping[str, Any], chosen: Mapping[str, Any]) -> dict[str, Any]:
    """The part of the earlier reading that fits this file: its format, if the kind is the same, and
    the columns that it has too. `chosen` values take precedence.
    """
    columns = {column["name"] for column in inspected["columns"]}
    kept = {key: before[key] for key in MEANT if _names(before[key]) and set(_names(before[key])) <= columns}
    if "time" in kept and "time" not in chosen:
        kept |= {"time_format": before["time_format"], "zone": before["zone"]}
    form = before.get("place_format", NUMBERS)
    if ({"x"} if form in IN_ONE else {"x", "y"}) <= set(kept) and {"x", "y", "place_format"}.isdisjoint(chosen):
        kept |= {"crs": before["crs"], "place_format": form}
    if before["kind"] == inspected["reading"]["kind"]:
        kept |= {key: before[key] for key in WRITTEN}
    return kept


def _names(value: Any) -> Sequence[str]:
    return [value] if isinstance(value, str) and value else value


def _attributes(feed: Feed, inspected: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """For each column of the feed the column of the file that it was read from before,
    or would be read from now."""
    columns = {column["name"] for column in inspected["columns"]}
    sources = {one["name"]: one["source"] for readings in (inspected["reading"], before) for one in readings.get("attributes", ())}
    for name, kind in feed.columns.items():
        source = sources.get(name, name)
        source = source if source in columns else name
        if source in columns:
            yield {"source": source, "name": name, "type": str(kind)}


def _comparison(feed: Feed, inspected: Inspection, remembered: bool) -> Comparison:
    reading = inspected["reading"]
    used = {*reading["time"], *reading["entity"], reading["x"], reading["y"], reading["event"], *(one["source"] for one in reading["attributes"])}
    names = {one["name"] for one in reading["attributes"]}
    return {
        "feed": feed.name,
        "title": feed.title,
        "wall_clock": feed.wall_clock,
        "remembered": remembered,
        "from": oldest_useful(feed),
        "ahead": feed.ahead,
        "missing": [name for name in feed.columns if name not in names],
        "left_out": [column["name"] for column in inspected["columns"] if column["name"] not in used],
    }


def oldest_useful(feed: Feed) -> int | None:
    """Rows before this time would be late, and ignored; null while the feed has no clock."""
    clock = log_of(feed).end[1]
    return None if clock is None else watermark_at(clock, feed.lateness)


def check_into(feed: Feed, upload: Upload, reading: Reading) -> None:
    """Raises Refused unless the feed accepts the reading's rows, and no other file is being loaded
    into it."""
    made = reading.feed("upload")
    faults = []
    if str(made.crs) != feed.crs:
        places = Message("The feed's places are longitude and latitude."), Message("The feed's places lie in a plane.")
        faults.append(Fault("/reading/crs", places[feed.crs != "geographic"]))
    if str(made.time) != feed.time:
        faults.append(
            Fault("/reading/time_format", Message("The feed counts milliseconds.") if feed.time == "ms" else Message("The feed counts ticks."))
        )
    for at, one in enumerate(reading.attributes):
        if feed.columns.get(one.name) != str(one.type):
            if one.name in feed.columns:
                has = Message("has it as {type}", type=feed.columns[one.name])
            else:
                has = Message("has no such column: add it in the settings of the feed")
            faults.append(
                Fault(f"/reading/attributes/{at}", Message("{name} would be {type}; the feed {has}.", name=one.name, type=one.type, has=has))
            )
    if faults:
        raise Refused(faults)
    if feed.uploads.filter(state__in=UNFINISHED).exclude(pk=upload.pk).exists():
        raise InUse(
            [Fault("", Message("Another file is being loaded into this feed: its rows would make those of this file late. Wait until it is loaded."))]
        )
    if upload.position:
        raise refuse("/file", Message("A part of this file is in the feed already: upload it again to load the rest."))


def completed(rows: pa.Table, feed: Feed) -> pa.Table:
    """The rows with all columns of the feed: those that the file lacks are null."""
    schema = row_schema(feed.engine_feed())
    missing = [field for field in schema if field.name not in rows.column_names]
    for field in missing:
        rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)


def not_before(rows: pa.Table, first: int | None) -> pa.Table:
    """The rows at `first` and later."""
    return rows if first is None else rows.filter(pc.greater_equal(rows.column(TIME), first))
