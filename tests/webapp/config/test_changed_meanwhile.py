"""Changes of objects that others change or remove meanwhile: between the request's first look and
its lock."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from django.http import Http404

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def test_a_channel_keeps_what_others_changed(things: dict[str, Any], people: SimpleNamespace) -> None:
    from webapp.alerts.deliveries import channel_rotate, channel_update
    from webapp.alerts.models import Channel

    loaded_before = Channel.objects.get(pk=things["channel"].pk)
    secret = channel_rotate(channel=things["channel"])
    changed = channel_update(channel=loaded_before, user=people.owner, name="bridge")
    assert (changed.name, changed.secret) == ("bridge", secret)


def test_of_two_new_secrets_made_at_once_both_work_for_a_day(things: dict[str, Any]) -> None:
    from webapp.alerts.deliveries import channel_rotate
    from webapp.alerts.models import Channel

    loaded_before = Channel.objects.get(pk=things["channel"].pk)
    first, second = channel_rotate(channel=things["channel"]), channel_rotate(channel=loaded_before)
    channel = Channel.objects.get(pk=loaded_before.pk)
    assert (channel.old_secret, channel.secret) == (first, second)


def of_channel(thing: Any, people: SimpleNamespace) -> None:
    from webapp.alerts.deliveries import channel_update

    channel_update(channel=thing, user=people.owner, name="x")


def of_rule(thing: Any, people: SimpleNamespace) -> None:
    from webapp.alerts.rules import rule_save

    rule_save(user=people.owner, rule=thing, name="x")


def of_connector(thing: Any, people: SimpleNamespace) -> None:
    from webapp.connectors.services import connector_update

    connector_update(connector=thing, enabled=False)


def of_region(thing: Any, people: SimpleNamespace) -> None:
    from webapp.queries.regions import region_update

    region_update(region=thing, user=people.owner, tags=["x"])


@pytest.mark.parametrize(("kind", "change"), [("channel", of_channel), ("rule", of_rule), ("connector", of_connector), ("region", of_region)])
def test_what_was_removed_is_not_found(
    kind: str, change: Callable[[Any, SimpleNamespace], None], things: dict[str, Any], people: SimpleNamespace
) -> None:
    loaded_before = type(things[kind]).objects.get(pk=things[kind].pk)
    type(things[kind]).objects.filter(pk=things[kind].pk).delete()
    with pytest.raises(Http404):
        change(loaded_before, people)


def test_a_removed_query_does_not_run_again(query: Any, people: SimpleNamespace) -> None:
    from webapp.queries.models import Query
    from webapp.queries.selectors import versions_running
    from webapp.queries.services import query_edit, query_remove

    loaded_before = Query.objects.get(pk=query.pk)
    query_remove(query=query)
    with pytest.raises(Http404):
        query_edit(query=loaded_before, user=people.owner, enabled=True)
    query.feed.refresh_from_db()
    assert not versions_running(feed=query.feed, version=query.feed.query_version).exists()


@pytest.mark.parametrize("change", ["edit", "register"])
def test_a_query_of_a_feed_that_was_just_removed_is_not_found(change: str, query: Any, people: SimpleNamespace) -> None:
    from webapp.feeds.models import Feed
    from webapp.feeds.services import feed_create
    from webapp.queries.services import query_edit, query_register

    gone = feed_create(owner=people.owner, name="gone", title="Gone", crs=query.feed.crs)
    Feed.objects.filter(pk=gone.pk).delete()
    query.feed = gone
    with pytest.raises(Http404):
        if change == "edit":
            query_edit(query=query, user=people.owner, enabled=False)
        else:
            border = {"family": "border", "version": 1, "region": {"center": [0, 0], "radius": 1}}
            query_register(owner=people.owner, feed=gone, name="x", specification=border)


def test_a_file_is_not_loaded_into_a_removed_feed(things: dict[str, Any], people: SimpleNamespace) -> None:
    from webapp.feeds.models import Feed
    from webapp.feeds.services import feed_create
    from webapp.feeds.uploads.store import upload_load

    gone = feed_create(owner=people.owner, name="gone", title="Gone", crs="planar")
    Feed.objects.filter(pk=gone.pk).delete()
    with pytest.raises(Http404):
        upload_load(upload=things["upload"], user=people.owner, reading={}, into=gone)


def test_a_job_is_removed_once(people: SimpleNamespace) -> None:
    from webapp.jobs.models import Job
    from webapp.jobs.services import job_create, job_remove

    job = job_create(name="night", team=people.harbour)
    loaded_before = Job.objects.get(pk=job.pk)
    job_remove(job=job)
    with pytest.raises(Http404):
        job_remove(job=loaded_before)
