"""Checks answers of the API against its OpenAPI document."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator

PREFIX = "/api/v1/"
JSON = "application/json"
OTHERS = ("/api/v1/track/",)
"""Addresses of devices, which speak the protocols of their makers."""
NOWHERE = ("404", "405")
"""The answer of an operation that does not exist."""


def check(method: str, path: str, status: int, body: bytes) -> None:
    """Raises AssertionError where an answer does not conform to the document."""
    if method in ("GET", "POST", "PUT", "PATCH", "DELETE") and path.startswith(PREFIX) and not path.startswith(OTHERS):
        found = faults(method, path, status, body)
        assert not found, f"{method} {path} answers {status} otherwise than its OpenAPI document says: {'; '.join(found[:10])}"


def check_frame(frame: dict[str, Any]) -> None:
    """Raises AssertionError where a frame of the live socket does not conform to the document."""
    found = faults_of(frame, _frame_validator(frame["type"]))
    assert not found, f"a frame is otherwise than its OpenAPI document says: {'; '.join(found[:10])}"


def faults(method: str, path: str, status: int, body: bytes) -> list[str]:
    """What the document does not describe: each with a pointer into the answer."""
    found = _validator(method.lower(), _template(path), str(status))
    if isinstance(found, str):
        return [found]
    return faults_of(json.loads(body), found)


def faults_of(value: Any, validator: Validator) -> list[str]:
    return [f"/{'/'.join(map(str, error.absolute_path))}: {shortened(error.message)}" for error in validator.iter_errors(value)]


def shortened(text: str) -> str:
    """The beginning and the end of a text; the value is in between."""
    return text if len(text) < 200 else f"{text[:60]} ... {text[-80:]}"


@cache
def document() -> dict[str, Any]:
    """The OpenAPI document with JSON Schema's own forms."""
    from drf_spectacular.generators import SchemaGenerator

    made: dict[str, Any] = _closed(json.loads(json.dumps(SchemaGenerator().get_schema(request=None, public=True), default=str)))
    return made


@cache
def _template(path: str) -> str | None:
    """The address in the document; the one with the fewest parameters when several fit."""
    fitting = [template for template, pattern in _patterns() if pattern.fullmatch(path)]
    return min(fitting, key=lambda template: template.count("{"), default=None)


@cache
def _patterns() -> list[tuple[str, re.Pattern[str]]]:
    return [(template, re.compile(re.sub(r"\\{\w+\\}", "[^/]+", re.escape(template)))) for template in document()["paths"]]


@cache
def _validator(method: str, template: str | None, status: str) -> Validator | str:
    """Or why there is none."""
    operation = document()["paths"].get(template, {}).get(method)
    if operation is None:
        return "the document does not have this operation" if status not in NOWHERE else Draft202012Validator({})
    answers = operation["responses"]
    described = answers.get(status) or (answers.get("default") if status >= "4" else None)
    if described is None:
        return f"the document has no answer with status {status}"
    schema = described.get("content", {}).get(JSON, {}).get("schema")
    if schema is None:
        return "the document has no JSON here"
    return _of(schema)


@cache
def _frame_validator(kind: str) -> Validator:
    return _of({"$ref": f"#/components/schemas/{kind.capitalize()}Frame"})


def _of(schema: dict[str, Any]) -> Validator:
    return Draft202012Validator({**schema, "components": document()["components"]}, format_checker=Draft202012Validator.FORMAT_CHECKER)


def _closed(value: Any) -> Any:
    """Objects with properties have no others, and null is a type as in JSON Schema."""
    if isinstance(value, list):
        return [_closed(item) for item in value]
    if not isinstance(value, dict):
        return value
    closed = {key: _closed(item) for key, item in value.items()}
    if closed.get("type") == "object" and "properties" in closed:
        closed.setdefault("additionalProperties", False)
        writable = {name for name, one in closed["properties"].items() if isinstance(one, dict) and one.get("writeOnly")}
        closed["required"] = [name for name in closed.get("required", []) if name not in writable]
    if closed.pop("nullable", False):
        return {"anyOf": [closed, {"type": "null"}]}
    return closed
