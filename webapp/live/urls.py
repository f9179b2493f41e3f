"""Addresses below /api/v1/."""

from django.urls import path

from webapp.live.share_api import ShareView

urlpatterns = [
    path("feeds/<slug:name>/shares/", ShareView.as_view({"get": "list", "post": "create"}, throttle_action="invite"), name="api-shares"),
    path("feeds/<slug:name>/shares/<int:pk>/", ShareView.as_view({"delete": "destroy"}), name="api-share"),
]
