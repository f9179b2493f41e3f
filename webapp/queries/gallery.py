"""The gallery of rule programs: templates with parameters in words, filled for one feed.

A template is a file of fixtures/gallery (its README describes the format). Filling replaces
`{name}` by values and returns a normal specification of the family `calculus`, which may be edited.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypedDict

from django.utils.translation import gettext

from engine.model.durations import parse_duration
from engine.model.faults import Fault, Refused, unknown_among, unknown_name
from engine.model.feed import Feed, TimeUnit
from engine.model.messages import Message, message_of
from webapp.platform.folders import ROOT

FOLDER = ROOT / "fixtures" / "gallery"
TICKS_PER_SECOND = 25
"""Of feeds that count in ticks, as elsewhere: the rate of a camera."""
HISTORY_STEPS = 30
"""Of a window, on feeds that are not on the wall clock."""
KINDS = ("duration", "length", "number", "column", "region", "text")
_HOLE = re.compile(r"\{([a-z_]+)\}")
POSITION = "position"
"""The event that templates name; it is also that of rows that came without one."""
_ATOM = re.compile(r"[a-z][A-Za-z0-9_]*\Z")


class TemplateParameter(TypedDict):
    """A field of the form; `value`: its initial value, null where the feed offers none."""

    name: str
    kind: str
    label: str
    unit: str
    value: Any
    options: list[str]


class Template(TypedDict):
    """A program of rules with parameters; `unsuited`: why it cannot be used on
    the feed, null when it can."""

    name: str
    group: str
    title: str
    sentence: str
    events: list[str]
    parameters: list[TemplateParameter]
    unsuited: str | None


class Gallery(TypedDict):
    """All templates."""

    templates: list[Template]


class Filled(TypedDict):
    """The specification of a filled template."""

    specification: dict[str, Any]


@cache
def templates() -> Mapping[str, Mapping[str, Any]]:
    """All templates by name, in the order of their groups' and titles' names."""
    read = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(Path(FOLDER).glob("*.json"))}
    return dict(sorted(read.items(), key=lambda item: (item[1]["group"], item[1]["title"])))


def gallery(feed: Feed, regions: Mapping[str, Sequence[str]], *, has_places: bool = True) -> list[Template]:
    """The templates with what a form needs to ask for their parameters on this
    feed. `regions`: name to tags; `has_places`: rows of the feed have places."""
    return [
        {
            "name": name,
            "group": gettext(template["group"]),
            "title": gettext(template["title"]),
            "sentence": gettext(template["sentence"]),
            "events": list(template.get("needs", {}).get("events", ())),
            "parameters": [
                _shown(key, parameter, value, feed)
                for (key, parameter), value in zip(template["parameters"].items(), defaults(template, feed, regions).values(), strict=True)
            ],
            "unsuited": _unsuited(template, feed, has_places),
        }
        for name, template in templates().items()
    ]


def _shown(name: str, parameter: Mapping[str, Any], value: Any, feed: Feed) -> TemplateParameter:
    return {
        "name": name,
        "kind": parameter["kind"],
        "label": gettext(parameter["label"]),
        "unit": "m" if parameter["kind"] == "length" and feed.crs == "geographic" else "",
        "value": value,
        "options": _options(parameter, feed),
    }


def _options(parameter: Mapping[str, Any], feed: Feed) -> list[str]:
    """The columns that a parameter of kind `column` may name."""
    if parameter["kind"] != "column":
        return []
    return [name for name, kind in feed.columns.items() if kind in parameter["types"]]


def _unsuited(template: Mapping[str, Any], feed: Feed, has_places: bool) -> str | None:
    if not has_places and needs_places(template):
        return gettext("It is for rows with places.")
    required = template.get("needs", {}).get("crs", feed.crs)
    if required != feed.crs:
        return gettext("It is for places on the Earth.") if required == "geographic" else gettext("It is for a plane.")
    for parameter in template["parameters"].values():
        if parameter["kind"] == "column" and not _options(parameter, feed):
            return gettext("The feed has no column for: %(label)s.") % {"label": _inside(parameter["label"])}
    return None


def needs_places(template: Mapping[str, Any]) -> bool:
    """Whether it finds nothing in rows without places."""
    return bool(template["areas"]) or "synopsis" in template or any("spatial(" in line for line in template["program"])


def _inside(label: str) -> str:
    """A label inside a sentence: English begins it in lower case."""
    translated = gettext(label)
    return label.lower() if translated == label else translated


def defaults(template: Mapping[str, Any], feed: Feed, regions: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """A value for each parameter; null where the feed offers none."""
    values: dict[str, Any] = {}
    for name, parameter in template["parameters"].items():
        values[name] = _default(parameter, feed, regions, taken=values.get(parameter.get("other_than", "")))
    return values


def _default(parameter: Mapping[str, Any], feed: Feed, regions: Mapping[str, Sequence[str]], *, taken: Any) -> Any:
    kind, prefer = parameter["kind"], parameter.get("prefer", ())
    if kind == "column":
        options = _options(parameter, feed)
        return next((name for name in prefer if name in options), options[0] if options else None)
    if kind == "region":
        free = [name for name in regions if {"region": name} != taken]
        tagged = [name for tag in prefer for name in free if tag in regions[name]]
        name = next(iter([*tagged, *free]), None)
        return None if name is None else {"region": name}
    default = parameter["default"]
    if isinstance(default, Mapping):
        default = default[feed.crs]
    return _span(default, feed) if kind == "duration" and feed.time is TimeUnit.TICKS else default


def fill(name: str, values: Mapping[str, Any], feed: Feed, *, wall_clock: bool = True, event: str = POSITION) -> dict[str, Any]:
    """The specification that template `name` means with these values on this feed, whose rows are
    of this event. Rows of a feed that is not on the wall clock are not waited for, so it decides
    less often: a longer history can be read in the same time.

    Raises Refused with pointers below `/template` and `/values`; whether the specification can be
    registered is decided by its own check.
    """
    if name not in templates():
        raise Refused([Fault("/template", unknown_name(name, templates(), what=Message("template")))])
    template = templates()[name]
    faults = [
        Fault(f"/values/{key}", unknown_name(key, template["parameters"], what=Message("parameter")))
        for key in unknown_among(values, template["parameters"])
    ]
    read: dict[str, Any] = {}
    for key, parameter in template["parameters"].items():
        try:
            read[key] = READERS[parameter["kind"]](values.get(key), parameter, feed)
        except ValueError as error:
            faults.append(Fault(f"/values/{key}", message_of(error)))
    if faults:
        raise Refused(faults)
    program, inputs = _about(event, template)
    return {
        "family": "calculus",
        "version": 1,
        "program": "\n".join(_filled(line, read) for line in program) + "\n",
        "inputs": _filled(inputs, read),
        **({"areas": _filled(template["areas"], read)} if template["areas"] else {}),
        **({"synopsis": _filled(template["synopsis"], read)} if "synopsis" in template else {}),
        **({"dialect": template["dialect"]} if "dialect" in template else {}),
        "outputs": list(template["outputs"]),
        "window": _unit_span(template["window"], feed),
        "step": _unit_span(template["step"], feed) if wall_clock else _history_step(template, feed),
    }


def _about(event: str, template: Mapping[str, Any]) -> tuple[list[str], dict[str, Any]]:
    """The template's program and inputs with `event` in place of `position`, unless they name it
    as another input or it cannot be written as a name."""
    inputs: Mapping[str, Any] = template["inputs"]
    if event in inputs or "'" in event or not event.isprintable() or _HOLE.search(event):
        return template["program"], dict(inputs)
    written = event if _ATOM.match(event) else f"'{event}'"
    program = [re.sub(rf"\b{POSITION}\b", lambda _: written, line) for line in template["program"]]
    return program, {event if key == POSITION else key: value for key, value in inputs.items()}


def _history_step(template: Mapping[str, Any], feed: Feed) -> str | int:
    minutes = parse_duration(template["window"]) // HISTORY_STEPS // 60_000
    return f"PT{minutes}M" if minutes > 0 and feed.time is TimeUnit.MS else _unit_span(template["step"], feed)


def _filled(node: Any, values: Mapping[str, Any]) -> Any:
    """`node` with `{name}` replaced in its texts; a text that is nothing else
    becomes the value itself."""
    if isinstance(node, str):
        whole = _HOLE.fullmatch(node)
        return values[whole[1]] if whole else _HOLE.sub(lambda hole: str(values[hole[1]]), node)
    if isinstance(node, list):
        return [_filled(item, values) for item in node]
    return {key: _filled(item, values) for key, item in node.items()}


def holes(node: Any) -> Iterator[str]:
    """The names of the parameters in the texts below `node`."""
    if isinstance(node, str):
        yield from _HOLE.findall(node)
    elif isinstance(node, Mapping | list):
        for item in node.values() if isinstance(node, Mapping) else node:
            yield from holes(item)


def _span(value: Any, feed: Feed) -> int:
    """A span in the feed's unit: ISO 8601 durations are converted to ticks. Raises ValueError."""
    if isinstance(value, str):
        ms = parse_duration(value)
        return ms if feed.time is TimeUnit.MS else ms * TICKS_PER_SECOND // 1000
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError(Message("must be a span of time"))
    return int(value)


