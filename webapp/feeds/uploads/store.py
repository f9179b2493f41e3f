"""Storage of uploaded files, and removal of uploads that are not loaded."""

from __future__ import annotations

import fcntl
import os
import shutil
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import Http404
from django.utils import timezone

from engine.model.faults import Fault, Refused, refuse
from engine.model.messages import Message
from engine.sources.reading import TICKS, UTM, Reading, reading_of
from webapp.accounts.models import User
from webapp.accounts.quotas import quota_check
from webapp.config.faults import InUse
from webapp.config.room import hold
from webapp.feeds.models import Feed, Upload, UploadState
from webapp.feeds.selectors import uploads_held
from webapp.feeds.services import feed_create
from webapp.feeds.uploads.existing import check_into

GREATEST_BYTES = 4_000_000_000
KEPT = timedelta(days=2)
"""An abandoned file is removed after this long."""
ACTIVE = (UploadState.READING, UploadState.SENDING)
AT_REST = (UploadState.UPLOADING, UploadState.READY, UploadState.DONE, UploadState.CANCELLED, UploadState.FAILED)
LEAST_RATE, GREATEST_RATE = 0.01, 10_000.0


GONE = Message("The file is no longer there: send it again.")


class WrongOffset(ValueError):
    """The bytes do not follow the stored ones."""


class FileGone(ValueError):
    """The bytes that came before were removed, with the upload or without."""


def folder_of(upload: Upload) -> Path:
    """The upload's folder."""
    return _root() / str(upload.pk)


def file_of(upload: Upload) -> Path:
    """The file with the bytes received so far."""
    return folder_of(upload) / "file"


def _root() -> Path:
    return Path(settings.VAR) / "uploads"


def offset_of(upload: Upload) -> int:
    """How many of its bytes have been received."""
    try:
        return file_of(upload).stat().st_size
    except FileNotFoundError:
        return 0


