"""Uploaded files: sent in parts by the tus protocol, inspected in a caged
process, and loaded exactly once."""

from __future__ import annotations

import base64
import shutil
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import shapely
from rest_framework.test import APIClient

from engine import failpoints
from webapp.cage.warm_pool import INSPECTIONS
from webapp.feeds.logs import event_log
from webapp.feeds.models import DeadLetter, Feed, IngestCounter, Upload
from webapp.feeds.uploads import loading, store
from webapp.feeds.uploads.loading import Loads

pytestmark = [pytest.mark.services, pytest.mark.django_db]

T0 = 1_767_348_000
ROWS = "".join(f"{'ab'[n % 2]},{T0 + n},{n / 1000},{n / 2000},{n}\n" for n in range(3_000))
CSV = ("id,time,lon,lat,speed\n" + ROWS + "c,never,1,2,3\n").encode()
TUS = {"HTTP_TUS_RESUMABLE": "1.0.0"}
POINTS = shapely.points([[13.4, 52.5], [13.5, 52.5]])
PART = "application/offset+octet-stream"


@pytest.fixture(autouse=True)
def folder(settings: Any, tmp_path: Path) -> None:
    settings.VAR = tmp_path


@pytest.fixture(autouse=True, scope="module")
def no_process_stays() -> Iterator[None]:
    yield
    INSPECTIONS.retire()


