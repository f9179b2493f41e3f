"""The live socket through the real application and an in-memory layer: snapshot before
+ frames = snapshot after."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from channels.layers import get_channel_layer

from tests.webapp.live.pages import page, publish, run, store
from webapp.alerts.handling import Decision, alerts_decide
from webapp.alerts.models import Alert, Step
from webapp.detections.models import Outbox
from webapp.live import consumers, subscription
from webapp.live.selectors import snapshot
from webapp.queries.services import query_register

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("no_connection_left")]


async def test_a_snapshot_and_later_frames_give_the_next_snapshot(world: SimpleNamespace) -> None:
    await run(store)(world.feed, world.query, "a", 10)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        first = await reader.hear("snapshot")
        assert [row["entities"] for row in first["detections"]] == [["a"]] and first["seq"] == 1
        last_sent = 1
        for entity, start, end, weight in [("b", 11, None, 1), ("a", 10, 20, 1), ("c", 12, 12, 1), ("c", 12, 12, 0), ("b", 11, 15, 1)]:
            await run(store)(world.feed, world.query, entity, start, end, weight)
            last_sent = await publish(world.feed, last_sent)
            await reader.hear("changes")
        async with page(world.people.viewer) as fresh:
            await fresh.say(type="subscribe")
            await fresh.hear("snapshot")
        assert reader.detections == fresh.detections and reader.seq == fresh.seq == 6
        assert sorted((row["entities"][0], row["end"]) for row in fresh.detections.values()) == [("a", 20), ("b", 15)]


async def test_sequence_numbers_without_visible_changes_are_covered(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        await run(store)(world.feed, world.private, "secret", 10)
        await publish(world.feed, 0)
        frame = await reader.hear("changes")
        assert (frame["from"], frame["seq"], frame["detections"]) == (1, 1, [])
    async with page(world.people.owner) as owner:
        await owner.say(type="subscribe")
        assert [row["entities"] for row in (await owner.hear("snapshot"))["detections"]] == [["secret"]]


async def test_changes_too_large_for_a_message_cause_a_new_snapshot(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        monkeypatch.setattr(consumers.frames, "MESSAGE_BYTES", 100)
        await run(store)(world.feed, world.query, "a", 10)
        await publish(world.feed, 0)
        await reader.hear("resync")


async def test_only_requested_queries_are_sent(world: SimpleNamespace) -> None:
    await run(store)(world.feed, world.query, "a", 10)
    await run(store)(world.feed, world.private, "b", 10)
    async with page(world.people.owner) as reader:
        await reader.say(type="subscribe", queries=[str(world.private.pk)])
        assert [row["entities"] for row in (await reader.hear("snapshot"))["detections"]] == [["b"]]


async def test_a_query_registered_later_is_shown_to_permitted_users(world: SimpleNamespace) -> None:
    people = world.people
    async with page(people.owner) as owner, page(people.viewer) as viewer:
        for reader in (owner, viewer):
            await reader.say(type="subscribe")
            await reader.hear("snapshot")
        late = await run(query_register)(owner=people.owner, feed=world.feed, name="late", specification=world.query.specification)
        await run(store)(world.feed, late, "a", 10)
        await publish(world.feed, 0)
        assert len((await owner.hear("changes"))["detections"]) == 1
        assert (await viewer.hear("changes"))["detections"] == []


async def test_lost_messages_are_read_again_and_repeated_ones_skipped(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        for entity in "abc":
            await run(store)(world.feed, world.query, entity, 10)
        await publish(world.feed, 2)
        frame = await reader.hear("changes")
        assert (frame["from"], frame["seq"]) == (1, 3) and len(reader.detections) == 3
        await publish(world.feed, 1)
        await reader.silence()
        assert reader.seq == 3 and [f["type"] for f in reader.frames].count("changes") == 1


async def test_changes_between_joining_and_the_snapshot_are_sent_once(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The publisher sends while the snapshot is being read: the message waits in the channel, and
    its known part is skipped."""
    real = consumers.selectors.snapshot

    def slow(**asked: Any) -> Any:
        store(world.feed, world.query, "before", 10)
        read = real(**asked)
        store(world.feed, world.query, "after", 11)
        return read

    monkeypatch.setattr(consumers.selectors, "snapshot", slow)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("snapshot")
        await publish(world.feed, 0)
        frame = await reader.hear("changes")
        assert (frame["from"], frame["seq"]) == (2, 2)
        assert sorted(row["entities"][0] for row in reader.detections.values()) == ["after", "before"]


async def test_a_reader_resumes_after_its_sequence_number(world: SimpleNamespace) -> None:
    for entity in "abc":
        await run(store)(world.feed, world.query, entity, 10)
    async with page(world.people.viewer) as reader:
        reader.seq = 1
        await reader.say(type="subscribe", since=1)
        frame = await reader.hear()
        assert frame["type"] == "changes" and (frame["from"], frame["seq"]) == (2, 3)
        assert sorted(row["entities"][0] for row in frame["detections"]) == ["b", "c"]


@pytest.mark.parametrize("since", [-5, 0, 99])
async def test_a_sequence_number_that_expired_gets_a_snapshot(since: int, world: SimpleNamespace) -> None:
    for entity in "abc":
        await run(store)(world.feed, world.query, entity, 10)
    await run(Outbox.objects.filter(seq__lte=2).delete)()
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe", since=since)
        assert (await reader.hear())["type"] == "snapshot"


