"""A damaged log stops only its feed; after repair the feed continues, and lost rows are counted."""

from __future__ import annotations

from collections.abc import Callable
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings as django_settings
from django.core.management import CommandError, call_command

from engine.runtime.processor import FeedProcessor
from engine.runtime.snapshots import Snapshots
from engine.sources.segments import LogDamaged
from engine.sources.store import files_of
from webapp.accounts.models import Scope
from webapp.accounts.services import token_create
from webapp.feeds.damage import feeds_set_aside
from webapp.feeds.management.commands.ingest import Service
from webapp.feeds.models import Feed, IngestCounter, LogDamage
from webapp.feeds.recent import log_of
from webapp.feeds.selectors import feed_counters, feed_list
from webapp.feeds.services import feed_create
from webapp.jobs.models import JobEvent
from webapp.live.publisher import Publisher
from webapp.supervisor.audit import feed_audit
from webapp.supervisor.store import FeedStore

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]


@pytest.fixture
def other(people: SimpleNamespace) -> Any:
    return feed_create(owner=people.owner, name="quay", title="The quay", crs="planar", time="ms", lateness=1000, team=people.harbour)


@pytest.fixture
def send(client_of: Any, people: SimpleNamespace) -> Callable[..., Any]:
    """Posts rows of one entity at these times."""
    text = token_create(user=people.owner, name="sender", scopes=[Scope.INGEST]).text

    def post(feed: Feed, *times: int) -> Any:
        body = "".join(f'{{"entity":"a","t":{t},"x":{t % 20},"y":1}}\n' for t in times)
        address = f"/api/v1/feeds/{feed.name}/events"
        return client_of(None).post(address, body, content_type="application/x-ndjson", HTTP_AUTHORIZATION=f"Bearer {text}")

    return post


def process(feed: Feed) -> None:
    """The result of the feed's job over the log."""
    folder = Path(django_settings.CHECKPOINT_ROOT) / feed.name / "state"
    processor = FeedProcessor(feed.engine_feed(), log_of(feed), FeedStore(feed, 1), Snapshots(files_of(folder)))
    processor.follow()
    processor.process()


def newest(feed: Feed) -> Path:
    return max(log_of(feed).live.glob("*.parquet"), key=lambda path: path.name)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:100])


def counters(feed: Feed) -> dict[str, int]:
    found = feed_counters(feed_list(user=feed.owner).get(pk=feed.pk))
    parts = ("processed", "duplicates", "late", "dead", "lost", "waiting")
    assert found["received"] == sum(found[name] for name in parts)
    return found


def test_the_publisher_skips_a_damaged_feed_and_serves_the_others(feed: Feed, other: Feed, send: Callable[..., Any]) -> None:
    for one in (feed, other):
        assert send(one, 1000, 2000).status_code == 202
    truncate(newest(feed))
    publisher = Publisher()
    publisher.step()
    assert publisher.tails[other.pk].latest
    assert feeds_set_aside() == {feed.pk} == {feed.pk for feed in Feed.objects.exclude(damage=None)}
    assert newest(feed).name in LogDamage.objects.get().file
    event = JobEvent.objects.get(kind="damaged")
    assert event.feed == feed and "manage.py repair yard" in event.text and "checksum" in event.text


def test_the_page_and_the_api_show_the_reason_the_file_and_the_remedy(feed: Feed, send: Callable[..., Any], client_of: Any, people: Any) -> None:
    send(feed, 1000)
    path = newest(feed)
    truncate(path)
    client = client_of(people.viewer)
    answer = client.get("/api/v1/feeds/yard/positions")
    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "60")
    message = answer.json()["faults"][0]["message"]
    assert path.name in message and "manage.py repair yard" in message
    Publisher().step()
    shown = client.get("/api/v1/feeds/yard/").json()
    assert path.name in shown["damage"] and "manage.py repair yard" in shown["damage"]
    assert [event["kind"] for event in shown["events"]] == ["damaged"]


