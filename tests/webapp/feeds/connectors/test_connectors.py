"""Connectors from the API to the log: tested, set up, run against real servers on
loopback, killed, and refused."""

from __future__ import annotations

import json
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connection
from pyais import encode_dict
from rest_framework.test import APIClient
from websockets.sync.server import serve

from engine.model.faults import Refused
from engine.sinks.live.kinds import sink_kinds
from engine.sources.live.kinds import source_kinds
from tests.webapp.feeds.connectors.lives import WAIT_S, rows_of, run_through_kills, wait_for
from webapp.connectors import services
from webapp.connectors.running import Connectors
from webapp.connectors.services import connector_create, connector_update, settings_of
from webapp.entities.models import Record
from webapp.feeds.models import Connector, DeadLetter, Feed
from webapp.feeds.services import feed_create
from webapp.platform.folders import ROOT
from webapp.queries.services import query_register

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

BORDER = {"family": "border", "version": 1, "region": {"type": "Polygon", "coordinates": [[[2, 2], [8, 2], [8, 8], [2, 8], [2, 2]]]}}
POSITION = b"!AIVDM,1,1,,A,13HOI:0P0000VOHLCnHQKwvL05Ip,0*23\r\n"
BROKEN = b"!AIVDM,1,1,,A,13HOI:0P0000VOHLCnHQKwvL05Ip,0*24\r\n"


@pytest.fixture(autouse=True)
def allowed(settings: Any, tmp_path: Path) -> None:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    settings.VAR = tmp_path


@pytest.fixture
def sea(people: SimpleNamespace) -> Feed:
    columns = {"speed": "float", "msg_type": "int", "name": "string"}
    return feed_create(owner=people.owner, name="sea", title="Sea", crs="geographic", team=people.harbour, columns=columns, ahead=None)


@contextmanager
def running() -> Iterator[None]:
    """All connectors, as the process runs them."""
    end = threading.Event()
    thread = threading.Thread(target=_serve, args=(end,))
    thread.start()
    try:
        yield
    finally:
        end.set()
        thread.join()


def _serve(end: threading.Event) -> None:
    try:
        Connectors().serve(end)
    finally:
        connection.close()


@contextmanager
def receiver(data: bytes) -> Iterator[int]:
    """Sends `data` to each client that connects, and keeps the connection."""
    server = socket.create_server(("127.0.0.1", 0))
    peers: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                peer, _ = server.accept()
                peers.append(peer)
                peer.sendall(data)
            except OSError:
                return

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield int(server.getsockname()[1])
    finally:
        server.shutdown(socket.SHUT_RDWR)
        server.close()
        for peer in peers:
            peer.close()


def test_a_receiver_is_tested_set_up_and_followed(people: SimpleNamespace, sea: Feed, client_of: Callable[..., APIClient]) -> None:
    client = client_of(people.operator)
    kinds = {kind["name"]: kind for kind in client.get("/api/v1/connectors/kinds").json()}
    assert [field["name"] for field in kinds["ais-tcp"]["fields"]] == ["host", "port", "merge_seconds"] and "missing" in kinds["ais-tcp"]["guarantee"]
    with receiver(POSITION + BROKEN + POSITION.replace(b",A,", b",B,").replace(b"*23", b"*20")) as port:
        body = {"feed": "sea", "kind": "ais-tcp", "settings": {"host": "127.0.0.1", "port": port}}
        tried = client.post("/api/v1/connectors/trial", body).json()
        assert tried["records"][0]["mmsi"] == tried["rows"][0]["entity"] and "checksum" in tried["dead"][0]["detail"] and rows_of("sea") == []
        made = client.post("/api/v1/connectors/", {**body, "name": "mast"}).json()
        assert made["settings"] == {"host": "127.0.0.1", "port": port, "merge_seconds": 10} and made["editable"]
        with running():
            wait_for(lambda: rows_of("sea"), "a row comes")
            shown = wait_for(
                lambda: (found := client.get(f"/api/v1/connectors/{made['id']}/").json())["state"] == "running" and found["rate"] > 0 and found,
                "it says how it goes",
            )
    assert (shown["messages"], shown["merged"], shown["rows"], shown["dead"]) == (3, 1, 1, 1)
    row = rows_of("sea")[0]
    assert abs(row["t"] - time.time() * 1000) < 600_000 and row["msg_type"] == 1
    letter = DeadLetter.objects.get()
    assert (letter.reason, letter.source, letter.row["text"]) == ("malformed", "connector:mast", BROKEN.decode().strip())
    seen = client_of(people.viewer).get("/api/v1/connectors/?feed=sea").json()["results"][0]
    assert seen["rows"] == 1 and seen["settings"] == {} and not seen["editable"], "where it goes is for those who set it up"
    assert Connector.objects.get().state == "stopped"


