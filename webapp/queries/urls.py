"""Addresses below /api/v1/."""

from django.urls import path

from webapp.queries.api import CheckView, PreviewView, QueryView
from webapp.queries.bulk_api import BulkView, RemoveView
from webapp.queries.calculus_api import GalleryView, SandboxView
from webapp.queries.pattern_api import ClosureView, OccupancyView, PatternView, ProgressView, QueryOccupancyView, QueryProgressView

urlpatterns = [
    path("queries/", QueryView.as_view({"get": "list", "post": "create"}), name="api-queries"),
    path("queries/bulk", BulkView.as_view(throttle_action="import"), name="api-query-bulk"),
    path("queries/remove", RemoveView.as_view(throttle_action="import"), name="api-query-remove"),
    path("queries/check", CheckView.as_view(), name="api-query-check"),
    path("queries/closure", ClosureView.as_view(), name="api-query-closure"),
    path("queries/pattern", PatternView.as_view(), name="api-query-pattern"),
    path("queries/progress", ProgressView.as_view(), name="api-query-progress-of"),
    path("queries/occupancy", OccupancyView.as_view(), name="api-query-occupancy-of"),
    path("queries/preview", PreviewView.as_view(), name="api-query-preview"),
    path("queries/gallery", GalleryView.as_view(), name="api-query-gallery"),
    path("queries/sandbox", SandboxView.as_view(), name="api-query-sandbox"),
    path("queries/<int:pk>/", QueryView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-query"),
    path("queries/<int:pk>/versions", QueryView.as_view({"get": "versions"}), name="api-query-versions"),
    path("queries/<int:pk>/versions/<int:version>", QueryView.as_view({"get": "version"}), name="api-query-version"),
    path("queries/<int:pk>/derivation", QueryView.as_view({"get": "derivation"}), name="api-query-derivation"),
    path("queries/<int:pk>/shapes", QueryView.as_view({"get": "shapes"}), name="api-query-shapes"),
    path("queries/<int:pk>/occupancy", QueryOccupancyView.as_view({"get": "occupancy"}, throttle_action="preview"), name="api-query-occupancy"),
    path("queries/<int:pk>/progress", QueryProgressView.as_view({"get": "progress"}, throttle_action="preview"), name="api-query-progress"),
]
