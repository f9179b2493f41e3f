"""The period of a feed's history on which a query is tried, as requests name it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rest_framework import serializers

from engine.model.feed import LARGEST_TIME
from engine.model.messages import Message
from webapp.config.known_keys import KnownKeys
from webapp.feeds.models import Feed
from webapp.queries.caged import Period

MINUTE = {"ms": 60_000, "ticks": 1_500}
"""Of the feed's unit: a minute on a feed in milliseconds, of 25 ticks a second on others."""


class PeriodSerializer(KnownKeys):
    """`from` to `to` in the feed's unit, both closed; without `to` up to the newest row, without
    `from` the last `minutes` of it."""

    minutes = serializers.FloatField(min_value=0.1, max_value=366 * 24 * 60, default=10)

    def get_fields(self) -> dict[str, Any]:
        # `from` is a keyword of Python and cannot be an attribute.
        return {**super().get_fields(), "from": _moment(), "to": _moment()}

    def validate(self, data: dict[str, Any]) -> dict[str, Any]:
        begin, end = data["from"], data["to"]
        if begin is not None and end is not None and begin >= end:
            raise serializers.ValidationError({"from": Message("must be before `to`")})
        return data


def period_of(data: Mapping[str, Any], feed: Feed) -> Period:
    """The period in the values of a valid `PeriodSerializer`."""
    return Period(int(data["minutes"] * MINUTE[feed.time]), data["from"], data["to"])


def _moment() -> serializers.IntegerField:
    return serializers.IntegerField(required=False, allow_null=True, default=None, min_value=-LARGEST_TIME, max_value=LARGEST_TIME)
