"""`feeds/{name}/overlays/`, and the tiles of base maps that this server has."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.config.known_keys import KnownKeys
from webapp.feeds.models import NO_CONTROLS, Feed
from webapp.feeds.selectors import feed_list
from webapp.overlays import services
from webapp.overlays.base_maps import base_map_archives
from webapp.overlays.models import Overlay
from webapp.overlays.tile_archives import VECTORS

DAY_S = 86_400


class OverlaySerializer(KnownKeys):
    """An overlay; lists omit its document."""

    id = serializers.IntegerField(read_only=True)
    name = serializers.CharField(max_length=100, validators=[NO_CONTROLS])
    document = serializers.JSONField(write_only=True, help_text="A GeoJSON FeatureCollection in the feed's own coordinates.")


class OverlayView(GenericViewSet[Any]):
    """The overlays of a feed."""

    queryset = Overlay.objects.none()
    pagination_class = None
    serializer_class = OverlaySerializer

    def feed(self, *, to_change: bool = False) -> Feed:
        """The feed of the address. Raises Http404, and PermissionDenied for a change that the user
        may not make."""
        feed: Any = get_object_or_404(feed_list(user=person(self.request)), name=self.kwargs["name"])
        if to_change and not feed.editable:
            raise PermissionDenied(Message("You may see this feed but not change its overlays."))
        return feed  # type: ignore[no-any-return]

    @extend_schema(summary="The overlays of a feed by name", responses=OverlaySerializer(many=True))
    def list(self, request: Request, name: str) -> Response:
        overlays: Any = Overlay.objects.filter(feed=self.feed()).only("id", "name")
        return Response(OverlaySerializer(overlays, many=True).data)

    @extend_schema(summary="Store an overlay; it replaces one of the same name", responses={201: OverlaySerializer})
    def create(self, request: Request, name: str) -> Response:
        feed = self.feed(to_change=True)
        serializer = OverlaySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(OverlaySerializer(services.overlay_keep(feed=feed, **serializer.validated_data)).data, status=201)

    @extend_schema(summary="The drawing of an overlay, as GeoJSON", responses=OpenApiTypes.OBJECT)
    def retrieve(self, request: Request, name: str, pk: int) -> Response:
        return Response(get_object_or_404(Overlay, feed=self.feed(), pk=pk).document)

    @extend_schema(summary="Remove an overlay", responses={204: None})
    def destroy(self, request: Request, name: str, pk: int) -> Response:
        services.overlay_remove(overlay=get_object_or_404(Overlay, feed=self.feed(to_change=True), pk=pk))
        return Response(status=204)


class BaseMapTile(APIView):
    """A picture of a base map or a vector tile of it, for users who are logged in."""

    @extend_schema(
        summary="A tile of a base map on this server",
        responses={(200, "image/*"): OpenApiTypes.BINARY, (200, VECTORS): OpenApiTypes.BINARY, 204: None},
        description="An image, or a vector tile, compressed as in the archive (Content-Encoding). 204: there is none.",
    )
    def get(self, request: Request, number: int, z: int, x: int, y: int) -> HttpResponse:
        archive = base_map_archives().get(number)
        if archive is None:
            raise Http404
        tile = archive.tile(z, x, y)
        answer = HttpResponse(status=204) if tile is None else HttpResponse(tile, content_type=archive.content_type)
        if tile is not None and archive.encoding:
            answer["Content-Encoding"] = archive.encoding
        answer["Cache-Control"] = f"private, max-age={DAY_S}"
        return answer
