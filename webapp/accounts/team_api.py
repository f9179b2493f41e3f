"""`teams/` and `people/`: members of teams and their roles, invitations, ownership. Requires a
session; a token is not enough."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.validators import UniqueValidator
from rest_framework.viewsets import GenericViewSet

from engine.model.faults import unknown_among, unknown_name
from engine.model.messages import Message
from webapp.accounts import teams
from webapp.accounts.api import require_session
from webapp.accounts.authentication import person
from webapp.accounts.models import Invitation, Membership, Role, Team, User
from webapp.accounts.owned import PersonField
from webapp.accounts.quotas import defaults_of, quota_list, quotas_set
from webapp.accounts.selectors import invitation_list, manages, member_list, people_list, team_list
from webapp.config.known_keys import KnownKeys
from webapp.config.opened_links import link_to
from webapp.config.related import BoundedDictField, ByKey
from webapp.config.wording import translated


class MemberSerializer(KnownKeys, serializers.ModelSerializer[Membership]):
    """A member of a team. `active`: the account is switched on."""

    id = serializers.IntegerField(source="user_id", read_only=True)
    name = serializers.CharField(source="user.username", read_only=True)
    email = serializers.CharField(source="user.email", read_only=True)
    active = serializers.BooleanField(source="user.is_active", read_only=True)

    class Meta:
        model = Membership
        fields = ("id", "name", "email", "active", "role")


class InvitationSerializer(KnownKeys, serializers.ModelSerializer[Invitation]):
    """An open invitation, without its secret."""

    invited_by = PersonField(read_only=True)

    class Meta:
        model = Invitation
        fields = ("id", "email", "role", "invited_by", "created_at", "expires_at")
        read_only_fields = ("created_at", "expires_at")


class NewInvitationSerializer(InvitationSerializer):
    """A new invitation: its link is shown only once. `sent`: it was sent by e-mail."""

    link = serializers.CharField(read_only=True)
    sent = serializers.BooleanField(read_only=True)

    class Meta(InvitationSerializer.Meta):
        fields = (*InvitationSerializer.Meta.fields, "link", "sent")  # type: ignore[assignment]


class TeamSerializer(KnownKeys, serializers.ModelSerializer[Team]):
    """A team; `members` are seen by its members, `invitations` by those who manage it."""

    name = serializers.CharField(max_length=100, validators=[UniqueValidator(Team.objects.all(), "There is a team of that name.", "iexact")])
    manageable = serializers.SerializerMethodField()
    members = serializers.SerializerMethodField()
    invitations = serializers.SerializerMethodField()

    class Meta:
        model = Team
        fields = ("id", "name", "manageable", "members", "invitations")

    def get_manageable(self, team: Team) -> bool:
        return manages(self.context["request"].user, team)

    @extend_schema_field(MemberSerializer(many=True))
    def get_members(self, team: Team) -> list[dict[str, Any]]:
        shown: list[dict[str, Any]] = list(MemberSerializer(member_list(team=team), many=True).data)
        if not self.get_manageable(team):
            # Addresses are visible only to users who may invite people in the team's name.
            return [{**member, "email": ""} for member in shown]
        return shown

    @extend_schema_field(InvitationSerializer(many=True))
    def get_invitations(self, team: Team) -> list[dict[str, Any]]:
        return list(InvitationSerializer(invitation_list(team=team), many=True).data) if self.get_manageable(team) else []


class NewOwnerSerializer(KnownKeys):
    """The user to whom ownership is transferred."""

    to = ByKey(queryset=User.objects.filter(is_active=True))


TRANSFERRED = inline_serializer("Transferred", {"counts": serializers.DictField(child=serializers.IntegerField())})


class _TeamView(GenericViewSet[Any]):
    """Base: the team of the address, seen by its members alone."""

    queryset = Team.objects.none()
    pagination_class = None
    filter_backends = ()
    throttle_action: str | None = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_session(request)

    def get_queryset(self) -> QuerySet[Team]:
        return team_list(user=person(self.request)) if self.request.user.is_authenticated else Team.objects.none()

    def managed(self) -> Team:
        """The team of the address. Raises PermissionDenied for members who do not manage it."""
        team: Team = self.get_object()
        if not manages(person(self.request), team):
            raise PermissionDenied(Message("Only an admin of the team can do this."))
        return team


def require_administrator(request: Request) -> None:
    """Raises PermissionDenied for all but the server's administrators."""
    if not person(request).is_superuser:
        raise PermissionDenied(Message("Only an administrator of this server can do this."))


