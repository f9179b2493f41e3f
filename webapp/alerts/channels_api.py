"""`channels/`."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, PolymorphicProxySerializer, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.alerts import deliveries
from webapp.alerts.models import Channel, ChannelKind, Delivery
from webapp.alerts.reach import Reachability, own_reachability
from webapp.alerts.selectors import channel_list, delivery_list
from webapp.alerts.timing import timing_faults
from webapp.alerts.transports import TRANSPORTS, push
from webapp.config.known_keys import KnownKeys
from webapp.config.openapi import schema_of
from webapp.config.pagination import CURSOR, NewestFirst, newest_first
from webapp.config.related import ByKey
from webapp.config.wording import TranslatedField, translated
from webapp.queries.models import Query

HIDDEN = "***"


class ChannelSerializer(OwnedSerializer):
    """A channel without its secret."""

    queries = ByKey(many=True, required=False, queryset=Query.objects.none())
    last_sent_at = serializers.DateTimeField(read_only=True, allow_null=True)
    waiting = serializers.IntegerField(read_only=True)
    held_back = serializers.IntegerField(read_only=True)
    problem = TranslatedField(read_only=True)
    disabled_reason = TranslatedField(read_only=True)

    class Meta:
        model = Channel
        fields = (
            "id", "name", "kind", "url", "recipient", "browser_keys", "enabled", "disabled_reason", "min_severity", "per_minute",
            "all_queries", "queries", *Channel.TIMING, "failures", "problem", "not_before", "last_sent_at", "waiting", "held_back",
            *OwnedSerializer.OWNED, "created_at",
        )  # fmt: skip
        read_only_fields = ("failures", "not_before", "created_at")
        extra_kwargs: ClassVar[dict[str, Any]] = {"per_minute": {"min_value": 1, "max_value": 600}, "browser_keys": {"write_only": True}}

    def get_fields(self) -> dict[str, Any]:
        fields = super().get_fields()
        if request := self.context.get("request"):
            queries: Any = fields["queries"]
            queries.child_relation.queryset = Query.objects.visible_to(request.user).filter(deleted_at=None)
        return fields

    def to_representation(self, instance: Channel) -> dict[str, Any]:
        return {**super().to_representation(instance), "url": instance.shown_url}

    def validate(self, attributes: dict[str, Any]) -> dict[str, Any]:
        if self.instance is not None and attributes.get("url") == self.instance.shown_url:
            # The address as shown, without its password.
            del attributes["url"]
        stored = {} if self.instance is None else {name: getattr(self.instance, name) for name in ("kind", "url", "recipient")}
        settings = {"kind": ChannelKind.WEBHOOK.value, **stored, **attributes}
        if HIDDEN in attributes.get("url", "") and Channel(kind=settings["kind"], url=attributes["url"]).shown_url == attributes["url"]:
            raise serializers.ValidationError({"url": Message("The secret part of the address is missing: *** stands for it where it is shown.")})
        if self.instance is not None and settings["kind"] != stored["kind"]:
            raise serializers.ValidationError({"kind": Message("The kind cannot be changed: create another channel.")})
        if settings["kind"] == ChannelKind.PUSH and (attributes.get("team") or attributes.get("public")):
            raise serializers.ValidationError({"team": Message("A browser belongs to one user: not to a team, and it is not public.")})
        if self.instance is not None and stored["kind"] == ChannelKind.PUSH and attributes.keys() & {"url", "browser_keys"}:
            raise serializers.ValidationError({"url": Message("A subscription cannot be changed: the browser creates a new one.")})
        timing = {} if self.instance is None else {name: getattr(self.instance, name) for name in Channel.TIMING}
        if faults := timing_faults({**timing, **attributes}):
            raise serializers.ValidationError(faults)
        if self.instance is None or attributes.keys() & {"url", "recipient"}:
            faults = TRANSPORTS[settings["kind"]].refuse(settings)
            if faults:
                raise serializers.ValidationError(faults)
        return attributes


class NewChannelSerializer(ChannelSerializer):
    """A channel with its signing secret: shown only when it is created or rotated."""

    secret = serializers.CharField()

    class Meta(ChannelSerializer.Meta):
        fields = (*ChannelSerializer.Meta.fields, "secret")


MADE = PolymorphicProxySerializer("MadeChannel", [NewChannelSerializer, ChannelSerializer], resource_type_field_name=None)
"""A browser gets no secret: users who know it can send to the browser."""


class DeliverySerializer(serializers.ModelSerializer[Delivery]):
    """One message to a channel. `next_at`: not before the channel gets messages again."""

    error = TranslatedField(read_only=True)
    alerts = serializers.SerializerMethodField()
    escalations = serializers.SerializerMethodField()
    next_at = serializers.SerializerMethodField()

    class Meta:
        model = Delivery
        fields = (
            "id",
            "webhook_id",
            "test",
            "alerts",
            "escalations",
            "created_at",
            "attempts",
            "next_at",
            "sent_at",
            "failed_at",
            "status_code",
            "error",
        )

    def get_alerts(self, delivery: Delivery) -> list[int]:
        return [notification.alert_id for notification in delivery.notifications.all()][:100]

    def get_escalations(self, delivery: Delivery) -> list[int]:
        """For each alert that is in the message because nobody acknowledged it in
        time: after how many minutes."""
        return [notification.after_minutes for notification in delivery.notifications.all() if notification.after_minutes > 0][:100]

    def get_next_at(self, delivery: Delivery) -> datetime:
        return max(delivery.next_at, delivery.channel.not_before or delivery.next_at)


class SubscriptionSerializer(KnownKeys):
    """A browser's subscription."""

    url = serializers.CharField(max_length=1_000)
    browser_keys = serializers.CharField(max_length=200)


