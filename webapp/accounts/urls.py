"""Addresses below /api/v1/."""

from django.urls import path

from webapp.accounts.api import MeView, PasswordView, TokenView

urlpatterns = [
    path("me", MeView.as_view(), name="api-me"),
    path("me/password", PasswordView.as_view(), name="api-me-password"),
    path("tokens/", TokenView.as_view({"get": "list", "post": "create"}), name="api-tokens"),
    path("tokens/<int:pk>/", TokenView.as_view({"delete": "destroy"}), name="api-token"),
]
