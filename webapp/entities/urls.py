"""Addresses below `/api/v1/`."""

from django.urls import path

from webapp.entities.api import ActivityView, EntityView, RegistryView, WatchesView
from webapp.entities.map_api import MapView

NAME = "feeds/<slug:name>"

urlpatterns = [
    path(f"{NAME}/profile", EntityView.as_view({"get": "profile", "put": "put_record"}), name="api-feed-profile"),
    path(
        f"{NAME}/registry",
        RegistryView.as_view({"get": "search", "post": "import_registry"}, throttle_action="import"),
        name="api-feed-registry",
    ),
    path(f"{NAME}/registry.csv", RegistryView.as_view({"get": "export_registry"}, throttle_action="export"), name="api-feed-registry-csv"),
    path(f"{NAME}/notes", EntityView.as_view({"post": "add_note"}), name="api-feed-notes"),
    path(f"{NAME}/notes/<int:pk>", EntityView.as_view({"delete": "remove_note"}), name="api-feed-note"),
    path(f"{NAME}/watch", EntityView.as_view({"put": "begin_watch", "delete": "end_watch"}), name="api-feed-watch"),
    path(f"{NAME}/density", MapView.as_view({"get": "density"}), name="api-feed-density"),
    path(f"{NAME}/attribute", MapView.as_view({"get": "attribute"}), name="api-feed-attribute"),
    path("watches/", WatchesView.as_view(), name="api-watches"),
    path("regions/<int:pk>/activity", ActivityView.as_view(), name="api-region-activity"),
]
