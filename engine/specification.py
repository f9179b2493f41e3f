"""From a document to a checked specification, or to all faults in it.

`check` looks at what all families share (family, version, name, no unknown keys) and leaves the
rest to the family's own `check(document, context)`, which reads its keys with the methods of
`Context`. A fault is noted and reading continues, so that all faults are reported together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from engine import contradictions
from engine.context import Context
from engine.derive import read_sources, with_answers, without_derive
from engine.families import FAMILIES
from engine.model.faults import Refused, refuse, unknown_name
from engine.model.feed import Feed
from engine.model.messages import Message

MOST_VALUES = 1_000_000
"""Of one document: regions of 100,000 corners hold 300,000. A body of 20 MB could hold ten times as
many as are read here in a second."""
BEYOND_NUMBERS = 2**1023
"""Whole numbers from here on are no double."""


def check(document: Any, feed: Feed, regions: Mapping[str, Any] | None = None) -> Any:
    """The checked specification, of its family's own type. `regions` are the stored
    ones: name to region document.

    Faults between a query that derives and those it derives from are found by
    `engine.derive.graph_faults`.

    Raises Refused with all faults.
    """
    context = Context(feed, regions or {})
    if not isinstance(document, Mapping):
        context.fault(Message('a specification is a JSON object: {"family": ..., "version": 1, "name": ..., ...}'))
        raise Refused(context.faults)
    try:
        _check_values(document, context)
    except RecursionError:
        context.fault(Message("is nested too deeply"))
    if context.faults:
        raise Refused(context.faults)
    family = document.get("family")
    if not isinstance(family, str) or family not in FAMILIES:
        if family is None:
            context.fault(Message("the key 'family' is missing; it is one of: {known}", known=", ".join(sorted(FAMILIES))))
        else:
            context.at("family").fault(unknown_name(family, FAMILIES, what=Message("family")))
        raise Refused(context.faults)
    _check_common(document, context)
    if "derive" in document:
        read_sources(document, context)
        document, context = without_derive(document), replace(context, feed=with_answers(feed))
    try:
        specification = FAMILIES[family].check(document, context)
    except Refused as refused:
        context.faults.extend(fault for fault in refused.faults if fault not in context.faults)
    if context.faults:
        raise Refused(context.faults)
    return specification


def _check_values(value: Any, context: Context) -> None:
    """Notes JSON values that cannot be represented: whole numbers beyond every
    double, and lone surrogates."""
    # Pointers into a region of 100,000 corners take a second: they are made
    # only on the way to a fault.
    if _usable(value):
        return
    if isinstance(value, str):
        context.fault(Message("holds half of a character (a lone surrogate), which is not text"))
    elif isinstance(value, Mapping):
        for key, item in value.items():
            _check_values(str(key), context)
            _check_values(item, context.at(str(key).encode(errors="replace").decode()))
    elif isinstance(value, list | tuple):
        for position, item in enumerate(value):
            _check_values(item, context.at(position))
    else:
        context.fault(Message("must be a number: this one is beyond all that can be computed with"))


def _usable(document: Any) -> bool:
    """Whether nothing within is such a value, however deeply it is nested. Raises Refused for more
    than MOST_VALUES, fractions aside."""
    rest, count = [document], 0
    while rest:
        value = rest.pop()
        if isinstance(value, float):  # Most of all that a region holds.
            continue
        count += 1
        if count > MOST_VALUES:
            raise refuse("", Message("holds more than {most:,} values: make it shorter, and its regions simpler", most=MOST_VALUES))
        if isinstance(value, str):
            if not _writable(value):
                return False
        elif isinstance(value, int):
            if abs(value) >= BEYOND_NUMBERS:
                return False
        elif isinstance(value, list | tuple):
            rest.extend(value)
        elif isinstance(value, Mapping):
            rest.extend(map(str, value))
            rest.extend(value.values())
    return True


def _writable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_common(document: Mapping[str, Any], context: Context) -> None:
    version = document.get("version", 1)
    if isinstance(version, bool) or version != 1:
        context.at("version").fault(Message("the version of the written form is 1"))
    if "name" in document:
        context.at("name").string(document["name"])


def notices_of(document: Mapping[str, Any], feed: Feed) -> list[str]:
    """What of a checked document changes no answer on this feed, or may not mean what it seems to,
    in sentences."""
    return [*contradictions.notices_of(document), *FAMILIES[document["family"]].notices_of(document, feed)]