def _unit_span(value: str, feed: Feed) -> str | int:
    """As written on a feed in milliseconds, which reads better; else ticks."""
    return value if feed.time is TimeUnit.MS else _span(value, feed)


def _duration(value: Any, parameter: Mapping[str, Any], feed: Feed) -> int:
    span = _span(value, feed)
    if not 0 < span < 2**53:
        raise ValueError(Message("must be longer than 0"))
    return span


def _number(value: Any, parameter: Mapping[str, Any], feed: Feed) -> str:
    """As programs are written: with decimal digits, never as in 1e-05."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or not abs(value) < 1e15:
        raise ValueError(Message("must be a number"))
    if value < 0 and not parameter.get("signed"):
        raise ValueError(Message("must be a number, 0 or more"))
    if parameter["kind"] == "length" and value == 0:
        raise ValueError(Message("must be more than 0"))
    if parameter.get("per_second"):
        value = value / (1000 if feed.time is TimeUnit.MS else TICKS_PER_SECOND)
    text = f"{value:.12f}".rstrip("0").rstrip(".")
    return text or "0"


def _column(value: Any, parameter: Mapping[str, Any], feed: Feed) -> str:
    options = _options(parameter, feed)
    if value not in options:
        raise ValueError(unknown_name(value, options, what=Message("column")))
    return str(value)


def _region(value: Any, parameter: Mapping[str, Any], feed: Feed) -> Any:
    """A reference or a drawn region; the specification's check decides which of them are valid."""
    if not isinstance(value, Mapping) or not value:
        raise ValueError(Message("choose an area"))
    return value


def _text(value: Any, parameter: Mapping[str, Any], feed: Feed) -> str:
    """A quoted name."""
    if not isinstance(value, str) or not value.strip() or len(value) > 100 or "'" in value or not value.isprintable():
        raise ValueError(Message("must be a text of at most 100 characters without quotation marks"))
    return f"'{value}'"


READERS: Mapping[str, Any] = {"duration": _duration, "length": _number, "number": _number, "column": _column, "region": _region, "text": _text}
