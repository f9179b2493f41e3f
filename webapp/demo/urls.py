"""Addresses below `/api/v1/`."""

from django.urls import path

from webapp.demo.api import SamplesView, ScoresView

urlpatterns = [
    path("detections/scores", ScoresView.as_view(), name="api-detections-scores"),
    path("samples/", SamplesView.as_view(), name="api-samples"),
]
