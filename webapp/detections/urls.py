"""Addresses below /api/v1/."""

from django.urls import path, re_path

from webapp.detections.api import AnswersBehindView, CountsView, DetectionsView, DetectionView, EvidenceView, ExportView, RemovedQueriesView

urlpatterns = [
    path("detections/", DetectionsView.as_view(), name="api-detections"),
    path("detections/export", ExportView.as_view(), name="api-detections-export"),
    path("detections/counts", CountsView.as_view(), name="api-detections-counts"),
    path("detections/removed-queries", RemovedQueriesView.as_view(), name="api-removed-queries"),
    re_path(r"^detections/(?P<key>[0-9a-f]{32})/\Z", DetectionView.as_view(), name="api-detection"),
    re_path(r"^detections/(?P<key>[0-9a-f]{32})/evidence\Z", EvidenceView.as_view(), name="api-detection-evidence"),
    re_path(r"^detections/(?P<key>[0-9a-f]{32})/answers\Z", AnswersBehindView.as_view(), name="api-detection-answers"),
]
