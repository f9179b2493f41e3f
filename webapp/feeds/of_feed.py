"""The common base of the APIs of objects of a feed: regions, queries and alerts."""

from __future__ import annotations

from typing import Any, NoReturn

import django_filters
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from engine.model.messages import Message
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.accounts.permissions import AnyUser
from webapp.feeds.models import Feed
from webapp.feeds.selectors import feed_get


def _no_feed(name: object) -> Message:
    return Message("There is no feed {name} that you may see.", name=repr(name))


def feed_named(user: AnyUser, name: str) -> Feed:
    """The feed that the parameter `feed` names. Raises ValidationError when the user may see no
    such feed: an empty list would look as if the feed had nothing."""
    feed = feed_get(user=user, name=name)
    if feed is None:
        raise ValidationError({"feed": _no_feed(name)})
    return feed


class FeedNameField(serializers.SlugRelatedField[Feed]):
    """A feed by its name: one of those that the user may see."""

    def __init__(self, **options: Any) -> None:
        if not options.get("read_only"):
            options.setdefault("queryset", Feed.objects.all())
        super().__init__(slug_field="name", **options)

    def get_queryset(self) -> QuerySet[Feed]:
        return Feed.objects.visible_to(self.context["request"].user)

    def fail(self, key: str, **values: Any) -> NoReturn:
        if key == "does_not_exist":
            raise ValidationError(_no_feed(values["value"]))
        super().fail(key, **values)

    def to_internal_value(self, data: Any) -> Any:
        """The feed; for a list of objects it is looked up once."""
        context: Any = self.context
        known = context.setdefault("feeds_by_name", {})
        if not isinstance(data, str):
            return super().to_internal_value(data)
        if data not in known:
            known[data] = super().to_internal_value(data)
        return known[data]


class FeedNameFilter(django_filters.CharFilter):  # type: ignore[misc]
    """`?feed=city`: what belongs to one feed that the user may see."""

    def filter(self, queryset: QuerySet[Any], value: str) -> QuerySet[Any]:
        return queryset.filter(feed=feed_named(self.parent.request.user, value)) if value else queryset


class NamedSerializer(serializers.Serializer[Any]):
    """Something by its id and name."""

    id = serializers.IntegerField()
    name = serializers.CharField()


class OfFeedSerializer(OwnedSerializer):
    """Things of feeds. A change may have the `updated_at` that the client saw, so that it
    overwrites no later change."""

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if self.partial:
            fields["updated_at"] = serializers.DateTimeField(required=False, help_text="The one that you saw: 409 if there is a later one.")
        return fields


class OfFeedView(OwnedView):
    """Lists and shows things of feeds; each stays on its feed."""

    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.filter_queryset(self.get_queryset()))
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    def changes(self, thing: Any, request: Request, *, moved: Message) -> dict[str, Any]:
        """The changes of a valid request to `thing`, and `seen_at`: the change that the client saw
        last, if the request has it.

        Raises ValidationError, with `moved` when it names another feed.
        """
        serializer = self.get_serializer(thing, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        data = dict(serializer.validated_data)
        if data.pop("feed", thing.feed) != thing.feed:
            raise ValidationError({"feed": moved})
        data["seen_at"] = data.pop("updated_at", None)
        return data
