"""Addresses below /api/v1/."""

from django.urls import path

from webapp.accounts.api import MeView, PasswordView, TokenView
from webapp.accounts.team_api import InvitationView, MemberView, MyQuotasView, PeopleView, PersonQuotasView, TeamQuotasView, TeamView

urlpatterns = [
    path("me", MeView.as_view(), name="api-me"),
    path("me/password", PasswordView.as_view(), name="api-me-password"),
    path("me/quotas", MyQuotasView.as_view({"get": "retrieve"}), name="api-me-quotas"),
    path("teams/<int:pk>/quotas", TeamQuotasView.as_view({"get": "retrieve", "patch": "partial_update"}), name="api-team-quotas"),
    path("people/<int:pk>/quotas", PersonQuotasView.as_view({"get": "retrieve", "patch": "partial_update"}), name="api-person-quotas"),
    path("tokens/", TokenView.as_view({"get": "list", "post": "create"}), name="api-tokens"),
    path("teams/", TeamView.as_view({"get": "list", "post": "create"}), name="api-teams"),
    path("teams/<int:pk>/", TeamView.as_view({"get": "retrieve", "patch": "partial_update", "delete": "destroy"}), name="api-team"),
    path("teams/<int:pk>/invitations/", InvitationView.as_view({"post": "create"}, throttle_action="invite"), name="api-team-invitations"),
    path("teams/<int:pk>/invitations/<int:invitation>/", InvitationView.as_view({"delete": "destroy"}), name="api-team-invitation"),
    path("teams/<int:pk>/members/<int:user>/", MemberView.as_view({"patch": "partial_update", "delete": "destroy"}), name="api-team-member"),
    path("teams/<int:pk>/members/<int:user>/transfer", MemberView.as_view({"post": "transfer"}), name="api-team-transfer"),
    path("people/", PeopleView.as_view({"get": "list"}), name="api-people"),
    path("people/<int:pk>/", PeopleView.as_view({"patch": "partial_update"}), name="api-person"),
    path("people/<int:pk>/transfer", PeopleView.as_view({"post": "transfer"}), name="api-person-transfer"),
    path("tokens/<int:pk>/", TokenView.as_view({"delete": "destroy"}), name="api-token"),
]
