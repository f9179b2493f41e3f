"""A stalled feed with waiting rows is reported on its page once, with the reason; the end of the
stall is reported too."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from engine.sources.segments import list_segments
from webapp.feeds.damage import feed_set_aside
from webapp.feeds.models import Feed, LogSegment
from webapp.feeds.recent import log_of
from webapp.jobs import services
from webapp.jobs.models import FeedHead, Job, JobEvent
from webapp.jobs.views import healthz
from webapp.supervisor.stalls import stalls_report

pytestmark = [pytest.mark.services, pytest.mark.django_db]


@pytest.fixture
def waiting(feed: Feed, received: Callable[..., None], log_form: str) -> Feed:
    """Rows that came 11 seconds ago."""
    received(feed, [{"entity": "a", "t": 1, "x": 1.0, "y": 1.0}])
    _came(feed, timezone.now() - timedelta(seconds=11))
    return feed


def _came(feed: Feed, at: datetime) -> None:
    """As if its rows had arrived then."""
    LogSegment.objects.update(ordered_at=at)
    for segment in list_segments(log_of(feed).live):
        os.utime(segment.path, (at.timestamp(), at.timestamp()))


def events() -> list[tuple[str, str]]:
    return list(JobEvent.objects.exclude(feed=None).order_by("id").values_list("kind", "text"))


def test_a_stall_is_reported_once_and_its_end_once(waiting: Feed) -> None:
    Job.objects.update(observed_state="crash_loop")
    stalls_report()
    stalls_report()
    ((kind, text),) = events()
    assert kind == "stalled" and "yard: rows have waited for 11 s: the job main is not running (keeps failing)" in text
    FeedHead.objects.update(last_seq=0, updated_at=timezone.now())
    stalls_report()
    assert [kind for kind, _ in events()] == ["stalled", "resumed"]


@pytest.mark.parametrize(
    ("job", "reason"),
    [
        ({"desired_state": "stopped"}, "is stopped"),
        ({"observed_state": "running", "heartbeat": None}, "no sign of life"),
        ({"observed_state": "running", "heartbeat": timezone.now() + timedelta(hours=1)}, "has finished no batch"),
    ],
)
def test_the_reason_of_a_stall_is_shown(waiting: Feed, job: dict[str, Any], reason: str) -> None:
    Job.objects.update(**job)
    stalls_report()
    assert reason in events()[0][1]


def test_damage_of_a_log_is_given_as_the_reason_of_a_stall(waiting: Feed, settings: Any) -> None:
    (segment,) = log_of(waiting).segments()
    # For a segment on shared storage, without the store's folder.
    (Path(settings.VEDETTE_LOG_STORE) / segment.path).write_bytes(b"")
    with pytest.raises(RuntimeError) as damage:
        list(log_of(waiting).read())
    feed_set_aside(feed=waiting, damage=damage.value)  # type: ignore[arg-type]
    _came(waiting, datetime.fromtimestamp(1, UTC))
    stalls_report()
    assert [kind for kind, _ in events()] == ["damaged", "stalled"]
    assert "its log is damaged" in events()[1][1]


def test_feeds_that_progress_or_have_no_backlog_are_not_reported(waiting: Feed) -> None:
    FeedHead.objects.update(updated_at=timezone.now())
    stalls_report()
    FeedHead.objects.update(updated_at=None, last_seq=0)
    stalls_report()
    assert events() == []


def test_healthz_reports_a_job_that_is_down(feed: Feed, rf: Any) -> None:
    assert healthz(rf.get("/healthz")).content == b'{"database": true, "jobs": true}', "never started is not down"
    Job.objects.update(started_at=timezone.now(), heartbeat=timezone.now(), observed_state="running")
    assert healthz(rf.get("/healthz?jobs")).status_code == 200
    Job.objects.update(heartbeat=timezone.now() - timedelta(seconds=40))
    assert healthz(rf.get("/healthz")).content == b'{"database": true, "jobs": false}'
    Job.objects.update(heartbeat=timezone.now(), observed_state="crash_loop")
    answer = healthz(rf.get("/healthz?jobs"))
    assert (answer.status_code, "Retry-After" in answer.headers) == (503, True)
    services.job_stop(job=Job.objects.get())
    assert healthz(rf.get("/healthz?jobs")).status_code == 200, "a job that should not run is not missed"