def test_ingest_continues_for_undamaged_feeds(feed: Feed, other: Feed, send: Callable[..., Any], settings: Any, tmp_path: Path) -> None:
    """Heartbeats, inbox or maintenance may find the damage first; a post that needs
    the damaged file gets 503."""
    settings.VAR = tmp_path
    send(feed, 1000)
    IngestCounter.objects.filter(feed=feed).update(log_seq=0)
    truncate(newest(feed))
    inbox = tmp_path / "inbox"
    for one in (feed, other):
        (inbox / one.name).mkdir(parents=True)
        (inbox / one.name / "rows.jsonl").write_text('{"entity":"a","t":5000,"x":1,"y":1}\n')
    service = Service()
    service.inbox.quiet_s = 0
    service.round(100.0, 10_000)
    service.round(200.0, 20_000)
    assert feeds_set_aside() == {feed.pk}
    assert (inbox / "quay" / "done" / "rows.jsonl").exists() and (inbox / "yard" / "rows.jsonl").exists()
    answer = send(feed, 3000)
    assert answer.status_code == 503 and "manage.py repair yard" in answer.json()["faults"][0]["message"]
    assert send(other, 6000).status_code == 202


def test_an_audit_names_the_damaged_file_and_checks_the_other_feeds(feed: Feed, other: Feed, query: Any, send: Callable[..., Any]) -> None:
    for one in (feed, other):
        send(one, 1000, 21_011, 30_000)
        process(one)
    truncate(newest(feed))
    out = StringIO()
    with pytest.raises(CommandError):
        call_command("audit", "yard", "quay", stdout=out)
    damaged, exact = out.getvalue().splitlines()
    assert newest(feed).name in damaged and "repair yard" in damaged
    assert exact.endswith("exact")


def test_a_repaired_feed_continues_and_counts_lost_rows(feed: Feed, query: Any, send: Callable[..., Any]) -> None:
    send(feed, 1000, 2011, 3000)
    process(feed)
    send(feed, 4011, 5000)
    send(feed, 6011)
    damaged = sorted(log_of(feed).live.glob("*.parquet"))[1]
    truncate(damaged)
    with pytest.raises(LogDamaged):
        process(feed)
    out = StringIO()
    call_command("repair", "yard", stdout=out)
    assert "0 kept, 2 lost (3 to 4)" in out.getvalue()
    process(feed)
    assert counters(feed) == {"received": 6, "processed": 4, "duplicates": 0, "late": 0, "dead": 0, "lost": 2, "waiting": 0}
    audit = feed_audit(feed=feed)
    assert (audit.faults, audit.lost) == ([], 2)
    assert send(feed, 7000).status_code == 202
    process(feed)
    assert feeds_set_aside() == set()
    assert (log_of(feed).folder / "damaged" / damaged.name).exists()
    assert JobEvent.objects.filter(feed=feed, kind="repaired").count() == 1
    out = StringIO()
    call_command("repair", "yard", stdout=out)
    assert "the log is whole" in out.getvalue()


def test_sequence_numbers_of_a_log_that_lost_its_end_are_not_reused(feed: Feed, query: Any, send: Callable[..., Any]) -> None:
    send(feed, 1000)
    send(feed, 2011)
    process(feed)
    newest(feed).unlink()
    assert send(feed, 3000).status_code == 503
    call_command("repair", "yard", stdout=StringIO())
    assert send(feed, 3000).json()["first_seq"] == 2
    process(feed)
    assert counters(feed)["waiting"] == 0


def test_damage_is_found_in_segments_of_older_releases(feed: Feed, query: Any, send: Callable[..., Any]) -> None:
    send(feed, 1000)
    path = newest(feed)
    old = path.with_name(path.name.split(".")[0] + ".parquet")
    path.rename(old)
    truncate(old)
    with pytest.raises(LogDamaged, match="yard"):
        process(feed)