class TeamView(_TeamView):
    """Teams with their members. Administrators of the server make and remove them."""

    serializer_class = TeamSerializer

    def list(self, request: Request) -> Response:
        return Response(self.get_serializer(self.get_queryset(), many=True).data)

    def retrieve(self, request: Request, pk: int) -> Response:
        return Response(self.get_serializer(self.get_object()).data)

    def create(self, request: Request) -> Response:
        require_administrator(request)
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        team = teams.team_create(name=serializer.validated_data["name"])
        return Response(self.get_serializer(team).data, status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        team = self.managed()
        serializer = self.get_serializer(team, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        serializer.save()
        return Response(serializer.data)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        team = self.get_object()
        require_administrator(request)
        teams.team_remove(team=team)
        return Response(status=204)


class InvitationView(_TeamView):
    """Invitations to a team."""

    serializer_class = InvitationSerializer

    @extend_schema(responses={201: NewInvitationSerializer})
    def create(self, request: Request, pk: int) -> Response:
        team = self.managed()
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        new = teams.invitation_create(team=team, email=data["email"], role=Role(data.get("role", Role.VIEWER)), by=person(request))
        link = request.build_absolute_uri(link_to("invitation", new.text))
        sent = teams.invitation_send(new=new, link=link)
        return Response({**self.get_serializer(new.invitation).data, "link": link, "sent": sent}, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int, invitation: int) -> Response:
        teams.invitation_revoke(invitation=get_object_or_404(Invitation, pk=invitation, team=self.managed()))
        return Response(status=204)


class MemberView(_TeamView):
    """One member of a team. Everybody may leave a team themselves."""

    serializer_class = MemberSerializer

    def member(self, user: int, *, or_self: bool = False) -> Membership:
        leaves = or_self and person(self.request).pk == user
        team = self.get_object() if leaves else self.managed()
        return get_object_or_404(Membership.objects.select_related("user", "team"), user=user, team=team)

    def partial_update(self, request: Request, pk: int, user: int) -> Response:
        member = self.member(user)
        serializer = self.get_serializer(member, data=request.data)
        serializer.is_valid(raise_exception=True)
        role = Role(serializer.validated_data.get("role", member.role))
        return Response(self.get_serializer(teams.member_set_role(member=member, role=role)).data)

    @extend_schema(parameters=[OpenApiParameter("to", int, description="the user who gets what the member owns in the team")], responses={204: None})
    def destroy(self, request: Request, pk: int, user: int) -> Response:
        """`?to=<id>`: the user to whom the member's objects in the team are transferred; without it
        they stay the member's."""
        member = self.member(user, or_self=True)
        new_owner = None
        if "to" in request.query_params:
            serializer = NewOwnerSerializer(data={"to": request.query_params["to"]})
            serializer.is_valid(raise_exception=True)
            new_owner = serializer.validated_data["to"]
        teams.member_remove(member=member, new_owner=new_owner)
        return Response(status=204)

    @extend_schema(request=NewOwnerSerializer, responses=TRANSFERRED)
    def transfer(self, request: Request, pk: int, user: int) -> Response:
        """Transfers the member's objects in this team to another member."""
        member = self.member(user)
        serializer = NewOwnerSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response({"counts": teams.ownership_transfer(owner=member.user, new_owner=serializer.validated_data["to"], team=member.team)})


class PersonSerializer(KnownKeys, serializers.ModelSerializer[User]):
    """An account, as shown to administrators of the server."""

    name = serializers.CharField(source="username", read_only=True)
    email = serializers.CharField(read_only=True, help_text="Empty: unknown.")
    active = serializers.BooleanField(source="is_active", required=False)
    administrator = serializers.BooleanField(source="is_superuser", required=False)
    teams = serializers.SerializerMethodField()

    class Meta:
        model = User
        fields = ("id", "name", "email", "active", "administrator", "last_login", "teams")
        read_only_fields = ("email", "last_login")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_teams(self, user: User) -> list[str]:
        return [f"{member.team.name} ({member.role})" for member in user.memberships.all()]


class PeopleView(GenericViewSet[User]):
    """Everybody with an account; for administrators of the server."""

    queryset = User.objects.none()
    serializer_class = PersonSerializer
    pagination_class = None
    filter_backends = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_session(request)
        require_administrator(request)

    def get_queryset(self) -> QuerySet[User]:
        return people_list()

    def list(self, request: Request) -> Response:
        return Response(self.get_serializer(self.get_queryset(), many=True).data)

    def partial_update(self, request: Request, pk: int) -> Response:
        user = self.get_object()
        serializer = self.get_serializer(user, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        data = serializer.validated_data
        if user == person(request) and data.get("is_active") is False:
            raise serializers.ValidationError({"active": Message("You cannot switch your own account off.")})
        if "is_superuser" in data:
            teams.user_set_administrator(user=user, administrator=data["is_superuser"])
        if "is_active" in data:
            teams.user_set_active(user=user, active=data["is_active"])
        return Response(self.get_serializer(user).data)

    @extend_schema(request=NewOwnerSerializer, responses=TRANSFERRED)
    def transfer(self, request: Request, pk: int) -> Response:
        """Transfers everything that a user owns to another user."""
        serializer = NewOwnerSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response({"counts": teams.ownership_transfer(owner=self.get_object(), new_owner=serializer.validated_data["to"], team=None)})


QUOTAS = inline_serializer(
    "Quota",
    {
        "name": serializers.CharField(),
        "what": serializers.CharField(),
        "limit": serializers.IntegerField(),
        "default": serializers.IntegerField(help_text="The server's, which holds where nothing else was set."),
        "used": serializers.IntegerField(allow_null=True),
    },
    many=True,
)


def _quotas_answer(holder: User | Team) -> Response:
    return Response([asdict(quota) | {"what": translated(quota.what)} for quota in quota_list(holder)])


class LimitsSerializer(KnownKeys):
    """Some quotas by name; null restores the server's default."""

    limits = BoundedDictField(child=serializers.IntegerField(min_value=0, max_value=10**12, allow_null=True))

    def validate_limits(self, limits: dict[str, int | None]) -> dict[str, int | None]:
        known = defaults_of(self.context["holder"])
        unknown = {name: [unknown_name(name, known, what=Message("quota"))] for name in unknown_among(limits, known)}
        if unknown:
            raise serializers.ValidationError(unknown)
        return limits


class _QuotasView(GenericViewSet[Any]):
    """Quotas with how much of them is used. Administrators of the server set them."""

    queryset = Team.objects.none()
    pagination_class = None
    filter_backends = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_session(request)

    def holder(self) -> User | Team:
        """The holder of the quotas."""
        raise NotImplementedError

    @extend_schema(responses=QUOTAS)
    def retrieve(self, request: Request, **parts: int) -> Response:
        return _quotas_answer(self.holder())

    @extend_schema(request=LimitsSerializer, responses=QUOTAS)
    def partial_update(self, request: Request, **parts: int) -> Response:
        holder = self.holder()
        require_administrator(request)
        serializer = LimitsSerializer(data=request.data, context={"holder": holder})
        serializer.is_valid(raise_exception=True)
        quotas_set(holder=holder, limits=serializer.validated_data["limits"])
        return _quotas_answer(holder)


class MyQuotasView(_QuotasView):
    """One's own."""

    def holder(self) -> User:
        return person(self.request)


class TeamQuotasView(_QuotasView):
    """A team's, seen by its members."""

    def holder(self) -> Team:
        return get_object_or_404(team_list(user=person(self.request)), pk=self.kwargs["pk"])


class PersonQuotasView(_QuotasView):
    """Someone's, seen by administrators of the server."""

    def holder(self) -> User:
        require_administrator(self.request)
        return get_object_or_404(people_list(), pk=self.kwargs["pk"])
