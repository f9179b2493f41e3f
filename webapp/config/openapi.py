"""Describes the API's answers in the OpenAPI document by the types of the functions that return
them."""

from __future__ import annotations

import dataclasses
import inspect
from types import NoneType, UnionType
from typing import Annotated, Any, TypedDict, Union, get_args, get_origin, get_type_hints, is_typeddict

from drf_spectacular.plumbing import resolve_type_hint
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from webapp.config.errors import FaultsBody

Schema = dict[str, Any]


@dataclasses.dataclass(frozen=True)
class Length:
    """To annotate lists: they have this many items."""

    items: int

    def facets(self) -> Schema:
        return {"minItems": self.items, "maxItems": self.items}


@dataclasses.dataclass(frozen=True)
class Format:
    """To annotate texts: their format in the OpenAPI document."""

    name: str

    def facets(self) -> Schema:
        return {"format": self.name}


Moment = Annotated[str, Format("date-time")]
"""A time in ISO 8601."""


def schema_of(kind: Any) -> Schema:
    """The schema of a TypedDict or dataclass, or of a list, dictionary or union of what has one.

    Keys that may be missing are in a base class with `total=False`: NotRequired is not seen where
    annotations are text.
    """
    origin, arguments = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {**schema_of(arguments[0]), **arguments[1].facets()}
    if is_typeddict(kind):
        return _object(kind, get_type_hints(kind, include_extras=True), kind.__required_keys__)
    if dataclasses.is_dataclass(kind):
        hints = get_type_hints(kind)
        return _object(kind, hints, hints)
    if origin is list:
        return {"type": "array", "items": schema_of(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": schema_of(arguments[1])}
    if origin in (UnionType, Union):
        choices = [schema_of(choice) for choice in arguments if choice is not NoneType]
        schema = choices[0] if len(choices) == 1 else {"anyOf": choices}
        return {**schema, "nullable": True} if NoneType in arguments else schema
    if kind is int:
        # Times in milliseconds need more than 32 bits.
        return {"type": "integer", "format": "int64"}
    return {} if kind is Any else dict(resolve_type_hint(kind))  # type: ignore[no-untyped-call]


def _object(kind: Any, hints: dict[str, Any], required: Any) -> Schema:
    schema: Schema = {"type": "object", "title": kind.__name__, "properties": {name: schema_of(hint) for name, hint in hints.items()}}
    if kind.__doc__:
        schema["description"] = inspect.cleandoc(kind.__doc__)
    return {**schema, "required": sorted(required)} if required else schema


def field_of(kind: Any, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """A field of a serializer that only describes an answer."""

    class Described(serializers.JSONField):
        """A separate class for each field, because the schema is stored in the class."""

    described: type[serializers.JSONField] = extend_schema_field(schema_of(kind))(Described)
    return described(**options)


def serializer_of(row: Any) -> type[serializers.Serializer[Any]]:
    """A serializer with the keys of a TypedDict as its fields, which only describe."""
    fields = {name: field_of(kind) for name, kind in get_type_hints(row, include_extras=True).items()}
    return type(row.__name__, (serializers.Serializer,), fields)


TimeRange = TypedDict("TimeRange", {"from": int, "to": int})
"""Of time, in the unit of the feed."""
TimeRangeRead = TypedDict("TimeRangeRead", {"from": int | None, "to": int | None})
"""That of the rows that were read; null: there are none."""


class Page(TypedDict):
    """The addresses of the pages before and after; null: there is none."""

    next: str | None
    previous: str | None


def page_of(rows: Any) -> Schema:
    """A page of a list that the view does not make by its paginator. `rows`: the type of one."""
    schema = schema_of(Page)
    name = f"{rows.__name__.removesuffix('Row')}Page"
    return {
        **schema,
        "title": name,
        "properties": {**schema["properties"], "results": schema_of(list[rows])},
        "required": ["next", "previous", "results"],
    }


def with_components(result: Schema, generator: Any, request: Any, public: bool) -> Schema:
    """A hook of drf_spectacular: schemas with a title become components, which generated clients
    name; all refusals have one form."""
    components = result["components"].setdefault("schemas", {})
    for name, component in components.items():
        if not name.endswith("Request"):
            _with_all_required(component)
    refused = {"description": "Refused.", "content": {"application/json": {"schema": schema_of(FaultsBody)}}}
    for path in result["paths"].values():
        for operation in path.values():
            operation["responses"].setdefault("default", refused)
    result["paths"] = hoisted(result["paths"], components)
    for name in list(components):
        components[name] = {key: hoisted(value, components) for key, value in components[name].items()}
    result["components"]["schemas"] = dict(sorted(components.items()))
    return result


def _with_all_required(component: Schema) -> None:
    """Optional fields of a request are always in answers."""
    if "properties" in component:
        component["required"] = [name for name, one in component["properties"].items() if not one.get("writeOnly")]


def hoisted(value: Any, components: dict[str, Schema]) -> Any:
    """`value` with references in the place of schemas that have a title; these
    are put into `components`."""
    if isinstance(value, list):
        return [hoisted(item, components) for item in value]
    if not isinstance(value, dict):
        return value
    inner = {key: hoisted(item, components) for key, item in value.items()}
    if inner.get("type") != "object" or not isinstance(inner.get("title"), str) or "properties" not in inner:
        return inner
    name = inner.pop("title")
    of_the_field = {key: inner.pop(key) for key in ("nullable", "readOnly") if key in inner}
    if components.setdefault(name, inner) != inner:
        raise ValueError(f"two schemas have the name {name}")
    reference = {"$ref": f"#/components/schemas/{name}"}
    return {"allOf": [reference], **of_the_field} if of_the_field else reference
