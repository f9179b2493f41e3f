"""`uploads/`: files that are sent in parts by the tus protocol (1.0.0: core, creation,
termination), inspected, and loaded into a new feed."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from engine.model.faults import Fault, Refused, refuse
from engine.model.messages import Message, message_of
from webapp.accounts.authentication import person
from webapp.accounts.owned import OwnedSerializer, OwnedView
from webapp.audit.services import record
from webapp.config.errors import faults_body
from webapp.config.known_keys import KnownKeys, OneOf
from webapp.config.openapi import schema_of
from webapp.config.parsers import Json
from webapp.config.wording import TranslatedField, translated
from webapp.feeds.api import FeedSerializer
from webapp.feeds.models import Feed, Upload, UploadState
from webapp.feeds.selectors import upload_list
from webapp.feeds.uploads import store
from webapp.feeds.uploads.existing import inspect_for
from webapp.feeds.uploads.inspection import Inspection, inspect

JSON = "application/json"
TUS = {"Tus-Resumable": "1.0.0"}
OFFERED = {**TUS, "Tus-Version": "1.0.0", "Tus-Extension": "creation,termination", "Tus-Max-Size": str(store.GREATEST_BYTES)}
PART_BYTES = 16_000_000
"""The maximum size of a part of a file per request, in bytes."""
TUS_VERSION = OpenApiParameter("Tus-Resumable", str, OpenApiParameter.HEADER, required=True, enum=["1.0.0"])


class PartOfFile(BaseParser):
    """The bytes of a PATCH."""

    media_type = "application/offset+octet-stream"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return bytes(stream.read(PART_BYTES + 1))


class AnyType(BaseParser):
    """A creation has no body."""

    media_type = "*/*"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> Any:
        return {}


class UploadSerializer(OwnedSerializer):
    """An uploaded file: `offset` of its `size` bytes have come; `read` rows of it were read,
    `position` of `rows` rows are in the log."""

    offset = serializers.SerializerMethodField()
    error = TranslatedField(read_only=True)
    feed = serializers.SlugRelatedField[Any](slug_field="name", read_only=True, allow_null=True)

    class Meta:
        model = Upload
        fields = (
            "id", "name", "size", "offset", "state", "error", "feed", "as_now", "rate", "ordered", "read", "rows", "position", "late", "dead",
            "created_at", *OwnedSerializer.OWNED,
        )  # fmt: skip
        read_only_fields = fields

    def get_offset(self, upload: Upload) -> int:
        return store.offset_of(upload) if upload.state == UploadState.UPLOADING else upload.size


class UploadReadingSerializer(KnownKeys):
    """The known properties of a file, and the feed that it is for."""

    reading = serializers.DictField(required=False, default=dict)
    into = serializers.CharField(required=False, allow_null=True, default=None)


class UploadSteeringSerializer(KnownKeys):
    """The requested change of a loading."""

    action = OneOf(["pause", "resume", "cancel"])


class LoadSerializer(KnownKeys):
    """How to load a file. The schema of a new feed follows from the reading."""

    feed = serializers.DictField(required=False, help_text="Settings of a new feed.")
    into = serializers.CharField(required=False, help_text="The name of a feed that is there, instead.")
    reading = serializers.DictField()
    as_now = serializers.BooleanField(default=False)
    rate = serializers.FloatField(default=1.0)
    ordered = serializers.BooleanField(default=True)


FEED_KEYS = ("name", "title", "team", "lateness", "tick", "retention_hours", "public")


class UploadView(OwnedView):
    """Uploaded files. Each belongs to the user who sends it."""

    queryset = Upload.objects.all()
    serializer_class = UploadSerializer
    filterset_class = None
    parser_classes = (Json, PartOfFile, AnyType)

    def get_queryset(self) -> QuerySet[Any]:
        return upload_list(user=self.request.user)

    def list(self, request: Request) -> Response:
        page = self.paginate_queryset(self.get_queryset())
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    @extend_schema(
        summary="Announce a file (tus: creation)",
        parameters=[
            TUS_VERSION,
            OpenApiParameter("Upload-Length", int, OpenApiParameter.HEADER, required=True),
            OpenApiParameter("Upload-Metadata", str, OpenApiParameter.HEADER, description="`filename` and its name in base64."),
        ],
        request=None,
        responses={201: None},
    )
    def create(self, request: Request) -> Response:
        self.check_may_make()
        if (refused := _wrong_version(request)) is not None:
            return refused
        length = _number(request.headers.get("Upload-Length", ""))
        if length is None:
            raise refuse("/size", Message("Upload-Length must be the number of bytes of the file."))
        if length > store.GREATEST_BYTES:
            return _answer(413, [Fault("/size", Message("A file has at most {most:,} bytes.", most=store.GREATEST_BYTES))])
        upload = store.upload_create(owner=person(request), name=_file_name(request.headers.get("Upload-Metadata", "")), size=length)
        record("upload.create", upload, file=upload.name, bytes=upload.size)
        return Response(status=201, headers={**TUS, "Location": f"/api/v1/uploads/{upload.pk}/"})

    @extend_schema(summary="The server's capabilities (tus)", request=None, responses={204: None})
    def offered(self, request: Request) -> Response:
        return Response(status=204, headers=OFFERED)

    def retrieve(self, request: Request, pk: str) -> Response:
        """HEAD returns how much of the file was received; GET returns the same as JSON."""
        upload = self.get_object()
        headers = {
            **TUS,
            "Upload-Offset": str(UploadSerializer().get_offset(upload)),
            "Upload-Length": str(upload.size),
            "Cache-Control": "no-store",
        }
        return Response(self.get_serializer(upload).data, headers=headers)

    @extend_schema(
        summary="Send the next bytes of a file (tus: core protocol)",
        parameters=[TUS_VERSION, OpenApiParameter("Upload-Offset", int, OpenApiParameter.HEADER, required=True)],
        request={"application/offset+octet-stream": OpenApiTypes.BINARY},
        responses={204: None},
    )
    def partial_update(self, request: Request, pk: str) -> Response:
        upload = self.get_editable()
        if (refused := _wrong_version(request)) is not None:
            return refused
        if (request.content_type or "").partition(";")[0].strip() != PartOfFile.media_type:
            return _answer(415, [Fault("", Message("Send the bytes as {type}.", type=PartOfFile.media_type))])
        offset = _number(request.headers.get("Upload-Offset", ""))
        # Without a body no parser is asked.
        body: Any = request.data
        data = body if isinstance(body, bytes) else b""
        if offset is None:
            raise refuse("", Message("Upload-Offset must be the position of the bytes in the file."))
        if len(data) > PART_BYTES:
            return _answer(413, [Fault("", Message("A request may have at most {most} bytes.", most=PART_BYTES))])
        try:
            there = store.upload_append(upload=upload, offset=offset, data=data)
        except store.WrongOffset as error:
            return _answer(409, [Fault("", message_of(error))])
        except store.FileGone as error:
            return _answer(404, [Fault("", message_of(error))])
        return Response(status=204, headers={**TUS, "Upload-Offset": str(there)})

    @extend_schema(summary="Delete an uploaded file (tus: termination)", responses={204: None})
    def destroy(self, request: Request, pk: str) -> Response:
        store.upload_delete(upload=self.get_editable())
        return Response(status=204, headers=TUS)

    @extend_schema(
        summary="The content of an uploaded file",
        description="The probable reading of the file, with a sample of its rows. The keys in `reading` are used as given, the others are guessed; "
        "for the feed `into`, as the files before it were read.",
        request={JSON: UploadReadingSerializer},
        responses={200: schema_of(Inspection)},
    )
    def inspection(self, request: Request, pk: str) -> Response:
        upload = self.get_editable()
        if upload.state in (UploadState.UPLOADING, UploadState.DONE, UploadState.CANCELLED):
            raise refuse("/file", Message("The file cannot be inspected: it is {state}.", state=upload.state))
        serializer = UploadReadingSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        try:
            return Response(self._look(upload, **serializer.validated_data))
        except Refused as refused:
            raise Refused(
                [fault if fault.pointer in ("/file", "/into") else Fault(f"/reading{fault.pointer}", fault.message) for fault in refused.faults]
            ) from None

    @extend_schema(summary="Create a feed from a file", request={JSON: LoadSerializer}, responses={201: UploadSerializer})
    def load(self, request: Request, pk: str) -> Response:
        upload = self.get_editable()
        serializer = LoadSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        values = dict(serializer.validated_data)
        if "into" in values:
            values["into"] = self._feed(values["into"])
            values.pop("feed", None)
        else:
            values["feed"] = self._feed_values(values.get("feed", {}), values["reading"])
        feed = store.upload_load(upload=upload, user=person(request), **values)
        record("upload.load", feed, file=upload.name)
        return Response(self.represent(upload), status=201)

    def _look(self, upload: Upload, reading: dict[str, Any], into: str | None) -> Inspection:
        path = store.file_of(upload)
        if not path.is_file():
            raise refuse("/file", store.GONE)
        found = inspect(path, upload.name, reading) if into is None else inspect_for(self._feed(into), path, upload.name, reading)
        return {**found, "faults": [{**fault, "problem": translated(fault["problem"])} for fault in found["faults"]]}

    def _feed(self, name: Any) -> Feed:
        """The feed of this name, to which the user may add. Raises Refused."""
        feed = Feed.objects.editable_by(person(self.request)).filter(name=str(name)).first()
        if feed is None:
            raise refuse("/into", Message("There is no such feed that you may add rows to."))
        return feed

    def _feed_values(self, attributes: dict[str, Any], reading: dict[str, Any]) -> dict[str, Any]:
        """The feed's own settings, checked like those of any new feed. Raises Refused
        with pointers below /feed."""
        unknown = [Fault(f"/feed/{key}", Message("known are: {known}", known=", ".join(FEED_KEYS))) for key in attributes if key not in FEED_KEYS]
        if unknown:
            raise Refused(unknown)
        schema = {
            "crs": "planar" if reading.get("crs") == "plane" else "geographic",
            "time": "ticks" if reading.get("time_format") == "ticks" else "ms",
        }
        serializer = FeedSerializer(data={**attributes, **schema}, context=self.get_serializer_context())
        try:
            serializer.is_valid(raise_exception=True)
        except Refused as refused:
            raise Refused([Fault(f"/feed{fault.pointer}", fault.message) for fault in refused.faults]) from None
        values = serializer.validated_data
        return {"title": values["name"], **values}

    @extend_schema(
        summary="Pause, resume or cancel the loading",
        request={JSON: UploadSteeringSerializer},
        responses=UploadSerializer,
    )
    def control(self, request: Request, pk: str) -> Response:
        upload = self.get_editable()
        serializer = UploadSteeringSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        store.upload_control(upload=upload, action=serializer.validated_data["action"])
        return Response(self.represent(upload))


def _wrong_version(request: Request) -> Response | None:
    if request.headers.get("Tus-Resumable") == TUS["Tus-Resumable"]:
        return None
    return _answer(412, [Fault("", Message("Send the header Tus-Resumable: 1.0.0."))], **OFFERED)


def _answer(status: int, faults: list[Fault], **headers: str) -> Response:
    return Response(faults_body(faults), status=status, headers={**TUS, **headers})


def _number(header: str) -> int | None:
    """The number of a header; None if it is none. Python reads no more than 4,300 digits."""
    return int(header) if header.isascii() and header.isdigit() and len(header) <= 40 else None


def _file_name(metadata: str) -> str:
    """The name of the file in tus's metadata: pairs of a key and a value in base64."""
    for pair in metadata.split(","):
        key, _, value = pair.strip().partition(" ")
        if key == "filename":
            try:
                return base64.b64decode(value, validate=True).decode()
            except (binascii.Error, UnicodeDecodeError):
                return ""
    return ""
