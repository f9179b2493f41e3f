"""What the APIs of all owned objects share: fields and access."""

from __future__ import annotations

from typing import Any, ClassVar, TypedDict

from django.core.exceptions import PermissionDenied as NotPermitted
from drf_spectacular.extensions import OpenApiSerializerFieldExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.viewsets import GenericViewSet

from engine.model.messages import Message, message_of
from webapp.accounts.authentication import person
from webapp.accounts.models import Team, User
from webapp.accounts.permissions import Owned, check_may_make, check_team
from webapp.config.known_keys import KnownKeys
from webapp.config.openapi import schema_of
from webapp.config.related import ByKey


class TeamName(TypedDict):
    """A team by its id, with its name for users."""

    id: int
    name: str


class PersonField(serializers.ModelSerializer[User]):
    """A user as shown to others."""

    name = serializers.CharField(source="username")

    class Meta:
        model = User
        fields = ("id", "name")


class TeamField(ByKey):
    """Read as `{"id", "name"}`, written as the team's id or as it is read."""

    def __init__(self, **options: Any) -> None:
        if not options.get("read_only"):
            options.setdefault("queryset", Team.objects.all())
        super().__init__(**options)

    def use_pk_only_optimization(self) -> bool:
        return False

    def to_internal_value(self, data: Any) -> Any:
        """The team. The name next to an id is not looked at: a team may be renamed."""
        if isinstance(data, dict):
            if not {"id"} <= data.keys() <= {"id", "name"}:
                raise serializers.ValidationError(Message("A team's id, or an object with its id and name."))
            data = data["id"]
        return super().to_internal_value(data)

    def to_representation(self, value: Any) -> Any:
        return {"id": value.pk, "name": value.name}


class TeamFieldSchema(OpenApiSerializerFieldExtension):  # type: ignore[no-untyped-call]  # the base class registers it
    """Both forms of a TeamField in the OpenAPI document."""

    target_class = TeamField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: str) -> dict[str, Any]:
        shown = schema_of(TeamName)
        return {"oneOf": [{"type": "integer"}, shown]} if direction == "request" else shown


class OwnedSerializer(KnownKeys, serializers.ModelSerializer[Any]):
    """Base of the serializers of owned things; the view annotates `editable`."""

    OWNED: ClassVar[tuple[str, ...]] = ("owner", "team", "public", "editable")

    owner = PersonField(read_only=True)
    team = TeamField(required=False, allow_null=True)
    editable = serializers.SerializerMethodField()

    def get_editable(self, thing: Any) -> bool:
        return bool(getattr(thing, "editable", False))

    def validate_team(self, team: Team | None) -> Team | None:
        """Users can neither read nor write in a team that is not theirs."""
        try:
            model: Any = self.Meta.model
            check_team(self.context["request"].user, team.pk if team else None, model.edit_role)
        except NotPermitted as error:
            raise serializers.ValidationError(message_of(error)) from error
        return team


class OwnedView(ListModelMixin, RetrieveModelMixin, GenericViewSet[Any]):
    """Base of the views of owned things: an object that the user cannot see is not found (404), a
    change that they may not make is refused (403).

    `get_queryset` returns the objects that the user may see, annotated by `with_editable`.
    """

    throttle_action: str | None = None
    """The rate of the endpoint (`REST_FRAMEWORK["DEFAULT_THROTTLE_RATES"]`), set in its URL
    pattern."""

    def get_editable(self) -> Any:
        """The object of the address. Raises PermissionDenied when the user may see but not change
        it."""
        thing = self.get_object()
        if not thing.editable:
            raise PermissionDenied(Message("You may see this but not change it."))
        return thing

    def check_may_make(self) -> None:
        """Raises PermissionDenied unless the user's role may create objects of this kind."""
        serializer: Any = self.serializer_class
        check_may_make(person(self.request), serializer.Meta.model.edit_role)

    def represent(self, thing: Owned) -> dict[str, Any]:
        """The JSON of an object as it is now in the database."""
        return dict(self.get_serializer(self.get_queryset().get(pk=thing.pk)).data)
