"""Addresses below `/api/v1/`."""

from django.urls import path

from webapp.overlays.api import BaseMapTile, OverlayView

urlpatterns = [
    path("base-maps/<int:number>/<int:z>/<int:x>/<int:y>", BaseMapTile.as_view(), name="api-base-map-tile"),
    path("feeds/<slug:name>/overlays/", OverlayView.as_view({"get": "list", "post": "create"}), name="api-feed-overlays"),
    path("feeds/<slug:name>/overlays/<int:pk>/", OverlayView.as_view({"get": "retrieve", "delete": "destroy"}), name="api-feed-overlay"),
]