async def test_a_reader_who_missed_nothing_gets_an_empty_frame(world: SimpleNamespace) -> None:
    await run(store)(world.feed, world.query, "a", 10)
    async with page(world.people.viewer) as reader:
        reader.seq = 1
        await reader.say(type="subscribe", since=1)
        frame = await reader.hear()
        assert (frame["type"], frame["from"], frame["seq"], frame["detections"]) == ("changes", 2, 1, [])


async def test_an_acknowledged_alert_reaches_other_pages(world: SimpleNamespace) -> None:
    alert = await run(Alert.objects.create)(
        query=world.query, feed=world.feed, detection_key=b"k" * 16, kind="in", entities=["a"], start=1, severity="low"
    )
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        (shown,) = (await reader.hear("snapshot"))["alerts"]
        assert (shown["state"], shown["query_name"]) == ("new", world.query.name)
        await run(alerts_decide)(alerts=[alert], decision=Decision(Step.ACKNOWLEDGED, world.people.owner))
        await publish(world.feed, 0)
        await reader.hear("changes")
        assert (reader.alerts[alert.pk]["state"], reader.alerts[alert.pk]["acknowledged_by"]) == ("acknowledged", "owner")


# -- positions and status --------------------------------------------------------------------------


async def test_positions_are_limited_to_the_map_view(world: SimpleNamespace, received: Callable[..., None]) -> None:
    await run(received)(world.feed, [{"entity": name, "t": 1000, "x": x, "y": 0.0} for name, x in (("near", 1.0), ("far", 50.0))])
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe", bbox=[0, -1, 10, 1])
        assert [e[0] for e in (await reader.hear("snapshot"))["positions"]] == ["near"]
        await get_channel_layer().group_send(
            f"feed.{world.feed.pk}", {"type": "feed.positions", "feed": "yard", "t": 2000, "entities": [["near", 60, 0, 2000], ["x", 5, 0, 2000]]}
        )
        assert (await reader.hear("positions"))["entities"] == [["x", 5, 0, 2000]]
        await reader.say(type="view", bbox=[40, -1, 60, 1])
        assert [e[0] for e in (await reader.hear("positions"))["entities"]] == ["far"]


async def test_the_state_of_the_feed_comes_with_the_subscription_and_later(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        first = await reader.hear("status")
        assert first["job"] in ("stopped", "starting", "running")
        await get_channel_layer().group_send(
            f"feed.{world.feed.pk}", {**first, "type": "feed.status", "watermark": 5, "max_t": 6, "rate": 7.0, "job": "running"}
        )
        assert await reader.hear("status") == {**first, "watermark": 5, "max_t": 6, "rate": 7.0, "job": "running"}


async def test_changes_that_were_not_published_are_read_after_the_second_status(world: SimpleNamespace) -> None:
    """The last ones, which no later number shows to be missing: the publisher may have started
    after them, or the channel layer dropped them."""
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        first = await reader.hear("status")
        await run(store)(world.feed, world.query, "a", 10)
        status = {**first, "type": "feed.status", "outbox_seq": 1}
        await get_channel_layer().group_send(f"feed.{world.feed.pk}", status)
        await reader.hear("status")
        await reader.silence()
        assert reader.detections == {}, "the publisher may be about to send them"
        await get_channel_layer().group_send(f"feed.{world.feed.pk}", status)
        await reader.hear("changes")
        assert [row["entities"] for row in reader.detections.values()] == [["a"]]
        await get_channel_layer().group_send(f"feed.{world.feed.pk}", status)
        await publish(world.feed, 0)
        await reader.silence()
        assert [frame["type"] for frame in reader.frames].count("changes") == 1


async def test_after_unsubscribing_nothing_is_sent(world: SimpleNamespace) -> None:
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        await reader.say(type="unsubscribe")
        await asyncio.sleep(0.1)
        await run(store)(world.feed, world.query, "a", 10)
        await publish(world.feed, 0)
        assert await reader.socket.receive_nothing(timeout=0.3)


# -- a slow reader ---------------------------------------------------------------------------------


async def test_a_reader_without_acknowledgements_is_asked_once_to_resubscribe(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "UNACKED_FRAMES", 3)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        last_sent = 0
        for entity in "abcdefgh":
            await run(store)(world.feed, world.query, entity, 10)
            last_sent = await publish(world.feed, last_sent)
        await reader.silence()
        kinds = [frame["type"] for frame in reader.frames]
        assert kinds.count("resync") == 1 and kinds[-1] == "resync"
        await reader.say(type="subscribe", since=reader.seq)
        await reader.hear("changes")
        assert reader.seq == 8 and len(reader.detections) == 8


async def test_a_reader_with_acknowledgements_is_not_asked_to_resubscribe(world: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subscription, "UNACKED_FRAMES", 3)
    async with page(world.people.viewer) as reader:
        await reader.say(type="subscribe")
        await reader.hear("status")
        last_sent = 0
        for entity in "abcdefgh":
            await run(store)(world.feed, world.query, entity, 10)
            last_sent = await publish(world.feed, last_sent)
            await reader.hear("changes")
            await reader.say(type="ack", seq=reader.seq)
        assert reader.seq == 8 and "resync" not in [frame["type"] for frame in reader.frames]


def test_a_snapshot_is_read_in_one_transaction(world: SimpleNamespace) -> None:
    store(world.feed, world.query, "a", 10)
    read = snapshot(feed_id=world.feed.pk, queries=[world.query.pk], from_t=None)
    assert read["seq"] == 1 and len(read["detections"]) == 1
