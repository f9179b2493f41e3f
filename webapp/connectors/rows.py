"""Records of a stream as a feed's rows: read by a `Reading`, checked like rows of files and
requests; invalid ones become dead letters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from engine.model.events import row_schema
from engine.model.faults import Fault, Refused
from engine.model.feed import Crs, TimeUnit
from engine.model.feed import Feed as EngineFeed
from engine.model.messages import Message
from engine.sources.files import CheckedChunk, Columns, UnreadableFile, malformed
from engine.sources.formats import InvalidLine, column_from, excerpt, flattened
from engine.sources.jsonlines import piece_of_objects
from engine.sources.live import Record, SourceKind
from engine.sources.reading import PLANE, UTM, Reading, read_rows, reading_of

CELL_CHARACTERS = 10_000


def reading_for(document: dict[str, Any], kind: SourceKind, feed: EngineFeed) -> Reading | None:
    """How the records of a kind become rows of the feed: by `document`, by the kind, or like rows
    of requests (null). Raises Refused."""
    if document:
        return _checked(reading_of({**document, "kind": "json"}), feed)
    if kind.reading is not None:
        return own_reading(kind.reading, kind.columns, feed)
    return None


def own_reading(document: Mapping[str, Any], columns: Sequence[str], feed: EngineFeed) -> Reading:
    """For a protocol that defines the meaning of its records; those of its `columns` that the feed
    has become attributes. Raises Refused."""
    attributes = [{"source": name, "name": name, "type": str(type_)} for name, type_ in feed.columns.items() if name in columns]
    return _checked(reading_of({**document, "kind": "json", "attributes": attributes}), feed)


def _checked(reading: Reading, feed: EngineFeed) -> Reading:
    """The reading, if it makes rows of this feed. Raises Refused."""
    faults = []
    if not reading.time:
        faults.append(Fault("/time", Message("Choose the column with the time; received is the time at which a record came.")))
    if reading.crs == UTM:
        faults.append(Fault("/crs", Message("The coordinates look like UTM, and the zone is not given: give its EPSG code.")))
    made = reading.feed("made")
    if made.crs is not feed.crs:
        faults.append(
            Fault(
                "/crs",
                Message(
                    "The feed's places are {crs}: choose {system}.",
                    crs=feed.crs,
                    system=PLANE if feed.crs is Crs.PLANAR else Message("a coordinate reference system"),
                ),
            )
        )
    if made.time is not feed.time:
        faults.append(
            Fault(
                "/time_format",
                Message("The feed counts ticks.") if feed.time is TimeUnit.TICKS else Message("The feed's times are moments, not ticks."),
            )
        )
    for at, one in enumerate(reading.attributes):
        if one.name not in feed.columns:
            faults.append(
                Fault(
                    f"/attributes/{at}/name",
                    Message("The feed has no column {name}. It has: {known}.", name=repr(one.name), known=", ".join(feed.columns) or "none"),
                )
            )
    if faults:
        raise Refused(faults)
    return reading


def rows_of(records: Sequence[Record | InvalidLine], reading: Reading | None, feed: EngineFeed) -> CheckedChunk:
    """The rows and dead letters of a batch. An error in one record does not affect the others."""
    try:
        return _together(records, reading, feed)
    except (ValueError, TypeError, OverflowError, RecursionError, pa.ArrowException, UnreadableFile) as error:
        if len(records) == 1:
            text = "" if isinstance(records[0], InvalidLine) else excerpt(records[0])
            letter = malformed(Message("the record cannot be read: {error}", error=str(error)[:470]), text)
            return CheckedChunk(row_schema(feed).empty_table(), 1, lambda: [letter])
        half = len(records) // 2
        return CheckedChunk.joined([rows_of(part, reading, feed) for part in (records[:half], records[half:])], feed)


def _together(records: Sequence[Record | InvalidLine], reading: Reading | None, feed: EngineFeed) -> CheckedChunk:
    dead = [malformed(one.problem, one.text) for one in records if isinstance(one, InvalidLine)]
    whole = [one for one in records if not isinstance(one, InvalidLine)]
    if not whole:
        return CheckedChunk(row_schema(feed).empty_table(), len(dead), lambda: dead)
    if reading is None:
        piece = piece_of_objects(whole, Columns(feed))
    else:
        # Only columns in use: others may send any number of columns.
        flat = [flattened(dict(one)) for one in whole]
        table = pa.table({name: column_from([_cell(record.get(name)) for record in flat]) for name in reading.sources})
        checked = read_rows(table, reading, feed).checked
        piece = CheckedChunk.of(checked, checked.dead)
    # Read here, so that an invalid record fails here.
    dead += piece.dead()
    return CheckedChunk(piece.rows, len(records), lambda: dead)


def _cell(value: Any) -> Any:
    return value[:CELL_CHARACTERS] if isinstance(value, str) else value
