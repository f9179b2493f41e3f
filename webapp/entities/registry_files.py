"""A registry in someone's file: CSV with a column `entity`, or GeoJSON whose features
have a property `entity`."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from engine.model.faults import Faults, Refused, refuse
from engine.model.messages import Message
from webapp.entities.models import ENTITY_LENGTH, NAME_LENGTH

FILE_BYTES = 10_000_000
RECORDS = 50_000
ATTRIBUTES = 50
TEXT_LENGTH = 500
COLUMNS = 200
"""Of a table, and different attributes of all entities of a file: the registry is exported as a
table again."""
FAULTS = 20
"""At most this many faulty rows are named; the file is refused anyway."""


@dataclass(frozen=True)
class FileEntity:
    """One entity of a file."""

    entity: str
    name: str
    attributes: Mapping[str, str]


def read_registry(data: bytes) -> list[FileEntity]:
    """The entities of a file. Raises Refused, naming rows, when any row is wrong
    or an entity appears twice."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise refused(Message("The file is not UTF-8 text: save it as CSV (UTF-8) or GeoJSON.")) from error
    rows = _features(text) if text.lstrip()[:1] in ("{", "[") else _csv(text)
    faults, records = Faults(), dict[str, FileEntity]()
    for row, properties in rows:
        try:
            given = _given(properties)
            if given.entity in records:
                raise ValueError(Message('the entity "{entity}" is in the file twice', entity=given.entity))
            records[given.entity] = given
        except ValueError as error:
            faults.note(f"/{row}", Message("Row {row}: {error}.", row=row, error=error))
        if len(faults) >= FAULTS or len(records) > RECORDS:
            break
    if len(records) > RECORDS:
        raise refused(Message("A file has at most {most:,} entities.", most=RECORDS))
    if faults:
        raise Refused(faults)
    if not records:
        raise refused(Message("The file has no row."))
    names = {key for given in records.values() for key in given.attributes}
    if len(names) > COLUMNS:
        raise refused(Message("The entities have {count:,} different attributes; at most {most} are accepted.", count=len(names), most=COLUMNS))
    return list(records.values())


def refused(message: Message) -> Refused:
    """A file that cannot be read as a whole."""
    return refuse("/file", message)


def _csv(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter, restkey="", strict=True)
    try:
        if "entity" not in (rows.fieldnames or []):
            raise refused(
                Message('A column "entity" is needed; the header has: {header}.', header=", ".join(rows.fieldnames or [])[:500] or "nothing")
            )
        if len(rows.fieldnames or []) > COLUMNS:
            raise refused(Message("A table has at most {most} columns; this one has {count:,}.", most=COLUMNS, count=len(rows.fieldnames or [])))
        for row in rows:
            if "" in row:
                raise refused(Message("Line {line} has more fields than the header.", line=rows.line_num))
            yield rows.line_num, row
    except csv.Error as error:
        raise refused(Message("Line {line} is not CSV: {error}.", line=rows.line_num + 1, error=error)) from error


def _features(text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise refused(Message("The file is not GeoJSON: {error}.", error=error)) from error
    features = document.get("features") if isinstance(document, dict) else None
    if not isinstance(features, list):
        raise refused(Message('A GeoJSON FeatureCollection is needed: {"type": "FeatureCollection", "features": [...]}.'))
    for row, feature in enumerate(features, 1):
        properties = feature.get("properties") if isinstance(feature, dict) else None
        yield row, properties if isinstance(properties, dict) else {}


def _given(properties: Mapping[str, Any]) -> FileEntity:
    """Raises ValueError with the reason."""
    texts = {str(key).strip(): _text(value) for key, value in properties.items()}
    entity, name = texts.pop("entity", ""), texts.pop("name", "")
    if not entity:
        raise ValueError(Message('there is no "entity"'))
    return checked(entity, name, {key: value for key, value in texts.items() if value != ""})


def checked(entity: str, name: str, attributes: Mapping[str, str]) -> FileEntity:
    """Raises ValueError for values that the registry does not accept."""
    if len(entity) > ENTITY_LENGTH or len(name) > NAME_LENGTH:
        raise ValueError(Message("an entity has at most {most} characters, a name at most {names}", most=ENTITY_LENGTH, names=NAME_LENGTH))
    if len(attributes) > ATTRIBUTES:
        raise ValueError(Message("an entity has at most {most} attributes", most=ATTRIBUTES))
    if "" in attributes:
        raise ValueError(Message("each attribute needs a name"))
    for key, value in attributes.items():
        if len(key) > NAME_LENGTH or len(value) > TEXT_LENGTH:
            raise ValueError(
                Message(
                    'the attribute "{key}" is longer than {names} (name) or {values} (value) characters',
                    key=key[:NAME_LENGTH],
                    names=NAME_LENGTH,
                    values=TEXT_LENGTH,
                )
            )
    if any(map(_is_no_text, "".join([entity, name, *attributes, *attributes.values()]))):
        raise ValueError(Message("control characters and halves of characters are not allowed"))
    return FileEntity(entity, name, dict(attributes))


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | dict | list):
        return _written(value)
    return str(value).strip()


def _written(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError as error:
        raise ValueError(Message("a value has too many levels")) from error


def _is_no_text(sign: str) -> bool:
    """Control characters and lone surrogates."""
    return ord(sign) < 32 or ord(sign) == 127 or 0xD800 <= ord(sign) < 0xE000
