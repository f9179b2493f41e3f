"""`shifts/`: who is on call when."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.db.models import QuerySet
from django.utils import timezone
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from engine.model.messages import Message
from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.alerts import shifts
from webapp.alerts.models import Shift
from webapp.alerts.shift_calendars import FILE_BYTES

WEEKS = "BEGIN:VCALENDAR\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20261123T080000Z\r\nDTEND:20261130T080000Z\r\nSUMMARY:ben\r\nEND:VEVENT\r\nEND:VCALENDAR"


class ShiftSerializer(OwnedSerializer):
    """A shift and who is on call in it now."""

    calendar = serializers.CharField(write_only=True, max_length=FILE_BYTES, trim_whitespace=False, help_text="The text of an iCalendar file.")
    on_call = serializers.SerializerMethodField()
    known_until = serializers.SerializerMethodField(help_text="When the last turn ends that the calendar gives.")
    warning = serializers.SerializerMethodField(help_text="Why alerts may reach nobody, now or soon; else empty.")

    class Meta:
        model = Shift
        fields = ("id", "name", "zone", "calendar", "on_call", "unknown", "known_until", "warning", *OwnedSerializer.OWNED, "created_at")
        read_only_fields = ("unknown", "created_at")

    @extend_schema_field(serializers.ListField(child=serializers.CharField()))
    def get_on_call(self, shift: Any) -> list[str]:
        return [turn.person.username for turn in shift.present]

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


class ShiftView(OwnedView):
    """Shifts, each from an iCalendar file. A rule that names one sends to those who are on call."""

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