def test_records_without_places_are_guessed_for_a_planar_feed_too() -> None:
    """Tag reports of RFID readers have no position: the guess has to fit the feed."""
    record = {"epc": "3074257BF7194E4000001A85", "antenna": "Dock 1", "time": "2026-01-02T03:04:05Z", "received": 1}
    shown = services._meaning([record], {}, source_kinds()["mqtt"], Feed(name="dock", crs="planar", time="ms", lateness=0, columns={}))
    assert (shown["faults"], shown["reading"]["crs"], len(shown["rows"])) == ([], "plane", 1)


def test_editors_cannot_send_a_connectors_secret_to_another_address(
    people: SimpleNamespace, sea: Feed, client_of: Callable[..., APIClient], settings: Any
) -> None:
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    client = client_of(people.operator)
    there = {"url": "https://harbour.example.org/ships", "path": "ships"}
    body = {"feed": "sea", "kind": "poll", "name": "harbour", "enabled": False, "settings": {**there, "authorization": "Bearer 17"}}
    made = client.post("/api/v1/connectors/", body, format="json").json()
    address = f"/api/v1/connectors/{made['id']}/"
    assert client.patch(address, {"settings": {**there, "path": "ships[?on]"}}, format="json").status_code == 200
    assert settings_of(Connector.objects.get())["authorization"] == "Bearer 17"
    with socket.create_server(("127.0.0.1", 0)) as mine:
        elsewhere = {**there, "url": f"http://127.0.0.1:{mine.getsockname()[1]}/"}
        trial = {"feed": "sea", "kind": "poll", "connector": made["id"], "settings": elsewhere}
        for answer in (client.patch(address, {"settings": elsewhere}, format="json"), client.post("/api/v1/connectors/trial", trial, format="json")):
            assert answer.status_code == 400 and answer.json()["faults"][0]["pointer"] == "/settings/authorization"
        mine.settimeout(0.2)
        with pytest.raises(TimeoutError):
            mine.accept()
        assert client.patch(address, {"settings": {**elsewhere, "authorization": ""}}, format="json").status_code == 200
    assert not settings_of(Connector.objects.get()).get("authorization")


def test_a_websocket_without_a_header_is_followed(people: SimpleNamespace, sea: Feed, client_of: Callable[..., APIClient]) -> None:
    def talk(socket: Any) -> None:
        socket.send(json.dumps({"entity": "drone", "t": 1_700_000_000_000, "x": 11.0, "y": 54.0}))
        socket.recv()

    with serve(talk, "127.0.0.1", 0) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings = {"url": f"ws://127.0.0.1:{server.socket.getsockname()[1]}/"}
        body = {"feed": "sea", "kind": "websocket", "name": "drones", "settings": settings}
        assert client_of(people.operator).post("/api/v1/connectors/", body, format="json").status_code == 201
        with running():
            wait_for(lambda: rows_of("sea"), lambda: Connector.objects.get().last_error)


@pytest.mark.parametrize("kind", [*source_kinds().values(), *sink_kinds().values()], ids=lambda kind: str(kind.name))
def test_a_saved_connector_has_all_settings_of_its_kind(kind: Any, sea: Feed) -> None:
    """Whether or not they were given: a source looks each of them up."""
    needed = {"host": "ais.example.org", "port": 10110, "url": "https://e.example.org/", "servers": "k.example.org:9092", "topic": "t"}
    if kind.name == "websocket":
        needed["url"] = "wss://e.example.org/"
    given = {one.name: needed[one.name] for one in kind.fields if one.name in needed}
    made = connector_create(feed=sea, name="one", kind=kind.name, settings=given)
    assert settings_of(Connector.objects.get(pk=made.pk)).keys() == {one.name for one in kind.fields}


