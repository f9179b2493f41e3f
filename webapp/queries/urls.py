"""Addresses below /api/v1/."""

from django.urls import path

from webapp.queries.api import CheckView, PreviewView, QueryView

urlpatterns = [
    path("queries/", QueryView.as_view({"get": "list", "post": "create"}), name="api-queries"),
    path("queries/check", CheckView.as_view(), name="api-query-check"),
    path("queries/preview", PreviewView.as_view(), name="api-query-preview"),
    path("queries/<int:pk>/", QueryView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-query"),
    path("queries/<int:pk>/versions", QueryView.as_view({"get": "versions"}), name="api-query-versions"),
    path("queries/<int:pk>/shapes", QueryView.as_view({"get": "shapes"}), name="api-query-shapes"),
]
