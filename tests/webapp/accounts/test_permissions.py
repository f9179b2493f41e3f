"""Who may see and who may change an object."""

from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser

from webapp.feeds.models import Feed, Region
from webapp.queries.models import Query

pytestmark = [pytest.mark.services, pytest.mark.django_db]

SEES = {"owner": True, "viewer": True, "analyst": True, "operator": True, "admin": True, "stranger": False, "root": True}
CHANGES_QUERY = {"owner": True, "viewer": False, "analyst": True, "operator": True, "admin": True, "stranger": False, "root": True}
CHANGES_FEED = {"owner": True, "viewer": False, "analyst": False, "operator": True, "admin": True, "stranger": False, "root": True}


def who(people: SimpleNamespace, model: Any, method: str) -> dict[str, bool]:
    return {name: getattr(model.objects, method)(getattr(people, name)).exists() for name in SEES}


def test_a_team_sees_what_is_shared_with_it_and_a_stranger_does_not(people: SimpleNamespace, query: Query) -> None:
    for model in (Feed, Region, Query):
        assert who(people, model, "visible_to") == SEES


def test_anonymous_users_see_nothing_not_even_public_objects(people: SimpleNamespace, query: Query) -> None:
    Feed.objects.update(public=True)
    assert not Feed.objects.visible_to(AnonymousUser()).exists()
    assert not Feed.objects.editable_by(AnonymousUser()).exists()


def test_an_inactive_user_sees_nothing_even_of_their_own(people: SimpleNamespace, query: Query) -> None:
    people.owner.is_active = False
    people.owner.save()
    assert not Query.objects.visible_to(people.owner).exists()
    people.root.is_active = False
    assert not Query.objects.visible_to(people.root).exists()


def test_analysts_may_change_queries_and_operators_feeds(people: SimpleNamespace, query: Query) -> None:
    assert who(people, Query, "editable_by") == CHANGES_QUERY
    assert who(people, Feed, "editable_by") == CHANGES_FEED


def test_list_annotations_agree_with_the_permission_rule(people: SimpleNamespace, query: Query, feed: Feed) -> None:
    for thing in (query, feed):
        for name in SEES:
            user = getattr(people, name)
            shown = type(thing).objects.visible_to(user).with_editable(user).first()
            may_edit = type(thing).objects.editable_by(user).filter(pk=thing.pk).exists()
            assert bool(shown and shown.editable) == may_edit, (thing, name)


def test_public_objects_can_be_read_by_all_users_and_changed_by_no_others(people: SimpleNamespace, query: Query) -> None:
    Feed.objects.update(public=True)
    Query.objects.update(public=True)
    assert Query.objects.visible_to(people.stranger).exists()
    assert not Query.objects.editable_by(people.stranger).exists()


def test_a_public_query_on_a_feed_that_is_not_shared_stays_hidden(people: SimpleNamespace, query: Query) -> None:
    Query.objects.update(public=True)
    assert not Query.objects.visible_to(people.stranger).exists()


def test_leaving_a_team_ends_its_permissions(people: SimpleNamespace, query: Query) -> None:
    people.analyst.memberships.all().delete()
    assert not Query.objects.visible_to(people.analyst).exists()
