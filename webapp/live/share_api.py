"""`feeds/{name}/shares/`: links to the live view for people without an account; only for users who
may change the feed, with a session."""

from __future__ import annotations

from collections.abc import Collection
from datetime import timedelta
from typing import Any

from django.conf import settings
from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from engine.model.faults import Fault, Refused
from engine.model.messages import Message
from webapp.accounts.api import require_session
from webapp.accounts.authentication import person
from webapp.accounts.owned import PersonField
from webapp.config.known_keys import KnownKeys
from webapp.config.opened_links import link_to
from webapp.config.related import BoundedListField
from webapp.feeds.models import Feed
from webapp.feeds.selectors import feed_list
from webapp.live.models import SharedView
from webapp.live.shares import share_create, share_list, share_revoke
from webapp.queries.selectors import queries_visible


class ShareSerializer(KnownKeys, serializers.ModelSerializer[SharedView]):
    """A link without its secret. `queries`: the ids it shows; when it is made, null
    for all that the maker sees."""

    maker = PersonField(read_only=True)
    queries = BoundedListField(child=serializers.IntegerField(), max_length=10_000, required=False, allow_null=True, write_only=True)

    class Meta:
        model = SharedView
        fields = ("id", "name", "maker", "queries", "created_at", "expires_at")
        read_only_fields = ("created_at",)

    def validate_expires_at(self, moment: Any) -> Any:
        now = timezone.now()
        if not now < moment <= now + timedelta(days=settings.SHARE_DAYS):
            raise serializers.ValidationError(Message("The end must be in the future, at most {days} days from now.", days=settings.SHARE_DAYS))
        return moment


class NewShareSerializer(ShareSerializer):
    """A new link: it is shown only once."""

    link = serializers.CharField(read_only=True)

    class Meta(ShareSerializer.Meta):
        fields = (*ShareSerializer.Meta.fields, "link")  # type: ignore[assignment]


class ShareView(GenericViewSet[SharedView]):
    """The links of one feed."""

    queryset = SharedView.objects.none()
    serializer_class = ShareSerializer
    pagination_class = None
    filter_backends = ()
    throttle_action: str | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_session(request)

    def feed(self) -> Feed:
        """The feed of the address. Raises NotFound for one that is not visible, PermissionDenied
        for one that the user may not change."""
        feed = feed_list(user=person(self.request)).filter(name=self.kwargs["name"]).first()
        if feed is None:
            raise NotFound
        if not getattr(feed, "editable", False):
            raise PermissionDenied(Message("Only users who may change the feed can share it by a link."))
        return feed

    def get_queryset(self) -> QuerySet[SharedView]:
        return share_list(feed=self.feed())

    def list(self, request: Request, name: str) -> Response:
        return Response(self.get_serializer(self.get_queryset(), many=True).data)

    @extend_schema(responses={201: NewShareSerializer})
    def create(self, request: Request, name: str) -> Response:
        feed = self.feed()
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        self._check_queries(data.get("queries"), feed)
        new = share_create(maker=person(request), feed=feed, name=data.get("name", ""), expires_at=data["expires_at"], queries=data.get("queries"))
        link = request.build_absolute_uri(link_to("shared", new.text))
        return Response({**self.get_serializer(new.share).data, "link": link}, status=201)

    def _check_queries(self, ids: Collection[int] | None, feed: Feed) -> None:
        """Raises Refused: if they were left out silently, they would seem to be shown."""
        visible = queries_visible(user=person(self.request), feed=feed)
        message = Message("There is no such query of this feed that you may see.")
        if faults := [Fault(f"/queries/{place}", message) for place, pk in enumerate(ids or ()) if pk not in visible]:
            raise Refused(faults)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, name: str, pk: int) -> Response:
        share_revoke(share=get_object_or_404(self.get_queryset(), pk=pk))
        return Response(status=204)
