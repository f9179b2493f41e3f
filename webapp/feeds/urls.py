"""Addresses below /api/v1/."""

from django.urls import path

from webapp.feeds.api import AnyBytes, FeedView
from webapp.feeds.ingest_views import EventsView
from webapp.feeds.region_api import RegionImportView, RegionView
from webapp.feeds.tracker_views import TrackerView
from webapp.feeds.uploads.api import UploadView

NAME = "feeds/<slug:name>"
UPLOAD = "uploads/<uuid:pk>"

urlpatterns = [
    path("feeds/", FeedView.as_view({"get": "list", "post": "create"}), name="api-feeds"),
    path(f"{NAME}/", FeedView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-feed"),
    path(f"{NAME}/holdings", FeedView.as_view({"get": "holdings"}), name="api-feed-holdings"),
    path(f"{NAME}/plan", FeedView.as_view({"put": "put_plan"}, parser_classes=(AnyBytes,)), name="api-feed-plan"),
    path(f"{NAME}/positions", FeedView.as_view({"get": "positions"}), name="api-feed-positions"),
    path(f"{NAME}/tracks", FeedView.as_view({"get": "tracks"}), name="api-feed-tracks"),
    path(f"{NAME}/movements", FeedView.as_view({"get": "movements"}), name="api-feed-movements"),
    path(f"{NAME}/rows.parquet", FeedView.as_view({"get": "rows_parquet"}, throttle_action="export"), name="api-feed-rows"),
    path(f"{NAME}/rows.csv", FeedView.as_view({"get": "rows_csv"}, throttle_action="export"), name="api-feed-rows-csv"),
    path(f"{NAME}/entities", FeedView.as_view({"get": "entities"}), name="api-feed-entities"),
    path(f"{NAME}/entity", FeedView.as_view({"get": "entity"}), name="api-feed-entity"),
    path(f"{NAME}/measures", FeedView.as_view({"get": "measures"}), name="api-feed-measures"),
    path(f"{NAME}/histogram", FeedView.as_view({"get": "histogram"}), name="api-feed-histogram"),
    path(f"{NAME}/events", EventsView.as_view(), name="api-feed-events"),
    path("track/<slug:name>", TrackerView.as_view(), name="api-track"),
    path("track/<slug:name>/<str:token>", TrackerView.as_view(), name="api-track-token"),
    path(f"{NAME}/dead-letters", FeedView.as_view({"get": "dead_letters"}), name="api-dead-letters"),
    path(f"{NAME}/dead-letters/correct", FeedView.as_view({"post": "correct"}), name="api-dead-letters-correct"),
    path(f"{NAME}/dead-letters.csv", FeedView.as_view({"get": "dead_letters_csv"}, throttle_action="export"), name="api-dead-letters-csv"),
    path("uploads/", UploadView.as_view({"get": "list", "post": "create", "options": "offered"}), name="api-uploads"),
    path(
        f"{UPLOAD}/",
        UploadView.as_view({"get": "retrieve", "head": "retrieve", "patch": "partial_update", "delete": "destroy", "options": "offered"}),
        name="api-upload",
    ),
    path(f"{UPLOAD}/inspection", UploadView.as_view({"post": "inspection"}), name="api-upload-inspection"),
    path(f"{UPLOAD}/load", UploadView.as_view({"post": "load", "patch": "control"}), name="api-upload-load"),
    path("regions/", RegionView.as_view({"get": "list", "post": "create"}), name="api-regions"),
    path("regions/import", RegionImportView.as_view({"post": "import_file"}, throttle_action="import"), name="api-regions-import"),
    path("regions/export", RegionView.as_view({"get": "export_file"}, throttle_action="export"), name="api-regions-export"),
    path("regions/bulk", RegionView.as_view({"post": "bulk"}), name="api-regions-bulk"),
    path("regions/<int:pk>/", RegionView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-region"),
]
