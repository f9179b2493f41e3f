"""`me` and `tokens/`."""

from __future__ import annotations

from typing import Any
from zoneinfo import available_timezones

from allauth.account.adapter import get_adapter
from django.conf import settings
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema, inline_serializer
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.models import ApiToken, Role, Scope, Units, User
from webapp.accounts.selectors import me, token_list
from webapp.accounts.services import password_change, profile_update, token_create, token_revoke
from webapp.config.known_keys import KnownKeys, OneOf
from webapp.config.related import BoundedListField
from webapp.feeds.of_feed import FeedNameField

MEMBERSHIP = inline_serializer(
    "TeamOfMine", {"id": serializers.IntegerField(), "name": serializers.CharField(), "role": serializers.ChoiceField(Role.choices)}, many=True
)


class MeSerializer(serializers.ModelSerializer[User]):
    """The user who sends the request."""

    name = serializers.CharField(source="username", read_only=True)
    superuser = serializers.BooleanField(source="is_superuser", read_only=True)
    teams = MEMBERSHIP

    class Meta:
        model = User
        fields = ("id", "name", "email", "time_zone", "units", "language", "superuser", "teams")


class ProfileSerializer(KnownKeys):
    """What users may change about themselves."""

    email = serializers.EmailField(required=False, allow_blank=True)
    time_zone = serializers.CharField(required=False)
    units = OneOf(choices=Units.choices, required=False)
    language = OneOf(choices=settings.LANGUAGES, required=False, allow_blank=True)

    def validate_time_zone(self, name: str) -> str:
        if name not in available_timezones():
            raise serializers.ValidationError(Message("Not a time zone of the IANA database, such as Europe/Oslo."))
        return name


class PasswordSerializer(KnownKeys):
    """The old password and a new one."""

    old = serializers.CharField(max_length=200, trim_whitespace=False)
    new = serializers.CharField(max_length=200, trim_whitespace=False)

    def validate_old(self, text: str) -> str:
        try:
            # Limited like log-ins: an open session must not allow guessing the password.
            known = get_adapter().reauthenticate(self.context["request"].user, text)
        except ValidationError as error:
            raise serializers.ValidationError(error.messages) from error
        if not known:
            raise serializers.ValidationError(Message("That is not your current password."))
        return text

    def validate_new(self, text: str) -> str:
        try:
            validate_password(text, self.context["request"].user)
        except ValidationError as error:
            raise serializers.ValidationError(error.messages) from error
        return text


def require_session(request: Request) -> None:
    """Raises PermissionDenied for a token: a token must not make others or take over its
    account."""
    if isinstance(request.auth, ApiToken):
        raise PermissionDenied(Message("Log in with your password for this; a token is not enough."))


class MeView(APIView):
    """The user who sends the request."""

    @extend_schema(responses=MeSerializer)
    def get(self, request: Request) -> Response:
        return Response(me(person(request)))

    @extend_schema(request=ProfileSerializer, responses=MeSerializer)
    def patch(self, request: Request) -> Response:
        require_session(request)
        serializer = ProfileSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(me(profile_update(user=person(request), **serializer.validated_data)))


class PasswordView(APIView):
    """Changes the password; every other session of the user ends."""

    @extend_schema(request=PasswordSerializer, responses={204: None})
    def post(self, request: Request) -> Response:
        require_session(request)
        serializer = PasswordSerializer(data=request.data, context={"request": request})
        serializer.is_valid(raise_exception=True)
        password_change(user=person(request), password=serializer.validated_data["new"])
        update_session_auth_hash(request._request, person(request))
        return Response(status=204)


class TokenSerializer(KnownKeys, serializers.ModelSerializer[ApiToken]):
    """A token without its secret."""

    scopes = BoundedListField(child=OneOf(Scope.choices), allow_empty=False)
    feed = FeedNameField(required=False, allow_null=True, help_text="The only feed that it may send to.")

    class Meta:
        model = ApiToken
        fields = ("id", "name", "prefix", "scopes", "feed", "created_at", "expires_at", "last_used_at")
        read_only_fields = ("prefix", "created_at", "last_used_at")


class NewTokenSerializer(TokenSerializer):
    """A token just made, with its secret: shown this once."""

    token = serializers.CharField(read_only=True)

    class Meta(TokenSerializer.Meta):
        fields = (*TokenSerializer.Meta.fields, "token")  # type: ignore[assignment]


class TokenView(GenericViewSet[ApiToken]):
    """The user's own tokens. Only a session may list, create or revoke them."""

    queryset = ApiToken.objects.none()
    serializer_class = TokenSerializer
    pagination_class = None
    filter_backends = ()

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        require_session(request)

    def get_queryset(self) -> QuerySet[ApiToken]:
        return token_list(user=self.request.user) if self.request.user.is_authenticated else ApiToken.objects.none()

    def list(self, request: Request) -> Response:
        return Response(self.get_serializer(self.get_queryset(), many=True).data)

    @extend_schema(
        responses={201: NewTokenSerializer},
        examples=[OpenApiExample("A sensor gateway", {"name": "gateway", "scopes": ["ingest"]}, request_only=True)],
    )
    def create(self, request: Request) -> Response:
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        new = token_create(user=person(request), **serializer.validated_data)
        return Response({**self.get_serializer(new.token).data, "token": new.text}, status=201)

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        token_revoke(token=self.get_object())
        return Response(status=204)
