"""Stored regions named in a specification: found, and put in their place."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from engine.families import FAMILIES, family_named


def is_reference(node: Any) -> bool:
    """Whether `node` is `{"region": "name"}` and nothing else."""
    return isinstance(node, dict) and set(node) == {"region"} and isinstance(node["region"], str)


def named_regions(document: Any) -> set[str]:
    """The names of all stored regions that `document` refers to.

    >>> sorted(named_regions({"region": {"region": "port"}, "where": [{"region": "pier"}]}))
    ['pier', 'port']
    """
    return set(_names(document))


def stands_alone(document: Any) -> bool:
    """Whether an unchecked document names neither stored regions, nor other queries, nor has a text
    in which regions may be named.

    >>> stands_alone({"family": "border", "region": {"center": [0, 0], "radius": 1}})
    True
    >>> stands_alone({"family": "border", "region": {"region": "port"}})
    False
    >>> stands_alone({"family": "calculus", "program": "x"})
    False
    """
    if isinstance(document, dict):
        family = family_named(document.get("family"))
        names_something = is_reference(document) or "derive" in document or (family is not None and family.text in document)
        return not names_something and all(map(stands_alone, document.values()))
    # Most of a long document are the numbers of positions.
    return not isinstance(document, list) or all(stands_alone(one) for one in document if isinstance(one, dict | list))


def _names(node: Any) -> Iterator[str]:
    if is_reference(node):
        yield node["region"]
    elif isinstance(node, dict):
        yield from _areas(node)
        for inner in node.values():
            yield from _names(inner)
    elif isinstance(node, list):
        for inner in node:
            yield from _names(inner)


def _areas(node: Mapping[str, Any]) -> set[str]:
    """The regions that only the text of a specification names: not among
    the `areas` of a program."""
    family = family_named(node.get("family"))
    if family is None:
        return set()
    areas = node.get("areas", {})
    return family.region_names_in_text(node) - (set(areas) if isinstance(areas, dict) else set())


def frozen(document: Any, regions: Mapping[str, Any]) -> Any:
    """A copy of `document` with each reference replaced by the region's own
    document; unknown names stay.

    A rule program gets the regions that its text names as its `areas`; a constraint
    query gets keys instead of a text that names them, or, where regions are only
    renamed, their new names in its text.

    >>> spot = {"center": [0, 0], "radius": 1}
    >>> frozen({"region": {"region": "spot"}, "segments": True}, {"spot": spot})
    {'region': {'center': [0, 0], 'radius': 1}, 'segments': True}
    """
    if is_reference(document):
        return regions.get(document["region"], document)
    if isinstance(document, dict):
        named = {name: regions[name] for name in sorted(_areas(document)) if name in regions}
        if named:
            document = FAMILIES[document["family"]].with_regions(document, named)
        return {key: frozen(inner, regions) for key, inner in document.items()}
    if isinstance(document, list):
        return [frozen(inner, regions) for inner in document]
    return document


def shapes(document: Any) -> Iterator[Any]:
    """Every region document inside a frozen specification: GeoJSON geometries and
    circles, in order of appearance."""
    if isinstance(document, dict):
        if (document.get("type") in ("Polygon", "MultiPolygon") and "coordinates" in document) or set(document) == {"center", "radius"}:
            yield document
        else:
            for inner in document.values():
                yield from shapes(inner)
    elif isinstance(document, list):
        for inner in document:
            yield from shapes(inner)
