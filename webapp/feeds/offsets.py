"""How far a connector is. Of one that brings rows it is written with them: there is no moment at which the one is known and the other is not."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import F

from engine.sources.live import Batch
from webapp.feeds.models import Connector, Feed


def reached(connector: Connector, batch: Batch) -> dict[str, Any]:
    """What the log remembers of a batch beside its rows."""
    return {
        "connector": connector.pk,
        "revision": connector.revision,
        "offset": batch.offset,
        "messages": batch.messages,
        "merged": batch.merged,
    }


def connector_reached(feed: Feed, note: Mapping[str, Any], rows: int) -> None:
    """Carries over what a delivery's note says of its connector. Call it in the transaction that settles the delivery."""
    found = note.get("reached")
    if found is None:
        return
    Connector.objects.filter(pk=found["connector"], feed=feed, revision=found["revision"]).update(
        offset=found["offset"],
        messages=F("messages") + found["messages"],
        merged=F("merged") + found["merged"],
        rows=F("rows") + rows,
        dead=F("dead") + note.get("dead", 0),
    )


def connector_sent(connector: Connector, offset: Mapping[str, Any], records: int) -> None:
    """Notes what the other side has. What was under way when the settings changed says nothing about the new place."""
    found = Connector.objects.filter(pk=connector.pk, revision=connector.revision)
    found.update(offset=offset, messages=F("messages") + records)
