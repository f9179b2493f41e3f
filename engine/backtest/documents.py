"""The input documents: feed, regions, queries. All their faults are reported together."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from engine.families import FAMILIES
from engine.model.faults import Refused

if TYPE_CHECKING:
    from engine.model.feed import Feed
    from engine.operator import RegisteredQuery


class RunAborted(Exception):
    """The run cannot continue; the text is for the user."""


def read_json(path: Path) -> Any:
    """A JSON document. Raises RunAborted: a key given twice, or what JSON
    does not know, is refused."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise RunAborted(f"{path}: no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise RunAborted(f"{path}: is nested too deeply") from error
    except (OSError, ValueError) as error:
        raise RunAborted(f"{path}: {error.strerror if isinstance(error, OSError) else error}") from error


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} is given twice in one object")
    return members


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _stop(path: Path, refused: Refused) -> RunAborted:
    return RunAborted("\n".join(f"{path}: {fault}" for fault in refused.faults))


def read_feed(path: Path) -> Feed:
    """The feed of FEED.json. Raises RunAborted."""
    from engine.model.feed import Feed

    try:
        return Feed.from_json(read_json(path))
    except Refused as refused:
        raise _stop(path, refused) from refused


def read_regions(path: Path | None, feed: Feed) -> dict[str, Any]:
    """Name to region document: the features of a GeoJSON file, or a plain object. All
    are checked. Raises RunAborted."""
    if path is None:
        return {}
    document = read_json(path)
    if isinstance(document, Mapping) and document.get("type") == "FeatureCollection":
        regions = {}
        for position, feature in enumerate(document.get("features") or []):
            properties = feature.get("properties") if isinstance(feature, Mapping) else None
            name = properties.get("name") if isinstance(properties, Mapping) else None
            if not isinstance(name, str) or not name or name in regions:
                raise RunAborted(f"{path}: /features/{position}/properties/name: every region needs its own name")
            regions[name] = feature.get("geometry")
    elif isinstance(document, Mapping):
        regions = dict(document)
    else:
        raise RunAborted(f"{path}: must be a GeoJSON FeatureCollection, or an object from name to region")
    from engine.model.region import read_region

    for name, region in regions.items():
        try:
            read_region(region, feed.crs)
        except Refused as refused:
            raise RunAborted("\n".join(f"{path}: region {name!r}: {fault}" for fault in refused.faults)) from refused
    return regions


def read_queries(paths: Sequence[Path], feed: Feed, regions: Mapping[str, Any]) -> tuple[dict[str, Mapping[str, Any]], list[RegisteredQuery]]:
    """(document by query name, checked queries). A query's name is that of its document, else of
    its file. Raises RunAborted with all faults."""
    from engine.derive import graph_faults, sources_of
    from engine.operator import RegisteredQuery
    from engine.specification import check, notices_of

    documents: dict[str, Mapping[str, Any]] = {}
    queries, problems = [], []
    for path in paths:
        try:
            document = read_specification(path)
            specification = check(document, feed, regions)
        except RunAborted as stop:
            problems.append(str(stop))
            continue
        except Refused as refused:
            problems.append(str(_stop(path, refused)))
            continue
        name = document.get("name", path.stem)
        if name in documents:
            problems.append(f"{path}: /name: another query is named {name!r} too; answers would not tell them apart")
        documents[name] = document
        for notice in notices_of(document, feed):
            print(f"backtest: {path}: {notice}", file=sys.stderr)
        queries.append(RegisteredQuery(name, 1, specification, sources_of(document)))
    if not problems:
        places = dict(zip(documents, paths, strict=True))
        problems = [f"{places[name]}: {fault}" for name, faults in graph_faults(documents).items() for fault in faults]
    if not regions and any("unknown region" in problem for problem in problems):
        problems.append("stored regions are read from a file that --regions names")
    if problems:
        raise RunAborted("\n".join(problems))
    return documents, queries


def read_specification(path: Path) -> Any:
    """A specification's document: JSON, or a family's text. Raises RunAborted."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise RunAborted(f"{path}: {error.strerror if isinstance(error, OSError) else 'the file is not UTF-8 text'}") from error
    # JSON asks no family, so that none is imported for it.
    for name, family in FAMILIES.items() if not text.lstrip().startswith("{") else ():
        if family.text is not None and family.is_text(text):
            return {"family": name, "version": 1, family.text: text}
    return read_json(path)
