"""One object of each kind, for the matrices of addresses and permissions."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.utils import timezone

READING = {"entity": ["mmsi"], "time": ["received"], "time_format": "epoch_ms", "x": "lon", "y": "lat", "crs": "plane"}
"""A connector into the feed of these tests, which is planar."""


@pytest.fixture
def things(people: SimpleNamespace, feed: Any, region: Any, query: Any) -> dict[str, Any]:
    """One object of each kind, all of the harbour team."""
    from webapp.alerts.deliveries import channel_create
    from webapp.alerts.models import Alert, Delivery, Mute, SavedView, Shift, Turn
    from webapp.alerts.rules import rule_save
    from webapp.connectors.services import connector_create
    from webapp.feeds.models import Upload
    from webapp.overlays.models import Overlay

    overlay = Overlay.objects.create(feed=feed, name="fences", document={"type": "FeatureCollection", "features": []})
    channel = channel_create(owner=people.owner, name="desk", url="https://hooks.example.org/x", team=people.harbour)
    alert = Alert.objects.create(query=query, feed=feed, detection_key=b"k" * 16, kind="in", entities=["a"], start=1, severity="low")
    view = SavedView.objects.create(owner=people.owner, name="grave", team=people.harbour)
    mute = Mute.objects.create(owner=people.owner, team=people.harbour, feed=feed, query=query, reason="Works", window_from=timezone.now())
    upload = Upload.objects.create(owner=people.owner, name="ships.csv", size=10, team=people.harbour)
    rule = rule_save(user=people.owner, name="grave", team=people.harbour, channels=[channel])
    connector = connector_create(feed=feed, name="mast", kind="ais-udp", settings={"port": 10110}, reading=READING)
    return {
        "connector": connector,
        "overlay": overlay,
        "upload": upload,
        "feed": feed,
        "region": region,
        "query": query,
        "channel": channel,
        "alert": alert,
        "view": view,
        "mute": mute,
        "rule": rule,
        "shift": (shift := Shift.objects.create(owner=people.owner, team=people.harbour, name="duty")),
        "turn": Turn.objects.create(
            shift=shift, person=people.analyst, begins_at=timezone.now(), ends_at=timezone.now() + timedelta(hours=8), by_hand=True
        ),
        "delivery": Delivery.objects.create(channel=channel, body="{}", failed_at=timezone.now()),
    }
