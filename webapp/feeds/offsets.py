"""Offsets of connectors. An incoming one's offset is stored in the same transaction as its rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.db.models import F

from engine.sources.live import Batch
from webapp.feeds.models import Connector, Feed


def reached(connector: Connector, batch: Batch) -> dict[str, Any]:
    """The record that the log stores with the rows of a batch."""
    return {
        "connector": connector.pk,
        "revision": connector.revision,
        "offset": batch.offset,
        "messages": batch.messages,
        "merged": batch.merged,
    }


def connector_begins(connector: Connector, offset: Any) -> None:
    """Stores where a connector begins, before anything has come: "from now on" stays the same
    moment when the other side is away or the process ends meanwhile."""
    Connector.objects.filter(pk=connector.pk, revision=connector.revision, offset__isnull=True).update(offset=offset)


def connector_reached(feed: Feed, note: Mapping[str, Any], rows: int) -> None:
    """Stores the connector's offset from a delivery's note. Call it in the transaction
    that settles the delivery."""
    reached = note.get("reached")
    if reached is None:
        return
    Connector.objects.filter(pk=reached["connector"], feed=feed, revision=reached["revision"]).update(
        offset=reached["offset"],
        messages=F("messages") + reached["messages"],
        merged=F("merged") + reached["merged"],
        rows=F("rows") + rows,
        dead=F("dead") + note.get("dead", 0),
    )


def connector_sent(connector: Connector, offset: Mapping[str, Any], records: int) -> None:
    """Stores the offset that the other side has acknowledged. Deliveries from before a change of
    the settings do not count."""
    connectors = Connector.objects.filter(pk=connector.pk, revision=connector.revision)
    connectors.update(offset=offset, messages=F("messages") + records)
