"""Unknown parameters of addresses are refused, and unknown values of those with a list of values:
if they were ignored, the answer to a misspelt filter would look like a filtered one.

The known parameters of an address are those of the OpenAPI document, so that behaviour and
description cannot differ.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from threading import Lock
from typing import Any

from django.http import HttpRequest, HttpResponseBase, JsonResponse, QueryDict
from drf_spectacular.generators import SchemaGenerator

from engine.model.faults import Fault, unknown_name
from engine.model.messages import Message
from webapp.config.errors import faults_body, pointer_step

ROOT = "api/v1/"
PART = re.compile(r"\(\?P<\w+>[^)]*\)|<(?:\w+:)?\w+>|\{\w+\}")
"""A variable part of an address, as written in routes of both kinds and in the OpenAPI
document, which renames it."""


BOOLEANS = ("false", "true")

_ONE_AT_A_TIME = Lock()
"""The generator loads its extensions as it goes, which two threads must not do at the same time:
the first requests of a page come together."""


def shape(route: str) -> str:
    """An address with its parts left open: `api/v1/feeds/{}/`."""
    return PART.sub("{}", route).replace("^", "").replace("$", "").replace(r"\Z", "").lstrip("/")


def known_parameters() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    """The parameters of each address of the API with their schemas, by its shape and method. Takes
    a second or two, once a process."""
    with _ONE_AT_A_TIME:
        return _known_parameters()


@cache
def _known_parameters() -> Mapping[tuple[str, str], Mapping[str, Any]]:
    generator: Any = SchemaGenerator
    paths: dict[str, Any] = generator().get_schema(request=None, public=True)["paths"]
    return {
        (shape(path), method.upper()): {one["name"]: one["schema"] for one in operation.get("parameters", []) if one["in"] == "query"}
        for path, operations in paths.items()
        for method, operation in operations.items()
    }


def faults_of(given: QueryDict, known: Mapping[str, Any]) -> dict[str, list[Message]]:
    """The faults of parameters, by name; `known` has the schemas of those that are known."""
    return {name: faults for name, values in given.lists() if (faults := list(_faults(name, values, known)))}


def _faults(name: str, values: list[str], known: Mapping[str, Any]) -> Iterator[Message]:
    if name not in known:
        yield unknown_name(name, known, what=Message("parameter"))
        return
    schema = known[name]
    if schema.get("type") == "array":
        schema = schema["items"]
    elif len(values) > 1:
        yield Message("The parameter {name} is here twice: keep one of them.", name=repr(name))
    words = BOOLEANS if schema.get("type") == "boolean" else schema.get("enum")
    # An empty value counts as none.
    yield from (unknown_name(value, words, what=Message("value")) for value in values if words and value and value not in words)


class KnownParameters:
    """Answers 400 to a request below /api/v1/ with parameters or values that its address does not
    know, each with the nearest known one, or with a parameter that is repeated but is no list."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        return self.get_response(request)

    def process_view(self, request: HttpRequest, view: Any, args: Any, kwargs: Any) -> HttpResponseBase | None:
        match = request.resolver_match
        if not request.GET or match is None or not match.route.startswith(ROOT):
            return None
        known = known_parameters().get((shape(match.route), "GET" if request.method == "HEAD" else str(request.method)))
        if known is None:
            return None
        faults = [Fault(pointer_step(name), message) for name, messages in faults_of(request.GET, known).items() for message in messages]
        return JsonResponse(faults_body(faults), status=400) if faults else None
