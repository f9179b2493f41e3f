"""`shifts/`: who is on call when, by a calendar or by turns entered by hand."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import QuerySet
from django.shortcuts import get_object_or_404
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.viewsets import GenericViewSet

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.alerts import shifts
from webapp.alerts.models import Shift, Turn
from webapp.alerts.shift_calendars import FILE_BYTES
from webapp.config.known_keys import KnownKeys

WEEKS = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20261123T080000Z\r\nDTEND:20261130T080000Z\r\nSUMMARY:ben\r\nEND:VEVENT\r\nEND:VCALENDAR"


class ShiftSerializer(OwnedSerializer):
    """A shift and who is on call in it now."""

    calendar = serializers.CharField(
        write_only=True, required=False, max_length=FILE_BYTES, trim_whitespace=False, help_text="The text of an iCalendar file."
    )
    on_call = serializers.SerializerMethodField()
    known_until = serializers.SerializerMethodField(help_text="When the last turn ends.")
    warning = serializers.SerializerMethodField(help_text="Why alerts may reach nobody, now or soon; else empty.")

    class Meta:
        model = Shift
        fields = ("id", "name", "zone", "calendar", "on_call", "unknown", "known_until", "warning", *OwnedSerializer.OWNED, "created_at")
        read_only_fields = ("unknown", "created_at")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_on_call(self, shift: Any) -> list[str]:
        # A calendar and a turn entered by hand may name the same person.
        return list(dict.fromkeys(turn.person.username for turn in shift.present))

    def get_known_until(self, shift: Any) -> datetime:
        return shifts.end_of(shift, timezone.now())

    def get_warning(self, shift: Any) -> str:
        warning = shifts.warning_of(shift, timezone.now(), is_editor=self.get_editable(shift))
        return "" if warning is None else warning.sentences

    def validate_zone(self, zone: str) -> str:
        try:
            ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError) as error:
            raise serializers.ValidationError(Message("A time zone of the IANA list, such as Europe/Athens.")) from error
        return zone


class TurnSerializer(KnownKeys, serializers.ModelSerializer[Turn]):
    """A period in which a user, given by user name, is on call."""

    person = serializers.CharField(source="person.username", max_length=150)

    class Meta:
        model = Turn
        fields = ("id", "person", "begins_at", "ends_at", "by_hand")
        read_only_fields = ("by_hand",)

    def changes(self) -> dict[str, Any]:
        """The request's data, for `turn_save`."""
        given = dict(self.validated_data)
        return {**given, "person": given["person"]["username"]} if "person" in given else given


class ShiftView(OwnedView):
    """Shifts, from iCalendar files and turns entered by hand. A rule that names one sends to those
    who are on call."""

    queryset = Shift.objects.all()
    serializer_class = ShiftSerializer

    def get_queryset(self) -> QuerySet[Any]:
        return shifts.shift_list(user=self.request.user)

    @extend_schema(examples=[OpenApiExample("By the week", {"name": "Duty officer", "zone": "Europe/Athens", "calendar": WEEKS}, request_only=True)])
    def create(self, request: Request) -> Response:
        self.check_may_make()
        serializer = self.get_serializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        return Response(self.represent(shifts.shift_save(user=person(request), **serializer.validated_data)), status=201)

    def partial_update(self, request: Request, pk: int) -> Response:
        shift = self.get_editable()
        serializer = self.get_serializer(shift, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        return Response(self.represent(shifts.shift_save(user=person(request), shift=shift, **serializer.validated_data)))

    @extend_schema(responses={204: None})
    def destroy(self, request: Request, pk: int) -> Response:
        self.get_editable().delete()
        return Response(status=204)


class TurnView(GenericViewSet[Turn]):
    """The turns of a shift: of its calendar, and those entered by hand, which can be changed."""

    queryset = Turn.objects.none()
    serializer_class = TurnSerializer

    def get_queryset(self) -> QuerySet[Turn]:
        return shifts.turn_list(shift=self._shift(), since=timezone.now())

    @extend_schema(summary="The turns that have not ended, by begin")
    def list(self, request: Request, shift: int) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        summary="Enter a turn by hand",
        examples=[
            OpenApiExample(
                "A night", {"person": "ben", "begins_at": "2026-11-30T22:00:00+02:00", "ends_at": "2026-12-01T06:00:00+02:00"}, request_only=True
            )
        ],
    )
    def create(self, request: Request, shift: int) -> Response:
        of_shift, serializer = self._editable(), TurnSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        turn = shifts.turn_save(user=person(request), shift=of_shift, **serializer.changes())
        return Response(TurnSerializer(turn).data, status=201)

    @extend_schema(summary="Change a turn that was entered by hand")
    def partial_update(self, request: Request, shift: int, pk: int) -> Response:
        of_shift, turn = self._editable(), self._by_hand()
        serializer = TurnSerializer(turn, data=request.data, partial=True)
        serializer.is_valid(raise_exception=True)
        return Response(TurnSerializer(shifts.turn_save(user=person(request), shift=of_shift, turn=turn, **serializer.changes())).data)

    @extend_schema(summary="Remove a turn that was entered by hand", responses={204: None})
    def destroy(self, request: Request, shift: int, pk: int) -> Response:
        self._editable()
        self._by_hand().delete()
        return Response(status=204)

    def _shift(self) -> Any:
        """The shift of the address. Raises Http404 for one that the user may not see."""
        return get_object_or_404(shifts.shift_list(user=self.request.user), pk=self.kwargs["shift"])

    def _editable(self) -> Any:
        """The same. Raises PermissionDenied when the user may not change it."""
        found = self._shift()
        if not found.editable:
            raise PermissionDenied(Message("You may see this but not change it."))
        return found

    def _by_hand(self) -> Turn:
        """The turn of the address. Raises PermissionDenied for one of the calendar."""
        turn = self.get_object()
        if not turn.by_hand:
            raise PermissionDenied(Message("This turn is from the calendar: change it there, and import it again."))
        return turn
