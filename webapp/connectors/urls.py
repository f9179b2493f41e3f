"""Addresses of connectors below /api/v1/."""

from django.urls import path

from webapp.connectors.api import ConnectorView

urlpatterns = [
    path("connectors/", ConnectorView.as_view({"get": "list", "post": "create"}), name="api-connectors"),
    path("connectors/kinds", ConnectorView.as_view({"get": "kinds"}), name="api-connectors-kinds"),
    path("connectors/trial", ConnectorView.as_view({"post": "trial"}, throttle_action="trial"), name="api-connectors-trial"),
    path(
        "connectors/<int:pk>/",
        ConnectorView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}),
        name="api-connector",
    ),
]
