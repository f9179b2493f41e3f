"""The protocols that are known: ours, and those that installed packages register under the
entry point `vedette.sources`."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points

from engine.sources.live import SourceKind

log = logging.getLogger(__name__)

ENTRY_POINTS = "vedette.sources"


@cache
def source_kinds() -> Mapping[str, SourceKind]:
    """All kinds by name. A package that cannot be loaded is left out and logged; the others
    continue."""
    from engine.sources.live import ais, kafka, mqtt, sbs, web

    kinds = {kind.name: kind for kind in (*ais.KINDS, *mqtt.KINDS, *kafka.KINDS, *web.KINDS, *sbs.KINDS)}
    for point in entry_points(group=ENTRY_POINTS):
        try:
            kind = point.load()
            if not isinstance(kind, SourceKind):
                raise TypeError(f"{point.value} is no SourceKind")
            kinds.setdefault(kind.name, kind)
        except Exception as error:
            log.error("the source %s cannot be loaded: %s", point.name, error)
    return kinds