def test_unused_secrets_are_deleted_and_not_asked_for(sea: Feed) -> None:
    settings = {"servers": "127.0.0.1:1", "topic": "fleet", "security": "sasl_ssl", "user": "mast", "password": "secret", "ca": "PEM"}
    made = connector_create(feed=sea, name="k", kind="kafka", settings=settings)
    plain = {name: value for name, value in settings.items() if name != "password"} | {"security": "plaintext"}
    found = settings_of(connector_update(connector=made, settings=plain))
    assert (found["security"], found["user"], found["ca"], found.get("password", "")) == ("plaintext", "", "", "")


def test_connectors_of_former_users_can_be_switched_off(sea: Feed) -> None:
    query = query_register(owner=sea.owner, feed=sea, name="fast", specification=BORDER)
    settings = {"host": "127.0.0.1", "topic": "answers", "queries": str(query.pk)}
    made = connector_create(feed=sea, name="out", kind="mqtt-answers", settings=settings, set_by=sea.owner)
    Connector.objects.update(set_by=None)
    assert not connector_update(connector=made, enabled=False).enabled


def test_connectors_share_database_connections_and_are_limited_per_owner(sea: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MOST_OF_AN_OWNER", 12)
    with receiver(POSITION) as port:
        for number in range(12):
            connector_create(feed=sea, name=f"mast {number}", kind="ais-tcp", settings={"host": "127.0.0.1", "port": port})
        with pytest.raises(Refused, match="at most 12 connectors together"):
            connector_create(feed=sea, name="one more", kind="ais-tcp", settings={"host": "127.0.0.1", "port": port})
        with running():
            wait_for(lambda: Connector.objects.filter(state="running").count() == 12, "all run")
            open_now = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"

            def others() -> int:
                with connection.cursor() as cursor:
                    cursor.execute(open_now)
                    return int(cursor.fetchone()[0])

            wait_for(lambda: others() <= 4, "most of them hold no connection")


def test_names_and_sizes_of_ships_reach_the_registry(sea: Feed) -> None:
    static = {"type": 5, "mmsi": "244000001", "shipname": "AURORA", "ship_type": 60, "to_bow": 20, "to_stern": 100}
    sentences = [line.encode() + b"\r\n" for line in encode_dict(static)]
    with receiver(b"".join(sentences)) as port:
        connector_create(feed=sea, name="mast", kind="ais-tcp", settings={"host": "127.0.0.1", "port": port})
        with running():
            record = wait_for(Record.objects.filter(feed=sea).first, "the ship is in the registry")
    assert (record.entity, record.name, record.attributes) == ("244000001", "AURORA", {"length": "120", "ship_type": "60", "type": "passenger"})
    assert rows_of("sea") == [], "no event was made of it"


def test_faults_of_connectors_are_named(people: SimpleNamespace, sea: Feed, feed: Feed, client_of: Callable[..., APIClient], settings: Any) -> None:
    client = client_of(people.operator)

    def faults(**given: Any) -> dict[str, str]:
        answer = client.post("/api/v1/connectors/", {"feed": "sea", "name": "mast", "kind": "ais-udp", "settings": {"port": 10110}, **given})
        assert answer.status_code == 400, answer.json()
        return {fault["pointer"]: fault["message"] for fault in answer.json()["faults"]}

    assert "ais-tcp" in faults(kind="ais")["/kind"]
    assert set(faults(settings={"port": 0, "hots": "x"})) == {"/settings/port", "/settings/hots"}
    assert "planar" in faults(feed="yard")["/reading/crs"]
    assert (
        "speed" in faults(reading={"time": ["received"], "attributes": [{"source": "a", "name": "b", "type": "int"}]})["/reading/attributes/0/name"]
    )
    settings.WEBHOOK_NETWORKS, settings.CONNECTOR_PORTS = [], []
    trial = {"feed": "sea", "kind": "ais-tcp", "settings": {"host": "127.0.0.1", "port": 22}}
    assert "VEDETTE_WEBHOOK_NETWORKS" in client.post("/api/v1/connectors/trial", trial).json()["faults"][0]["message"]
    servers = "127.0.0.1:9092, 192.0.2.1:9092"
    for kind, given, field in (
        ("ais-tcp", trial["settings"], "host"),
        ("websocket", {"url": "ws://[::1]:80/"}, "url"),
        ("kafka", {"servers": servers, "topic": "t"}, "servers"),
    ):
        assert "VEDETTE_WEBHOOK_NETWORKS" in faults(kind=kind, settings=given)[f"/settings/{field}"]
    trial = {"feed": "sea", "kind": "ais-udp", "settings": {"port": 10110}}
    assert "VEDETTE_CONNECTOR_PORTS" in client.post("/api/v1/connectors/trial", trial).json()["faults"][0]["message"]
    assert client_of(people.viewer).post("/api/v1/connectors/trial", trial).status_code == 403
    outside = {"feed": "sea", "name": "mast", "kind": "ais-tcp", "settings": {"host": "8.8.8.8", "port": 22}, "enabled": False}
    made = client.post("/api/v1/connectors/", outside)
    assert made.status_code == 201, made.json()
    place = f"/api/v1/connectors/{made.json()['id']}/"
    assert client.patch(place, {"settings": {"host": "10.0.0.1", "port": 22}}).json()["faults"][0]["pointer"] == "/settings/host"
    assert client_of(people.stranger).post("/api/v1/connectors/", trial).status_code == 400, "the feed is not there for other users"


def test_a_port_that_connectors_may_not_listen_on_is_refused_when_it_is_saved(
    people: SimpleNamespace, sea: Feed, client_of: Callable[..., APIClient], settings: Any
) -> None:
    client = client_of(people.operator)
    settings.CONNECTOR_PORTS = ["10110-10119", "20000"]
    made = [
        client.post("/api/v1/connectors/", {"feed": "sea", "name": f"mast {port}", "kind": kind, "settings": {"port": port}, "enabled": False})
        for kind, port in (("ais-udp", 10109), ("ais-tcp-server", 10120), ("ais-udp", 20000))
    ]
    assert [one.status_code for one in made] == [400, 400, 201]
    ((fault,), _) = (one.json()["faults"] for one in made[:2])
    assert fault["pointer"] == "/settings/port" and all(text in fault["message"] for text in ("10110-10119, 20000", "VEDETTE_CONNECTOR_PORTS"))
    place = f"/api/v1/connectors/{made[2].json()['id']}/"
    assert client.patch(place, {"settings": {"port": 80}}).json()["faults"][0]["pointer"] == "/settings/port"
    settings.CONNECTOR_PORTS = []
    assert "may not listen" in client.patch(place, {"settings": {"port": 20000}}).json()["faults"][0]["message"]
    assert client.patch(place, {"enabled": False}).status_code == 200, "it can be switched off where its port is no longer allowed"
    outside = {"feed": "sea", "name": "away", "kind": "ais-tcp", "settings": {"host": "8.8.8.8", "port": 80}, "enabled": False}
    assert client.post("/api/v1/connectors/", outside).status_code == 201, "a port that is connected to is another matter"


def test_a_failed_test_names_the_setting_that_it_is_due_to(
    people: SimpleNamespace, sea: Feed, client_of: Callable[..., APIClient], settings: Any
) -> None:
    settings.CONNECTOR_PORTS = []
    with receiver(POSITION) as port:
        pass
    away = {"host": "127.0.0.1", "port": port}
    for kind, given, name in (
        ("ais-tcp", away, "host"),
        ("ais-udp", {"port": 10110}, "port"),
        ("mqtt", {**away, "topic": "t"}, "host"),
        ("mqtt", {**away, "topic": "t", "tls": True, "ca": "none"}, "ca"),
        ("poll", {"url": f"http://127.0.0.1:{port}/"}, "url"),
        ("websocket", {"url": f"ws://127.0.0.1:{port}/"}, "url"),
        ("kafka", {"servers": "10.0.0.1:9092", "topic": "t"}, "servers"),
    ):
        answer = client_of(people.operator).post("/api/v1/connectors/trial", {"feed": "sea", "kind": kind, "settings": given})
        assert [fault["pointer"] for fault in answer.json()["faults"]] == [f"/settings/{name}"], (kind, answer.json())


def test_the_documented_connector_is_taken(people: SimpleNamespace, client_of: Callable[..., APIClient]) -> None:
    feed_create(owner=people.owner, name="fleet", title="f", crs="geographic", team=people.harbour)
    (example,) = (block for block in re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "connectors.md").read_text(), re.S) if '"kind"' in block)
    client = client_of(people.operator)
    made = client.post("/api/v1/connectors/", json.loads(example), format="json")
    assert made.status_code == 201, made.content
    assert "password" not in made.json()["settings"]
    tried = client.post("/api/v1/connectors/trial", json.loads(example), format="json")
    assert tried.status_code == 400 and [fault["pointer"] for fault in tried.json()["faults"]] == ["/settings/host"], "it is only an example"


