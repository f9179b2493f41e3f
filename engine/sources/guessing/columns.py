"""Which columns are entity, time and place; the others are attributes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa

from engine.model.feed import CORE_TYPES
from engine.sources.formats import Layout
from engine.sources.guessing.names import EASTWARD, EVENT, NORTHWARD, WHO, named_column, plain, without_accents
from engine.sources.guessing.places import column_of_both, crs_of, place_format
from engine.sources.guessing.times import with_time
from engine.sources.guessing.values import has_decimal_commas, is_name, is_text, type_of
from engine.sources.places import is_bytes
from engine.sources.reading import Attribute, Reading, reading_of

OFTEN, SELDOM = 0.5, 0.02
"""Shares of rows."""


def guess(raw: pa.Table, layout: Layout, name: str, chosen: Mapping[str, Any]) -> Reading:
    """The likely mapping of a file's columns, where `chosen` does not give it. Raises Refused."""
    columns = {column: raw.column(column).combine_chunks() for column in raw.column_names}
    decimal = "," if has_decimal_commas(columns.values()) else "."
    x, y = named_column(columns, EASTWARD), named_column(columns, NORTHWARD)
    x, y = (x, y) if x and y else (column_of_both(columns), "")
    reading = Reading(layout, x=x, y=y, decimal=decimal, event=named_column(columns, EVENT), thing=Path(name).name.split(".")[0][:60] or "thing")
    reading = _but(reading, chosen, "x", "y", "decimal", "event", "thing", "zone", "encoding", "delimiter", "header", "sheet", "kind")
    reading = _but(replace(reading, place_format=place_format(columns, reading)), chosen, "place_format")
    reading = _but(with_time(columns, _but(reading, chosen, "time"), fixed="time" in chosen), chosen, "time", "time_format")
    x, y = reading.x, reading.y
    free = [one for one in columns if one not in (*reading.time, x, y, reading.event)]
    entity = _entity(free, columns) or _who_is_once_at_a_time(free, columns, reading.time)
    reading = replace(reading, entity=(entity,) if entity else (), crs=crs_of(columns, reading))
    reading = _but(reading, chosen, "entity", "crs")
    return _but(replace(reading, attributes=_guess_attributes(columns, reading)), chosen, *chosen)


def _but(reading: Reading, chosen: Mapping[str, Any], *keys: str) -> Reading:
    """The reading with the chosen keys. Raises Refused."""
    return reading_of({**reading.to_json(), **{key: chosen[key] for key in keys if key in chosen}})


def _entity(columns: Sequence[str], values: Mapping[str, pa.Array]) -> str:
    usable = [column for column in columns if is_name(values[column])]
    # If some rows have another column for the entity, the one that most rows have is used.
    usable = [column for column in usable if 2 * values[column].null_count <= len(values[column])] or usable
    named = named_column(usable, WHO)
    if named:
        return named
    ending = [column for column in usable if re.search(r"(^|_)(id|no|nr|number|code|key)$", plain(column))]
    return ending[0] if ending else ""


def _who_is_once_at_a_time(names: Sequence[str], columns: Mapping[str, pa.Array], time: Sequence[str]) -> str:
    """Of a file in which many rows have one time: the column whose values come again, and (nearly)
    never twice at a time. "" if none does."""
    if not time or not columns[time[0]]:
        return ""
    rows = pd.DataFrame({name: columns[name].to_pandas() for name in {*names, *time} if name in time or is_name(columns[name])})
    if rows[list(time)].duplicated().mean() < OFTEN:
        return ""
    for name in (name for name in names if name in rows and is_text(columns[name])):
        if rows[name].notna().all() and 1 < rows[name].nunique() < OFTEN * len(rows) and rows[[name, *time]].duplicated().mean() < SELDOM:
            return name
    return ""


def _guess_attributes(columns: Mapping[str, pa.Array], reading: Reading) -> tuple[Attribute, ...]:
    used = {*reading.time, reading.x, reading.y, reading.event, *reading.entity}
    attributes: list[Attribute] = []
    taken = {*CORE_TYPES, "seq", "clock", "route"}
    for source, column in columns.items():
        if source in used or len(attributes) == 60 or is_bytes(column.type):
            continue
        name = re.sub(r"[^a-z0-9_]+", "_", without_accents(source)).strip("_")[:60] or f"column_{len(attributes) + 1}"
        name = f"_{name}" if name[0].isdigit() else name
        free, more = name, 2
        while free in taken:
            free, more = f"{name}_{more}", more + 1
        taken.add(free)
        attributes.append(Attribute(source, free, type_of(column, reading.decimal)))
    return tuple(attributes)