@transaction.atomic
def upload_create(*, owner: User, name: str, size: int) -> Upload:
    """An upload that waits for its bytes. Raises Refused."""
    if not 0 < size <= GREATEST_BYTES:
        raise refuse("/size", Message("A file has 1 to {most:,} bytes.", most=GREATEST_BYTES))
    quota_check("uploads", user=owner, more=-(-size // 1_000_000), held=uploads_held)
    shown = "".join(sign for sign in name.replace("\\", "/").rpartition("/")[2] if sign.isprintable())[:200]
    upload = Upload.objects.create(owner=owner, name=shown or "file", size=size)
    folder_of(upload).mkdir(parents=True)
    return upload


def upload_append(*, upload: Upload, offset: int, data: bytes) -> int:
    """Appends bytes; returns the new size. Raises WrongOffset, FileGone, Refused."""
    if upload.state != UploadState.UPLOADING:
        raise WrongOffset(Message("All of the file is there."))
    try:
        written = file_of(upload).open("ab")
    except FileNotFoundError as error:
        raise FileGone(GONE) from error
    with written as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        there = os.fstat(file.fileno()).st_size
        if there != offset:
            raise WrongOffset(Message("{there} bytes are there.", there=there))
        if there + len(data) > upload.size:
            raise refuse("", Message("The upload is larger than announced."))
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    if there + len(data) == upload.size:
        Upload.objects.filter(pk=upload.pk, state=UploadState.UPLOADING).update(state=UploadState.READY, touched_at=timezone.now())
    return there + len(data)


@transaction.atomic
def upload_delete(*, upload: Upload) -> None:
    """Removes an upload and its file. Raises InUse while it is being loaded, Http404 when it is
    removed already."""
    upload = hold(upload)
    if upload.state not in AT_REST:
        raise InUse([Fault("", Message("The file is being loaded: cancel that first."))])
    upload.delete()
    transaction.on_commit(partial(shutil.rmtree, _root() / str(upload.pk), ignore_errors=True))


@transaction.atomic
def upload_load(
    *,
    upload: Upload,
    user: User,
    reading: Mapping[str, Any],
    feed: Mapping[str, Any] | None = None,
    into: Feed | None = None,
    as_now: bool = False,
    rate: float = 1.0,
    ordered: bool = True,
) -> Feed:
    """Has the file's rows loaded into the feed `into`, or into a new one of `user` with the
    settings `feed`. Raises Refused.

    How an existing feed loads files follows from its clock: `as_now` and `ordered` are those
    of new feeds (decision 32).
    """
    if into is not None:
        into = hold(into)
    upload = hold(upload)
    if upload.state not in (UploadState.READY, UploadState.FAILED):
        raise InUse(
            [
                Fault(
                    "",
                    Message("The file is not all there yet.")
                    if upload.state == UploadState.UPLOADING
                    else Message("The file is being loaded already."),
                )
            ]
        )
    read = reading_of(reading)
    if not read.time:
        raise refuse("/reading/time", Message("Choose the column with the time."))
    if read.crs == UTM:
        raise refuse("/reading/crs", Message("The coordinates look like UTM, and the file does not state the zone: choose it."))
    if as_now and read.time_format == TICKS:
        raise refuse("/as_now", Message("Ticks have no playback speed: load the file as history."))
    if not LEAST_RATE <= rate <= GREATEST_RATE:
        raise refuse("/rate", Message("Between {least} and {most} times as fast.", least=LEAST_RATE, most=f"{GREATEST_RATE:,.0f}"))
    if into is not None:
        check_into(into, upload, read)
        as_now, ordered = into.wall_clock, True
    made = into or _feed_for(read, user=user, feed=feed or {}, as_now=as_now)
    _forget_progress(upload)
    upload.feed, upload.reading, upload.as_now, upload.rate, upload.ordered = made, read.to_json(), as_now, rate, ordered or as_now
    upload.state = UploadState.READING
    upload.save()
    return made


def _feed_for(read: Reading, *, user: User, feed: Mapping[str, Any], as_now: bool) -> Feed:
    """A new feed for the rows that the reading makes. Raises Refused with pointers below /feed."""
    schema = read.feed("upload").to_json()
    # Histories have gaps, and a row after a gap is not from the future.
    guard = {} if as_now else {"ahead": None}
    try:
        return feed_create(
            owner=user, **{**feed, "crs": schema["crs"], "time": schema["time"], "columns": schema["columns"], "wall_clock": as_now, **guard}
        )
    except Refused as refused:
        raise type(refused)([Fault(f"/feed{fault.pointer}", fault.message) for fault in refused.faults]) from refused


def _forget_progress(upload: Upload) -> None:
    upload.read = upload.position = upload.sending = upload.late = upload.dead = 0
    upload.rows, upload.error = None, ""


@transaction.atomic
def upload_control(*, upload: Upload, action: str) -> Upload:
    """Pauses, resumes or cancels the loading. Rows already sent stay in the feed. Raises InUse."""
    upload = hold(upload)
    if action == "pause" and upload.state in ACTIVE:
        upload.paused_in, upload.state = upload.state, UploadState.PAUSED
    elif action == "resume" and upload.state == UploadState.PAUSED:
        upload.paused_in, upload.state = "", UploadState(upload.paused_in)
    elif action == "cancel" and upload.state in (*ACTIVE, UploadState.PAUSED):
        upload.state = UploadState.CANCELLED
        transaction.on_commit(partial(shutil.rmtree, folder_of(upload), ignore_errors=True))
    else:
        raise InUse([Fault("", Message("This cannot be done now: the upload is {state}.", state=upload.state))])
    upload.save(update_fields=["state", "paused_in", "touched_at"])
    return upload


def uploads_expire() -> None:
    """Removes abandoned files, except of uploads that are resumed meanwhile, and folders of uploads
    that were removed with their feeds."""
    old = Upload.objects.filter(touched_at__lt=timezone.now() - KEPT, state__in=AT_REST)
    for upload in old[:100]:
        with suppress(Http404, InUse):
            upload_delete(upload=upload)
    names = {path.name for path in _root().iterdir()} if _root().is_dir() else set()
    for name in names - {str(pk) for pk in Upload.objects.values_list("pk", flat=True)}:
        if _is_old(_root() / name):
            shutil.rmtree(_root() / name, ignore_errors=True)


def _is_old(folder: Path) -> bool:
    """Whether no transaction can be making its upload just now."""
    try:
        uuid.UUID(folder.name)
        return timezone.now().timestamp() - folder.stat().st_mtime > 3600
    except (ValueError, OSError):
        return False