class RenewalSerializer(SubscriptionSerializer):
    """The new subscription, and the old one that it replaces."""

    old = SubscriptionSerializer()


class ChannelView(OwnedView):
    """Channels that deliver alerts."""

    queryset = Channel.objects.all()
    serializer_class = ChannelSerializer

    def get_queryset(self) -> QuerySet[Any]:
        return channel_list(user=self.request.user)

    @extend_schema(
        responses={201: MADE},
        examples=[
            OpenApiExample("A duty desk", {"name": "Duty desk", "url": "https://hooks.example.org/x", "min_severity": "high"}, request_only=True)
        ],
    )
    def create(self, request: Request) -> Response:
        # Every user may add their own browser.
        is_browser = isinstance(request.data, dict) and request.data.get("kind") == ChannelKind.PUSH
        if not is_browser:
            self.check_may_make()
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        if is_browser:
            fields = {name: value for name, value in data.items() if name not in ("kind", "team", "public", "recipient")}
            return Response(self.represent(deliveries.browser_subscribe(owner=person(request), **fields)), status=201)
        channel = deliveries.channel_create(owner=person(request), **data)
        return Response({**self.represent(channel), "secret": channel.secret}, status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        channel = self.get_editable()
        serializer = self.get_serializer(channel, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        return Response(self.represent(deliveries.channel_update(channel=channel, user=person(request), **serializer.validated_data)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        deliveries.channel_delete(channel=self.get_editable())
        return Response(status=204)

    @extend_schema(summary="A new signing secret; the old one stays valid for another day", request=None, responses=NewChannelSerializer)
    def rotate(self, request: Request, pk: int) -> Response:
        channel = self.get_editable()
        secret = deliveries.channel_rotate(channel=channel)
        return Response({**self.represent(channel), "secret": secret})

    @extend_schema(summary="Whether the alerts that rules send to the user arrive", responses={200: schema_of(Reachability)})
    def reach(self, request: Request) -> Response:
        return Response(own_reachability(user=person(request), now=timezone.now()))

    @extend_schema(
        summary="The key with which a browser subscribes to push messages; null: this installation sends none",
        responses=inline_serializer("PushKey", {"key": serializers.CharField(allow_null=True)}),
    )
    def push_key(self, request: Request) -> Response:
        return Response({"key": push.public_key()})

    @extend_schema(
        summary="Replace a browser's ended subscription by a new one; needs no log-in, but the keys of the old one",
        request=RenewalSerializer,
        responses={204: None},
        auth=[],
    )
    def push_renewal(self, request: Request) -> Response:
        serializer = RenewalSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        fresh = {name: serializer.validated_data[name] for name in ("url", "browser_keys")}
        channel = deliveries.browser_find(**serializer.validated_data["old"])
        if channel is None:
            raise NotFound(Message("No browser has this subscription."))
        if faults := push.refuse(fresh):
            raise serializers.ValidationError(faults)
        deliveries.browser_renew(channel=channel, **fresh)
        return Response(status=204)

    @extend_schema(
        summary="Send a test message now",
        request=None,
        responses=inline_serializer(
            "TestAnswer",
            {"ok": serializers.BooleanField(), "status": serializers.IntegerField(allow_null=True), "error": serializers.CharField()},
        ),
    )
    def test(self, request: Request, pk: int) -> Response:
        answer = deliveries.channel_test(channel=self.get_editable())
        return Response({"ok": answer.ok, "status": answer.status, "error": translated(answer.error)})

    @extend_schema(summary="Sent messages, newest first", parameters=CURSOR, responses={200: newest_first(DeliverySerializer)})
    def deliveries(self, request: Request, pk: int) -> Response:
        channel = self.get_editable()
        paginator = NewestFirst()
        page = paginator.paginate_queryset(delivery_list(channel=channel), request, view=self)
        return paginator.get_paginated_response(DeliverySerializer(page, many=True).data)

    @extend_schema(summary="Send a failed message again, now", request=None, responses=DeliverySerializer)
    def retry(self, request: Request, pk: int, delivery: int) -> Response:
        failed = get_object_or_404(delivery_list(channel=self.get_editable()), pk=delivery)
        deliveries.delivery_retry(delivery=failed)
        failed.refresh_from_db()
        return Response(DeliverySerializer(failed).data)