@pytest.fixture
def client(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> APIClient:
    return client_of(people.operator)


def announced(client: APIClient, size: int, name: str = "boats.csv") -> str:
    answer = client.post(
        "/api/v1/uploads/", HTTP_UPLOAD_LENGTH=str(size), HTTP_UPLOAD_METADATA=f"filename {base64.b64encode(name.encode()).decode()}", **TUS
    )
    assert answer.status_code == 201
    return str(answer["Location"])


def sent(client: APIClient, address: str, offset: int, data: bytes) -> Any:
    return client.generic("PATCH", address, data, content_type=PART, HTTP_UPLOAD_OFFSET=str(offset), **TUS)


def uploaded(client: APIClient, data: bytes = CSV, name: str = "boats.csv") -> str:
    address = announced(client, len(data), name)
    assert sent(client, address, 0, data).status_code == 204
    return address


def loaded(client: APIClient, address: str, **more: Any) -> Any:
    found = client.post(f"{address}inspection", {}, format="json").json()
    body = {"feed": {"name": "boats", "lateness": found["lateness"]}, "reading": found["reading"], **more}
    return client.post(f"{address}load", body, format="json")


def run(loads: Loads, upload: Upload, seconds: float = 60) -> Upload:
    """Runs the loader until the upload has finished."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        loads.round()
        upload.refresh_from_db()
        if upload.state not in store.ACTIVE:
            return upload
    raise AssertionError(f"still {upload}")


def rows_of(feed: str) -> list[dict[str, Any]]:
    return [row for table in event_log(feed).read() for row in table.to_pylist()]


def test_an_upload_continues_where_it_was_interrupted(client: APIClient) -> None:
    address = announced(client, len(CSV))
    assert sent(client, address, 0, CSV[:1_000])["Upload-Offset"] == "1000"
    assert sent(client, address, 500, CSV[500:]).status_code == 409, "the client asks where to go on"
    head = client.head(address, **TUS)
    assert (head["Upload-Offset"], head["Upload-Length"], head["Cache-Control"]) == ("1000", str(len(CSV)), "no-store")
    assert sent(client, address, 1_000, CSV[1_000:] + b"more").status_code == 400
    assert sent(client, address, 1_000, CSV[1_000:])["Upload-Offset"] == str(len(CSV))
    upload = Upload.objects.get()
    assert (upload.state, upload.name) == ("ready", "boats.csv") and store.file_of(upload).read_bytes() == CSV
    assert client.delete(address, **TUS).status_code == 204 and not Upload.objects.exists()


def test_invalid_upload_requests_are_refused(client: APIClient) -> None:
    assert client.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH="10").status_code == 412
    assert client.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH="many", **TUS).status_code == 400
    assert client.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH=str(10**13), **TUS).status_code == 413
    offered = client.options("/api/v1/uploads/")
    assert offered["Tus-Version"] == "1.0.0" and offered["Tus-Extension"] == "creation,termination"
    address = announced(client, 10, "../../etc/passwd")
    assert Upload.objects.get().name == "passwd"
    assert client.generic("PATCH", address, b"x", content_type="text/plain", HTTP_UPLOAD_OFFSET="0", **TUS).status_code == 415
    assert client.generic("PATCH", address, b"x", content_type=PART, **TUS).status_code == 400


def test_strange_parts_are_refused_or_add_nothing(client: APIClient) -> None:
    long = client.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH="9" * 5_000, **TUS)
    assert (long.status_code, long.json()["faults"][0]["pointer"]) == (400, "/size")
    address = announced(client, 10)
    assert client.generic("PATCH", address, b"ab", content_type=PART, HTTP_UPLOAD_OFFSET="9" * 5_000, **TUS).status_code == 400
    empty = sent(client, address, 0, b"")
    assert (empty.status_code, empty["Upload-Offset"]) == (204, "0")
    assert sent(client, address, 0, b"ab")["Upload-Offset"] == "2"


def test_an_upload_whose_file_is_lost_is_to_be_sent_again(client: APIClient) -> None:
    address, whole = announced(client, 10), uploaded(client)
    for upload in Upload.objects.all():
        shutil.rmtree(store.folder_of(upload))
    lost = sent(client, address, 0, b"ab")
    assert (lost.status_code, "send it again" in lost.json()["faults"][0]["message"]) == (404, True)
    inspected = client.post(f"{whole}inspection", {}, format="json")
    assert inspected.status_code == 400 and "send it again" in inspected.json()["faults"][0]["message"]
    assert client.delete(address, **TUS).status_code == 204


def test_an_upload_that_is_removed_meanwhile_is_not_found(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    address = announced(client, 10)
    gone = Upload.objects.get()
    Upload.objects.all().delete()
    monkeypatch.setattr("webapp.feeds.uploads.api.UploadView.get_editable", lambda self: gone)
    assert client.delete(address, **TUS).status_code == 404
    assert client.patch(f"{address}load", {"action": "cancel"}, format="json").status_code == 404


def test_uploads_have_a_quota(client: APIClient, settings: Any) -> None:
    settings.USER_QUOTAS = {**settings.USER_QUOTAS, "uploads": 3}
    announced(client, 2_000_000)
    answer = client.post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH="2000000", **TUS)
    assert answer.status_code == 403 and "megabytes" in answer.json()["faults"][0]["message"]


def test_viewers_cannot_upload(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    assert client_of(people.viewer).post("/api/v1/uploads/", HTTP_UPLOAD_LENGTH="5", **TUS).status_code == 403


def test_a_file_becomes_a_feed_of_history(client: APIClient) -> None:
    address = uploaded(client)
    found = client.post(f"{address}inspection", {"reading": {"zone": "Mars"}}, format="json")
    assert found.json()["faults"][0]["pointer"] == "/reading/zone"
    found = client.post(f"{address}inspection", {}, format="json").json()
    assert (found["count"], found["good"], found["faults"][0]["line"]) == (3_001, 3_000, 3_002)
    refused = client.post(f"{address}load", {"feed": {"name": "No name"}, "reading": found["reading"]}, format="json")
    assert [fault["pointer"] for fault in refused.json()["faults"]] == ["/feed/name"]
    assert loaded(client, address).status_code == 201
    upload = run(Loads(), Upload.objects.get())
    assert (upload.state, upload.error, upload.rows, upload.position, upload.dead) == ("done", "", 3_000, 3_000, 1)
    feed = Feed.objects.get(name="boats")
    assert (feed.crs, feed.time, feed.ahead, feed.columns) == ("geographic", "ms", None, {"speed": "int"})
    assert feed.view["center"] == pytest.approx([1.5, 0.75], abs=0.1), "its map opens where the file's rows are"
    rows = rows_of("boats")
    assert [row["t"] for row in rows] == [(T0 + n) * 1000 for n in range(3_000)]
    assert DeadLetter.objects.get().line == 3_002 and IngestCounter.objects.get(feed=feed).received == 3_001
    assert not store.folder_of(upload).exists(), "the file is not needed any more"


@pytest.mark.parametrize("point", ["upload.after_reading", "upload.before_delivery", "upload.after_delivery", "ingest.after_append"])
def test_every_row_arrives_once_wherever_the_process_dies(client: APIClient, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    monkeypatch.setattr(loading, "CHUNK_ROWS", 700)
    loaded(client, uploaded(client))
    upload = Upload.objects.get()
    with monkeypatch.context() as armed:
        armed.setenv("VEDETTE_FAILPOINTS", f"{point}=raise@2" if point != "upload.after_reading" else f"{point}=raise")
        armed.setattr(failpoints, "_hits", Counter())
        with pytest.raises(failpoints.FailpointReached):
            run(Loads(), upload)
    upload = run(Loads(), upload)
    assert (upload.state, upload.position, upload.dead) == ("done", 3_000, 1)
    assert [row["t"] for row in rows_of("boats")] == [(T0 + n) * 1000 for n in range(3_000)]
    assert IngestCounter.objects.get(feed=upload.feed).received == 3_001


def test_loading_is_paused_resumed_and_cancelled(client: APIClient, monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Any) -> None:
    monkeypatch.setattr(loading, "CHUNK_ROWS", 100)
    address = uploaded(client)
    loaded(client, address)
    upload, loads = Upload.objects.get(), Loads()
    while upload.position < 300:
        loads.round()
        upload.refresh_from_db()
    assert client.delete(address).status_code == 409, "not while it is being loaded"
    assert client.patch(f"{address}load", {"action": "pause"}, format="json").json()["state"] == "paused"
    for _ in range(3):
        loads.round()
    upload.refresh_from_db()
    assert upload.position == 300
    assert client.patch(f"{address}load", {"action": "resume"}, format="json").json()["state"] == "sending"
    loads.round()
    with django_capture_on_commit_callbacks(execute=True):
        assert client.patch(f"{address}load", {"action": "cancel"}, format="json").json()["state"] == "cancelled"
    loads.round()
    assert len(rows_of("boats")) == 400 and not store.folder_of(upload).exists()
    assert client.patch(f"{address}load", {"action": "resume"}, format="json").status_code == 409


def test_rows_loaded_as_if_now_get_the_time_of_sending(client: APIClient) -> None:
    began = time.time_ns() // 1_000_000
    assert loaded(client, uploaded(client), as_now=True, rate=3_000).status_code == 201
    upload = run(Loads(), Upload.objects.get())
    assert (upload.state, upload.late, upload.dead) == ("done", 0, 1)
    feed, times = Feed.objects.get(name="boats"), [row["t"] for row in rows_of("boats")]
    assert feed.wall_clock and len(times) == 3_000 and times == sorted(times)
    assert began <= times[0] and times[-1] <= time.time_ns() // 1_000_000


def next_file(first: int, count: int, head: str = "id,time,lon,lat,speed,weather") -> bytes:
    rows = "".join(f"{'ab'[n % 2]},{T0 + n},{n / 1000},{n / 2000},{n},fair\n" for n in range(first, first + count))
    return f"{head}\n{rows}".encode()


def into(client: APIClient, address: str, reading: dict[str, Any], feed: str = "boats") -> Any:
    return client.post(f"{address}load", {"into": feed, "reading": reading}, format="json")


def test_a_second_file_is_read_like_the_first_and_old_rows_are_left_out(client: APIClient) -> None:
    # The reader changed the guess for the first file: the second is read in the same way.
    address = uploaded(client)
    chosen = client.post(f"{address}inspection", {"reading": {"zone": "Asia/Tokyo", "time": ["time"]}}, format="json").json()["reading"]
    chosen["attributes"] = [{"source": "speed", "name": "knots", "type": "float"}]
    client.post(f"{address}load", {"feed": {"name": "boats", "lateness": 10_000}, "reading": chosen}, format="json")
    run(Loads(), Upload.objects.get())

    address = uploaded(client, next_file(2_980, 100), "later.csv")
    found = client.post(f"{address}inspection", {"into": "boats"}, format="json").json()
    assert (found["reading"]["zone"], found["reading"]["attributes"]) == ("Asia/Tokyo", chosen["attributes"])
    again = client.post(f"{address}inspection", {"reading": {"decimal": "."}, "into": "boats"}, format="json").json()
    assert again["reading"] == found["reading"], "what was remembered stays when something else is changed"
    compared = found["into"]
    assert (compared["remembered"], compared["missing"], compared["left_out"]) == (True, [], ["weather"])
    assert compared["from"] == (T0 + 2_999) * 1000 - 10_000
    assert into(client, address, found["reading"]).status_code == 201
    assert Feed.objects.count() == 1
    upload = run(Loads(), Upload.objects.get(name="later.csv"))
    # Those of the last ten seconds are duplicates, and no older row is stored again.
    assert (upload.state, upload.late, upload.rows) == ("done", 9, 91)
    assert len(rows_of("boats")) == 3_091 and rows_of("boats")[-1]["knots"] == 3_079.0

    address = uploaded(client, next_file(0, 50), "older.csv")
    into(client, address, client.post(f"{address}inspection", {"into": "boats"}, format="json").json()["reading"])
    upload = run(Loads(), Upload.objects.get(name="older.csv"))
    assert upload.state == "failed" and "only moves forward" in upload.error and len(rows_of("boats")) == 3_091


def test_a_file_without_a_column_of_the_feed_leaves_it_empty_and_another_type_is_refused(client: APIClient) -> None:
    loaded(client, uploaded(client))
    run(Loads(), Upload.objects.get())
    address = uploaded(client, next_file(4_000, 10).replace(b",speed,", b",knots,"), "later.csv")
    found = client.post(f"{address}inspection", {"into": "boats"}, format="json").json()
    assert (found["into"]["missing"], found["into"]["left_out"]) == (["speed"], ["knots", "weather"])
    wrong = {**found["reading"], "crs": "plane", "attributes": [{"source": "knots", "name": "speed", "type": "string"}]}
    faults = into(client, address, wrong).json()["faults"]
    assert [fault["pointer"] for fault in faults] == ["/reading/crs", "/reading/attributes/0"]
    assert into(client, address, found["reading"]).status_code == 201
    other = uploaded(client, next_file(5_000, 10), "last.csv")
    assert into(client, other, found["reading"]).status_code == 409, "one file after the other"
    run(Loads(), Upload.objects.get(name="later.csv"))
    assert [row["speed"] for row in rows_of("boats")[-10:]] == [None] * 10


def test_files_can_be_added_only_to_own_feeds(client: APIClient, people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    loaded(client, uploaded(client))
    stranger = client_of(people.stranger)
    address = uploaded(stranger, name="mine.csv")
    answer = stranger.post(f"{address}inspection", {"into": "boats"}, format="json")
    assert (answer.status_code, answer.json()["faults"][0]["pointer"]) == (400, "/into")
    assert into(stranger, address, {}).json()["faults"][0]["pointer"] == "/into"


def test_an_unreadable_file_fails_with_the_remedy(client: APIClient) -> None:
    data = b"id,seen,lon,lat\n" + b"a,never,1,2\n" * 5
    address = uploaded(client, data)
    assert loaded(client, address).json()["faults"][0]["pointer"] == "/reading/time", "no column tells the time"
    chosen = client.post(f"{address}inspection", {"reading": {"time": ["seen"]}}, format="json").json()["reading"]
    assert client.post(f"{address}load", {"feed": {"name": "boats"}, "reading": chosen}, format="json").status_code == 201
    upload = run(Loads(), Upload.objects.get())
    assert upload.state == "failed" and "choose other columns" in upload.error
    assert client.delete(address).status_code == 204


def test_a_hostile_file_is_refused_in_the_cage(client: APIClient) -> None:
    bomb = b'<!DOCTYPE gpx [<!ENTITY x SYSTEM "file:///etc/passwd">]><gpx><trk><name>&x;</name></trk></gpx>'
    address = uploaded(client, bomb, "walk.gpx")
    answer = client.post(f"{address}inspection", {}, format="json")
    assert answer.status_code == 400 and "root:" not in answer.content.decode()


def test_abandoned_uploads_are_removed(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    uploaded(client)
    folder = store.folder_of(Upload.objects.get())
    store.uploads_expire()
    assert folder.exists()
    monkeypatch.setattr(store, "KEPT", timedelta(0))
    store.uploads_expire()
    assert not Upload.objects.exists()


def test_an_upload_that_is_resumed_meanwhile_stays_and_the_others_are_removed(client: APIClient, monkeypatch: pytest.MonkeyPatch) -> None:
    from datetime import timedelta

    uploaded(client)
    uploaded(client)
    resumed = Upload.objects.order_by("pk")[0].pk
    remove = store.upload_delete

    def resume_first(*, upload: Upload) -> None:
        Upload.objects.filter(pk=resumed).update(state="reading")
        remove(upload=upload)

    monkeypatch.setattr(store, "KEPT", timedelta(0))
    monkeypatch.setattr(store, "upload_delete", resume_first)
    store.uploads_expire()
    assert [upload.pk for upload in Upload.objects.all()] == [resumed]


def test_coordinates_in_one_column_are_read_in_first_and_later_files(client: APIClient) -> None:
    points = [f"{wkt},{wkb}" for wkt, wkb in zip(["POINT (13.4 52.5)", "POINT (13.5 52.5)"], shapely.to_wkb(POINTS, hex=True), strict=True)]
    for first, name in ((0, "boats.csv"), (10, "later.csv")):
        lines = "".join(f"a,{T0 + first + n},{point}\n" for n, point in enumerate(points))
        address = uploaded(client, f"id,time,geom,other\n{lines}".encode(), name)
        body = {} if first else {"reading": {"x": "other", "place_format": "wkb"}}
        found = client.post(f"{address}inspection", {**body, **({"into": "boats"} if first else {})}, format="json").json()
        assert [found["reading"][key] for key in ("x", "y", "place_format")] == ["other", "", "wkb"] and found["good"] == 2
        if first:
            assert into(client, address, found["reading"]).status_code == 201
        else:
            client.post(f"{address}load", {"feed": {"name": "boats", "lateness": 0}, "reading": found["reading"]}, format="json")
        run(Loads(), Upload.objects.get(name=name))
    assert [(row["x"], row["y"]) for row in rows_of("boats")] == [(13.4, 52.5), (13.5, 52.5)] * 2


def test_nothing_is_loaded_before_the_zone_of_utm_is_chosen(client: APIClient) -> None:
    lines = "".join(f"a,{T0 + n},391000.5,5820000.{n}\n" for n in range(5))
    address = uploaded(client, f"id,time,easting,northing\n{lines}".encode())
    answer = loaded(client, address)
    assert answer.status_code == 400 and answer.json()["faults"] == [
        {"pointer": "/reading/crs", "message": "The coordinates look like UTM, and the file does not state the zone: choose it."}
    ]
    found = client.post(f"{address}inspection", {"reading": {"crs": "EPSG:32633"}}, format="json").json()
    assert client.post(f"{address}load", {"feed": {"name": "boats"}, "reading": found["reading"]}, format="json").status_code == 201
    assert run(Loads(), Upload.objects.get()).state == "done" and rows_of("boats")[0]["x"] == pytest.approx(13.39, abs=0.01)


def test_a_fault_far_into_a_file_is_a_dead_letter_with_its_line(client: APIClient) -> None:
    rows = [f"a,{T0 + n},13.5,52.5,some words about it".encode() for n in range(60_000)]
    rows[40_000], rows[50_000] = f'a,{T0},13.5,52.5,"x'.encode(), f"a,{T0},13.5,52.5,Genève".encode("latin-1")
    assert loaded(client, uploaded(client, b"id,time,lon,lat,note\n" + b"\n".join(rows) + b"\n")).status_code == 201
    assert run(Loads(), Upload.objects.get()).dead == 2
    letters = {letter.line: letter.detail for letter in DeadLetter.objects.all()}
    assert "a quote is opened and not closed" in letters[40_002] and "choose another encoding" in letters[50_002]


def test_rows_that_cannot_be_used_are_explained_in_the_language_of_the_user(client: APIClient, people: SimpleNamespace) -> None:
    people.operator.language = "de"
    people.operator.save()
    address = uploaded(client, CSV.splitlines(keepends=True)[0] + b"a,yesterday,1,1,1\n")
    found = client.post(f"{address}inspection", {"reading": {"time": ["time"], "time_format": "%d.%m.%Y %H:%M"}}, format="json").json()
    assert "enthält keine Zeit" in found["faults"][0]["problem"]
