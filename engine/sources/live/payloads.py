"""The contents of one message of a broker, a socket or an address: JSON (an object, a list of them,
GeoJSON) or CSV, as records."""

from __future__ import annotations

import csv
import json
import time
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

from engine.model.messages import Message
from engine.sources.csv_records import Block, records_of
from engine.sources.delimited import names_of
from engine.sources.formats import SHOWN, InvalidLine
from engine.sources.formats.json_text import records_of as records_of_document
from engine.sources.lines import UTF8_MARK
from engine.sources.live import RECEIVED, Field, FieldType, Record
from engine.sources.live.rfid import records_of_reader
from engine.sources.values import Cell

PAYLOAD_BYTES = 1_000_000
PAYLOAD_RECORDS = 10_000
FORMAT = Field(
    "format", "Messages are", FieldType.CHOICE, "json", choices=(("json", "JSON"), ("csv", "CSV"), ("rfid", "Tag reports of RFID readers"))
)
CSV_COLUMNS = Field(
    "csv_columns",
    "Columns of CSV, separated by commas",
    hint="Empty: the first line of each message names them.",
    when=("format", ("csv",)),
)


def now_ms() -> int:
    """The wall clock, in ms since 1970."""
    return time.time_ns() // 1_000_000


def records_in(
    payload: bytes, also: Mapping[str, Any], known: Mapping[str, Any] = MappingProxyType({}), *, form: str = "json", columns: str = ""
) -> Iterator[Record | InvalidLine]:
    """The records of a payload, each with `also`, the time of its reception, and what it does not
    contain itself of `known`. Never raises."""
    if len(payload) > PAYLOAD_BYTES:
        yield broken(Message("a message has at most {most:,} bytes; this one has {count:,}", most=PAYLOAD_BYTES, count=len(payload)), payload)
        return
    more = {**also, RECEIVED: now_ms()}
    try:
        records = _csv(payload, columns) if form == "csv" else records_of_reader(json.loads(payload)) if form == "rfid" else _json(payload)
        for count, one in enumerate(records):
            if count == PAYLOAD_RECORDS:
                yield broken(Message("a message has at most {most:,} records; the others are left out", most=PAYLOAD_RECORDS), payload)
                return
            yield one if isinstance(one, InvalidLine) else {**known, **one, **more}
    except (ValueError, RecursionError, csv.Error) as error:
        yield broken(Message("it cannot be read as {form}: {error}", form="CSV" if form == "csv" else "JSON", error=error), payload)


def broken(problem: Message, payload: bytes) -> InvalidLine:
    """A dead letter for a message."""
    return InvalidLine(0, problem, payload[:SHOWN].decode("utf-8", "replace"))


def _json(payload: bytes) -> Iterator[Record | InvalidLine]:
    return records_of_document(json.loads(payload))


def _csv(payload: bytes, columns: str) -> Iterator[dict[str, Any] | InvalidLine]:
    text, line = payload.removeprefix(UTF8_MARK), 1
    if not text.strip():
        return
    names = [name.strip() for name in columns.split(",")]
    if not columns.strip():
        header, _, text = text.partition(b"\n")
        names, line = names_of(header, ","), 2
    for one in records_of(Block(text, line), ","):
        problem = one.problem
        if problem is None and len(one.cells) != len(names):
            problem = Message("values in the line: {count}, columns: {columns}", count=len(one.cells), columns=len(names))
        if problem is None:
            yield {name: Cell(cell) if cell else None for name, cell in zip(names, one.cells, strict=True)}
        else:
            yield InvalidLine(one.line, problem, one.text[:SHOWN])