def test_a_connector_whose_peer_is_away_waits_and_comes_back(sea: Feed) -> None:
    with receiver(POSITION) as port:
        pass
    mast = connector_create(feed=sea, name="mast", kind="ais-tcp", settings={"host": "127.0.0.1", "port": port})
    with running():
        waiting = wait_for(lambda: Connector.objects.filter(state="backoff", failures__gt=1).first(), "it tries more than once")
        assert "cannot be reached" in waiting.last_error and waiting.next_try_at > waiting.last_error_at
        with receiver(POSITION) as other:
            connector_update(connector=mast, settings={"host": "127.0.0.1", "port": other})
            wait_for(lambda: rows_of("sea"), "the new address is followed at once")
        connector_update(connector=mast, enabled=False)
        wait_for(lambda: Connector.objects.get().state == "stopped", "it is switched off")


@pytest.fixture
def numbered(tmp_path: Path) -> Path:
    """The connector of docs/connectors.md as an installed package; its folder."""
    _, text = (ROOT / "docs" / "connectors.md").read_text().split("## A connector of your own")
    code = re.search(r"```python\n(.*?)```", text, re.S)
    assert code is not None and code[1].count("\n") <= 45
    (tmp_path / "numbered_source.py").write_text(code[1])
    info = tmp_path / "numbered_source-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numbered-source\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[vedette.sources]\nnumbered = numbered_source:KIND\n")
    return tmp_path


