"""Addresses below /api/v1/."""

from django.urls import path

from webapp.jobs.api import JobActionView, JobsView, JobView

urlpatterns = [
    path("jobs/", JobsView.as_view(), name="api-jobs"),
    path("jobs/<slug:name>/", JobView.as_view(), name="api-job"),
    path("jobs/<slug:name>/start", JobActionView.as_view(action="start"), name="api-job-start"),
    path("jobs/<slug:name>/stop", JobActionView.as_view(action="stop"), name="api-job-stop"),
]
