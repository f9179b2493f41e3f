"""The meaning of a file's columns, and the feed's rows made from them: times in its unit,
places in its coordinates."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from engine.model.events import CheckedRows, Reason
from engine.model.faults import Faults, Refused, unknown_name
from engine.model.feed import CORE_TYPES, ColumnType, Crs, Feed, TimeUnit
from engine.model.messages import Message, untranslated
from engine.sources.files import JOINT
from engine.sources.formats import FileFormat, Layout
from engine.sources.numbers import Bools, as_text, bools, numbers_of, valid, whole_of
from engine.sources.places import FORMS, IN_ONE, NUMBERS, SCALED, WKB, WKT, places_in

PLANE = "plane"
"""Instead of a coordinate reference system: places stay as they are, in a plane."""
WGS84 = "EPSG:4326"
UTM = "UTM"
"""Coordinates that look like UTM of an unknown zone: no row is read before the user has named
it."""
TICKS, ISO = "ticks", "iso"
EPOCHS: Mapping[str, int] = {"epoch_s": 1_000_000_000, "epoch_ms": 1_000_000, "epoch_us": 1_000, "epoch_ns": 1}
"""Nanoseconds of a unit in which times since 1970 are counted."""
DATED = (
    "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y/%m/%d %H:%M", "%d/%m/%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M", "%m/%d/%Y %I:%M:%S %p", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M", "%d-%m-%Y %H:%M:%S", "%d-%m-%Y %H:%M", "%d-%b-%Y %H:%M:%S",
    "%d-%b-%Y %H:%M", "%d %b %Y %H:%M:%S", "%d/%m/%Y, %H:%M:%S",
    "%Y%m%d%H%M%S", "%Y%m%d%H%M", "%Y%m%d %H%M%S", "%Y%m%dT%H%M%S", "%Y-%m-%d", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%Y%m%d",
    "%m/%d/%Y %I:%M %p", "%m/%d/%y %I:%M:%S %p", "%m/%d/%y %I:%M %p", "%d/%m/%y %H:%M:%S", "%d/%m/%y %H:%M", "%m/%d/%y %H:%M:%S", "%m/%d/%y %H:%M",
    "%d.%m.%y %H:%M:%S", "%d.%m.%y %H:%M", "%Y-%m-%d %H:%M:%S,%f", "%d/%m/%Y %H:%M:%S.%f", "%d.%m.%Y %H:%M:%S.%f", "%Y-%m-%d %H:%M:%S %Z",
    "%d/%m/%Y %I:%M:%S %p", "%d/%m/%Y %I:%M %p", "%d/%m/%y %I:%M:%S %p", "%d/%m/%y %I:%M %p", "%Y-%m-%d %I:%M:%S %p", "%Y-%m-%d %I:%M %p",
)  # fmt: skip
"""Formats in which times are written, tried in this order."""
_FORMAT = re.compile(r"[%A-Za-z0-9 :/.,\-+]{2,60}")
_CRS = re.compile(r"EPSG:\d{4,6}")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
MOST_ATTRIBUTES = 100


@dataclass(frozen=True)
class Attribute:
    """A column of the file that the feed gets as `name`."""

    source: str
    name: str
    type: ColumnType


@dataclass(frozen=True)
class Reading:
    """How a file is read. `entity`: columns whose texts are joined, none for one thing named
    `thing`; `time`: columns joined by a blank.

    `time_format`: ISO, one of EPOCHS, TICKS, or a format of strptime; times without an offset
    are of `zone`. `place_format`: NUMBERS, one of SCALED, or one of IN_ONE: then `x` alone names
    the column with the place. `crs`: PLANE, the system in which x and y are (they become
    longitude and latitude), or UTM.
    """

    layout: Layout
    time: tuple[str, ...] = ()
    entity: tuple[str, ...] = ()
    x: str = ""
    y: str = ""
    event: str = ""
    attributes: tuple[Attribute, ...] = ()
    thing: str = "thing"
    decimal: str = "."
    time_format: str = ISO
    zone: str = "UTC"
    place_format: str = NUMBERS
    crs: str = WGS84

    def to_json(self) -> dict[str, Any]:
        """The document that `reading_of` reads back."""
        document = asdict(self)
        lists = {key: list(document[key]) for key in ("time", "entity", "attributes")}
        return {**document.pop("layout"), **document, **lists}

    def feed(self, name: str, *, lateness: int = 0, tick: int = 1) -> Feed:
        """The feed whose rows `read_rows` makes."""
        crs = Crs.PLANAR if self.crs == PLANE else Crs.GEOGRAPHIC
        time = TimeUnit.TICKS if self.time_format == TICKS else TimeUnit.MS
        return Feed(name, crs, time, tick, lateness, True, {one.name: one.type for one in self.attributes})

    @property
    def sources(self) -> list[str]:
        """The columns of the file that are used."""
        named = [*self.entity, *self.time, self.x, self.y, self.event, *(one.source for one in self.attributes)]
        return list(dict.fromkeys(name for name in named if name))


def reading_of(document: Mapping[str, Any]) -> Reading:
    """The mapping of a document, checked as far as possible without the file.
    Raises Refused with all faults."""
    faults = Faults()
    known = Reading(Layout(FileFormat.CSV)).to_json()
    for key in document:
        if key not in known:
            faults.note(f"/{key}", unknown_name(str(key), known, what=Message("key")))
    texts = {key: document.get(key, standard) for key, standard in known.items() if isinstance(standard, str)}
    for key, text in texts.items():
        if not isinstance(text, str) or len(text) > 200 or "\x00" in text:
            faults.note(f"/{key}", Message("must be a text of at most 200 characters"))
    lists = {key: document.get(key, []) for key in ("time", "entity")}
    for key, names in lists.items():
        if not isinstance(names, list | tuple) or len(names) > 5 or not all(isinstance(name, str) and len(name) <= 200 for name in names):
            faults.note(f"/{key}", Message("must be a list of at most 5 names of columns"))
    attributes = _attributes(document.get("attributes", []), faults)
    if faults:
        raise Refused(faults)
    _check_words(texts, faults)
    if faults:
        raise Refused(faults)
    layout = Layout(
        FileFormat(texts.pop("kind")), texts.pop("encoding"), texts.pop("delimiter"), bool(document.get("header", True)), texts.pop("sheet")
    )
    return Reading(layout, tuple(lists["time"]), tuple(lists["entity"]), attributes=attributes, **texts)


def _attributes(documents: Any, faults: Faults) -> tuple[Attribute, ...]:
    if not isinstance(documents, list | tuple) or len(documents) > MOST_ATTRIBUTES:
        faults.note("/attributes", Message("must be a list of at most {most} attributes", most=MOST_ATTRIBUTES))
        return ()
    attributes: list[Attribute] = []
    for at, one in enumerate(documents):
        if not isinstance(one, Mapping) or set(one) != {"source", "name", "type"} or not all(isinstance(text, str) for text in one.values()):
            faults.note(f"/attributes/{at}", Message('must be written as {"source": ..., "name": ..., "type": ...}'))
        elif one["type"] not in list(ColumnType):
            faults.note(f"/attributes/{at}/type", Message("must be one of: {known}", known=", ".join(ColumnType)))
        elif not _NAME.fullmatch(one["name"]) or one["name"] in (*CORE_TYPES, "seq", "clock", "route"):
            faults.note(f"/attributes/{at}/name", Message("letters, digits and _; not the name of a column that every feed has"))
        elif any(one["name"] == other.name for other in attributes):
            faults.note(f"/attributes/{at}/name", Message("there are two attributes {name}: give one another name", name=repr(one["name"])))
        else:
            attributes.append(Attribute(one["source"], one["name"], ColumnType(one["type"])))
    return tuple(attributes)


def _check_words(texts: Mapping[str, str], faults: Faults) -> None:
    if texts["kind"] not in list(FileFormat):
        faults.note("/kind", Message("must be one of: {known}", known=", ".join(FileFormat)))
    if len(texts["delimiter"]) != 1 or texts["delimiter"] in '"\r\n':
        faults.note("/delimiter", Message("must be one character"))
    if texts["decimal"] not in (".", ","):
        faults.note("/decimal", Message("must be a point or a comma"))
    if not texts["thing"].strip():
        faults.note("/thing", Message("the thing needs a name"))
    form = texts["time_format"]
    if form not in (ISO, TICKS, *EPOCHS) and not ("%" in form and _FORMAT.fullmatch(form)):
        faults.note(
            "/time_format",
            Message("must be {iso}, {epochs}, {ticks} or a format such as {dated}", iso=ISO, epochs=", ".join(EPOCHS), ticks=TICKS, dated=DATED[0]),
        )
    try:
        ZoneInfo(texts["zone"])
    except (KeyError, ValueError, OSError):
        faults.note("/zone", Message("there is no such time zone: write it as Europe/Athens"))
    try:
        "".encode(texts["encoding"])
    except (LookupError, ValueError):
        faults.note("/encoding", Message("there is no such encoding"))
    if texts["place_format"] not in FORMS:
        faults.note("/place_format", Message("must be one of: {known}", known=", ".join(FORMS)))
    if texts["crs"] not in (PLANE, WGS84, UTM) and not (_CRS.fullmatch(texts["crs"]) and _transformer(texts["crs"]) is not None):
        faults.note(
            "/crs",
            Message("must be {plane}, or a coordinate reference system such as {wgs84} that has a place on the earth", plane=PLANE, wgs84=WGS84),
        )


@dataclass
class ReadRows:
    """Rows of a file as a feed's: `checked.good()` are events. `raw` are the file's own values."""

    checked: CheckedRows
    raw: pa.Table


def read_rows(raw: pa.Table, reading: Reading, feed: Feed) -> ReadRows:
    """The feed's rows in a table with the file's columns, each with its first
    fault and what to do about it."""
    return _Rows(raw, reading, feed).read()


class _Rows:
    def __init__(self, raw: pa.Table, reading: Reading, feed: Feed) -> None:
        self.raw, self.reading, self.feed = raw, reading, feed
        self.count = raw.num_rows
        self.notes: list[tuple[Bools, Reason, Message]] = []

    def read(self) -> ReadRows:
        columns = {"entity": self._entity(), "t": self._time(), **self._place()}
        if self.reading.event:
            columns["event"] = as_text(self._column(self.reading.event))
        for one in self.reading.attributes:
            columns[one.name] = self._attribute(one)
        self._note_missing(columns)
        shown = self.raw.select([name for name in self.reading.sources if name in self.raw.column_names])
        checked = _Noted(pa.table(columns), self.feed, self.notes, shown)
        return ReadRows(checked, self.raw)

    def _column(self, name: str) -> pa.Array:
        if name not in self.raw.column_names:
            return pa.nulls(self.count, pa.string())
        column = self.raw.column(name).combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
        return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column

    def note(self, rows: Bools, reason: Reason, detail: Message) -> None:
        self.notes.append((rows, reason, detail))

    def _note_missing(self, columns: Mapping[str, pa.Array]) -> None:
        """Notes what every feed's check would note, in the words of the file's columns."""
        reading = self.reading
        no_entity = bools(pc.equal(pc.fill_null(columns["entity"], ""), ""))
        self.note(no_entity, Reason.MISSING_ENTITY, Message("the row has no entity in column {named}", named=_named(reading.entity)))
        self.note(~valid(columns["t"]), Reason.MISSING_TIME, Message("the row has no time in column {named}", named=_named(reading.time)))
        if "x" in columns and reading.place_format not in IN_ONE:
            half = valid(columns["x"]) != valid(columns["y"])
            self.note(half, Reason.HALF_POSITION, Message("only one of the columns {x}, {y} has a value", x=repr(reading.x), y=repr(reading.y)))

    def _entity(self) -> pa.Array:
        if not self.reading.entity:
            return pa.array([self.reading.thing], pa.string()).take(pa.array(np.zeros(self.count, np.int64)))
        texts = [pc.utf8_trim_whitespace(as_text(self._column(name))) for name in self.reading.entity]
        return texts[0] if len(texts) == 1 else pc.binary_join_element_wise(*texts, JOINT)

    def _time(self) -> pa.Array:
        if not self.reading.time:
            self.note(np.ones(self.count, np.bool_), Reason.MISSING_TIME, Message("no column has the time: choose one"))
        time_columns = [self._column(name) for name in self.reading.time] or [pa.nulls(self.count, pa.string())]
        column = time_columns[0] if len(time_columns) == 1 else joined_times(time_columns)
        present = valid(column)
        if present.any() and pa.types.is_string(column.type):
            present &= bools(pc.not_equal(column, ""))
        times, wrong = times_of(column, self.reading)
        self.note(
            present & wrong,
            Reason.WRONG_TYPE,
            Message(
                "column {named} holds no time as {format}: choose another format, or correct the value",
                named=_named(self.reading.time),
                format=_format_name(self.reading),
            ),
        )
        return pa.array(times, mask=wrong | ~present)

    def _place(self) -> dict[str, pa.Array]:
        reading = self.reading
        if reading.place_format in IN_ONE and reading.x:
            x, y, wrong = places_in(self._column(reading.x), reading.place_format, reading.decimal)
            self.note(
                wrong,
                Reason.WRONG_TYPE,
                Message(
                    "column {x} holds no {form}: {remedy}", x=repr(reading.x), form=IN_ONE[reading.place_format], remedy=_remedy(reading.place_format)
                ),
            )
            outside_earth = Message(
                "in column {column} longitude must lie in [-180, 180] and latitude in [-90, 90]: "
                "correct the value, or choose another form of places or another coordinate reference system",
                column=repr(reading.x),
            )
        elif reading.x and reading.y:
            x, y = self._number(reading.x), self._number(reading.y)
            if reading.place_format in SCALED:
                x, y = x / SCALED[reading.place_format], y / SCALED[reading.place_format]
            outside_earth = Message(
                "longitude {x} must lie in [-180, 180] and latitude {y} in [-90, 90]: "
                "correct the value, exchange the two columns, or choose another coordinate reference system or sign for decimals",
                x=repr(reading.x),
                y=repr(reading.y),
            )
        else:
            return {}
        if reading.crs == UTM:
            question = Message("the coordinates look like UTM, and nothing says which zone: choose the zone, or another coordinate reference system")
            self.note(np.isfinite(x) & np.isfinite(y), Reason.OUT_OF_RANGE, question)
        elif reading.crs == WGS84:
            self.note((np.abs(x) > 180) | (np.abs(y) > 90), Reason.OUT_OF_RANGE, outside_earth)
        elif reading.crs != PLANE:
            finite = np.isfinite(x) & np.isfinite(y)
            x, y = _transformer(reading.crs).transform(x, y)
            outside = finite & ~(np.isfinite(x) & np.isfinite(y))
            self.note(
                outside, Reason.OUT_OF_RANGE, Message("the place does not lie in {crs}: choose another coordinate reference system", crs=reading.crs)
            )
        return {"x": pa.array(x, mask=np.isnan(x)), "y": pa.array(y, mask=np.isnan(y))}

    def _number(self, name: str) -> npt.NDArray[np.float64]:
        values, wrong = numbers_of(self._column(name), self.reading.decimal)
        self.note(
            wrong,
            Reason.WRONG_TYPE,
            Message("column {name} holds no number: correct the value, choose another column or another sign for decimals", name=repr(name)),
        )
        return values

    def _attribute(self, one: Attribute) -> pa.Array:
        column = self._column(one.source)
        if one.type is ColumnType.STRING:
            return as_text(column)
        if one.type is ColumnType.BOOL:
            return self._truth(one, column)
        values, wrong = numbers_of(column, self.reading.decimal)
        if one.type is ColumnType.INT:
            wrong |= ~np.isnan(values) & ((values != np.floor(values)) | (np.abs(values) >= 2**63))
        self.note(
            wrong,
            Reason.WRONG_TYPE,
            Message(
                "column {source} holds no {type}: make the attribute {name} a string, or correct the value",
                source=repr(one.source),
                type=one.type,
                name=repr(one.name),
            ),
        )
        if one.type is ColumnType.INT and pa.types.is_integer(column.type):
            return column.cast(pa.int64(), safe=False)
        empty = wrong | np.isnan(values)
        return pa.array(whole_of(column, values, empty, self.reading.decimal) if one.type is ColumnType.INT else values, mask=empty)

    def _truth(self, one: Attribute, column: pa.Array) -> pa.Array:
        if pa.types.is_boolean(column.type):
            return column
        texts = pc.utf8_lower(pc.utf8_trim_whitespace(as_text(column)))
        yes = bools(pc.is_in(texts, pa.array(["true", "1", "yes", "t", "y"])))
        no = bools(pc.is_in(texts, pa.array(["false", "0", "no", "f", "n"])))
        wrong = valid(texts) & ~yes & ~no
        self.note(
            wrong,
            Reason.WRONG_TYPE,
            Message("column {source} holds neither true nor false: make the attribute {name} a string", source=repr(one.source), name=repr(one.name)),
        )
        return pa.array(yes, mask=~yes & ~no)


def _named(columns: Sequence[str]) -> str:
    return " and ".join(map(repr, columns))


class _Noted(CheckedRows):
    """Checked rows; faults of reading come before faults of checking."""

    def __init__(self, table: pa.Table, feed: Feed, notes: Sequence[tuple[Bools, Reason, Message]], raw: pa.Table) -> None:
        self._notes = notes
        super().__init__(table, feed, raw=raw)

    def _check(self) -> None:
        for rows, reason, detail in self._notes:
            self.mark(rows, reason, detail)
        super()._check()


def joined_times(parts: Sequence[pa.Array]) -> pa.Array:
    """Days and times of day as one text each: the midnight that a cell with a day alone has
    in a workbook is left out."""
    days = pc.replace_substring_regex(as_text(parts[0]), r"[T ]00:00:00(\.0+)?$", "")
    return pc.binary_join_element_wise(days, *(as_text(one) for one in parts[1:]), " ")


def times_of(column: pa.Array, reading: Reading) -> tuple[npt.NDArray[np.int64], Bools]:
    """(times in the unit of the feed, which hold none)."""
    form = reading.time_format
    if pa.types.is_timestamp(column.type) or pa.types.is_date(column.type):
        whole = column.cast(pa.timestamp("ms", getattr(column.type, "tz", None)), safe=False)
        instants = pd.Series(whole.to_pandas()) if len(whole) else pd.Series([], dtype="datetime64[ms]")
        return _milliseconds(instants, reading.zone)
    if form == TICKS or form in EPOCHS:
        return _counted(column, form, reading.decimal)
    texts = pc.utf8_trim_whitespace(as_text(column)).to_pandas()
    try:
        if form == ISO:
            instants = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=bool(_offset_share(texts) > 0.5))
        else:
            instants = pd.to_datetime(texts, format=form, errors="coerce", exact=True)
    except (ValueError, TypeError, OverflowError, pd.errors.OutOfBoundsDatetime):
        instants = pd.to_datetime(texts, errors="coerce", utc=True, format="ISO8601" if form == ISO else form)
    return _milliseconds(pd.Series(instants), reading.zone)


def _offset_share(texts: Any) -> float:
    return float(texts.dropna().str.contains(r"(?:[zZ]|[+-]\d\d:?\d\d)$", regex=True).mean()) if texts.notna().any() else 0.0


def _counted(column: pa.Array, form: str, decimal: str) -> tuple[npt.NDArray[np.int64], Bools]:
    whole = pa.types.is_integer(column.type)
    values, wrong = numbers_of(column, decimal)
    wrong = wrong | ~np.isfinite(values)
    if form == TICKS:
        wrong |= values != np.floor(values)
        return np.where(wrong, 0, values).astype(np.int64), wrong
    if whole:
        counts = column.cast(pa.int64(), safe=False).fill_null(0).to_numpy(zero_copy_only=False)
        nanoseconds = EPOCHS[form]
        return (counts * (nanoseconds // 1_000_000) if nanoseconds >= 1_000_000 else counts // (1_000_000 // nanoseconds)), wrong
    ms = values * (EPOCHS[form] / 1_000_000)
    wrong |= ~(np.abs(np.where(wrong, 0, ms)) < 2**60)
    return np.round(np.where(wrong, 0, ms)).astype(np.int64), wrong


def _milliseconds(instants: pd.Series[Any], zone: str) -> tuple[npt.NDArray[np.int64], Bools]:
    """Times without an offset are of the zone; those that it skips in spring are
    moved to the end of the gap."""
    if instants.isna().all():
        return np.zeros(len(instants), np.int64), np.ones(len(instants), np.bool_)
    if instants.dtype == object:
        instants = pd.to_datetime(instants, errors="coerce", utc=True)
    if instants.dt.tz is None:
        ambiguous = np.zeros(len(instants), np.bool_)
        instants = instants.dt.tz_localize(zone, ambiguous=ambiguous, nonexistent="shift_forward")
    wrong = np.array(instants.isna(), np.bool_)
    ms = instants.dt.tz_convert("UTC").dt.tz_localize(None).astype("datetime64[ms]").to_numpy().astype(np.int64)
    return np.where(wrong, 0, ms), wrong


def _remedy(form: str) -> Message:
    """The remedy for a value that is not a place of a form of IN_ONE."""
    if form in (WKT, WKB):
        return Message("only points are places of moving things: correct the value, or choose another column or form of places")
    return Message("write it in decimal degrees such as 52.5, 13.4, or choose another column or form of places")


_EXAMPLE = datetime(2026, 1, 31, 14, 5, tzinfo=UTC)
"""The page shows this moment for each format."""


def _format_name(reading: Reading) -> Message:
    form = reading.time_format
    if form in EPOCHS:
        return Message("a number since 1970 ({unit})", unit=form.removeprefix("epoch_"))
    return Message("a whole number") if form == TICKS else untranslated("ISO 8601" if form == ISO else _EXAMPLE.strftime(form))


@cache
def _transformer(crs: str) -> Any:
    """From `crs` to longitude and latitude; null where there is no such way."""
    import pyproj

    try:
        return pyproj.Transformer.from_crs(crs, WGS84, always_xy=True)
    except pyproj.exceptions.ProjError:
        return None
