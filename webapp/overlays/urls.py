"""Addresses below `/api/v1/`."""

from django.urls import path

from webapp.overlays.api import OverlayView

urlpatterns = [
    path("feeds/<slug:name>/overlays/", OverlayView.as_view({"get": "list", "post": "create"}), name="api-feed-overlays"),
    path("feeds/<slug:name>/overlays/<int:pk>/", OverlayView.as_view({"get": "retrieve", "delete": "destroy"}), name="api-feed-overlay"),
]
