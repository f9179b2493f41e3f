"""The protocols by which answers leave."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from engine.sinks.live import SinkKind


@cache
def sink_kinds() -> Mapping[str, SinkKind]:
    """All kinds by name."""
    from engine.sinks.live import kafka, mqtt

    return {kind.name: kind for kind in (*kafka.KINDS, *mqtt.KINDS)}
