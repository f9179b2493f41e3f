"""Addresses below `/api/v1/`."""

from django.urls import path

from webapp.demo.api import ScoresView

urlpatterns = [path("detections/scores", ScoresView.as_view(), name="api-detections-scores")]