class NumberedServer:
    """A server of numbered lines; each client gets them from the number that it
    asks for, a few at a time."""

    def __init__(self, lines: list[bytes]) -> None:
        self.lines, self.asked = lines, list[int]()
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self) -> None:
        while True:
            try:
                peer, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.send, args=(peer,), daemon=True).start()

    def send(self, peer: socket.socket) -> None:
        try:
            begin = int(peer.makefile().readline().removeprefix("FROM "))
            self.asked.append(begin)
            for at in range(begin, len(self.lines), 7):
                peer.sendall(b"\n".join(self.lines[at : at + 7]) + b"\n")
                time.sleep(0.002)
            time.sleep(WAIT_S)
        except OSError:
            return


KILLED_AT = ("connector.after_delivery=kill@5",)
"""Behind the rows in the log and their offset in PostgreSQL; test_killed.py
has the moment between both."""


def test_a_source_of_a_third_party_is_stored_exactly_once_through_kills(feed: Feed, numbered: Path, settings: Any) -> None:
    lines = [json.dumps({"entity": "e", "t": 1_000 + n, "x": 1, "y": 2, "speed": n}).encode() for n in range(2_000)]
    lines[500], lines[501] = b"[1, 2]", b'{"entity": "e", "t": "never"}'
    server = NumberedServer(lines)
    Connector.objects.create(feed=feed, name="lines", kind="numbered", settings={"host": "127.0.0.1", "port": server.port})
    settings.EVENT_LOG_ROOT = numbered / "log-of-events"
    lives = run_through_kills(numbered, KILLED_AT, lambda lives: Connector.objects.get().offset == 2_000, PYTHONPATH=str(numbered))
    server.server.close()
    assert lives == len(KILLED_AT) + 1
    assert Counter(row["speed"] for row in rows_of("yard")) == Counter(n for n in range(2_000) if n not in (500, 501))
    connector = Connector.objects.get()
    assert (connector.messages, connector.rows, connector.dead) == (2_000, 1_998, 2)
    assert sorted(DeadLetter.objects.values_list("reason", flat=True)) == ["malformed", "wrong_type"]
    assert server.asked[0] == 0 and len(server.asked) == lives and sorted(server.asked) == server.asked
