"""The live socket with the real web server and publisher, over the network."""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect

from tests.webapp.live.pages import session_of
from webapp.platform.folders import ROOT, next_free_port
from webapp.platform.health import healthy
from webapp.platform.postgres import with_database
from webapp.platform.web_server import web_command

pytestmark = [pytest.mark.services, pytest.mark.django_db(transaction=True)]

CONNECTION_AGE_S = 1
"""The maximum age of the publisher's connection: it is replaced several times while a test runs."""


TRIES = 3
"""The server waits a second for the closing handshake; a slower client loses the error
that came before the close."""
HEARD_S = 60
"""A busy machine opens 120 sockets at once in more than twenty seconds."""


class Served:
    """The web server and the publisher over the test database."""

    def __init__(self, folder: Path, redis_url: str) -> None:
        self.folder = folder
        reservation = next_free_port(9300 + os.getpid() % 400)
        self.port = reservation.port
        reservation.release()
        url = with_database(os.environ["DATABASE_URL"], connection.settings_dict["NAME"])
        self.environment = {
            **os.environ,
            "DATABASE_URL": f"{url}{'&' if '?' in url else '?'}conn_max_age={CONNECTION_AGE_S}",
            "REDIS_URL": redis_url,
            "VEDETTE_VAR": str(folder),
        }
        self.children = [
            self._start(*web_command(self.port), name="web"),
            self._start(sys.executable, "manage.py", "publish", name="publisher"),
        ]

    def _start(self, *command: str, name: str) -> subprocess.Popen[bytes]:
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def wait(self) -> None:
        give_up = time.monotonic() + 60
        while not healthy(self.port):
            assert time.monotonic() < give_up, self.log("web")
            time.sleep(0.1)

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(errors="replace")

    def socket(self, session: str, *, origin: str | None = None) -> ClientConnection:
        """A socket as the browser of this session opens it."""
        return connect(
            f"ws://127.0.0.1:{self.port}/ws/live/",
            origin=origin or f"http://127.0.0.1:{self.port}",  # type: ignore[arg-type]
            additional_headers={"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"},
            open_timeout=30,
            max_size=None,
        )

    def close(self) -> None:
        for child in self.children:
            child.terminate()
        for child in self.children:
            child.wait(timeout=20)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, django_db_setup: None, redis_url: str) -> Iterator[Served]:
    made = Served(tmp_path_factory.mktemp("served"), redis_url)
    try:
        made.wait()
        yield made
    finally:
        made.close()


def say(socket: ClientConnection, **frame: Any) -> None:
    socket.send(json.dumps({"type": "subscribe", "feed": "yard", **frame}))


def hear(socket: ClientConnection, kind: str) -> dict[str, Any]:
    while True:
        frame: dict[str, Any] = json.loads(socket.recv(timeout=HEARD_S))
        if frame["type"] == kind:
            return frame


def closed(socket: ClientConnection, seconds: float = 10.0) -> int:
    """The code with which the server closes the socket."""
    give_up = time.monotonic() + seconds
    try:
        while True:
            socket.recv(timeout=max(0.0, give_up - time.monotonic()))
    except ConnectionClosed as end:
        assert end.rcvd is not None, "the connection was cut"
        return end.rcvd.code


def refusal(socket: ClientConnection) -> tuple[str | None, int]:
    """The error that the server sends before it closes the socket (null if the client
    dropped it), and the close code."""
    said = None
    with contextlib.suppress(ConnectionClosed):
        said = hear(socket, "error")["code"]
    return said, closed(socket)


def open_all(served: Served, sessions: list[str], opened: ExitStack) -> list[ClientConnection]:
    """Twenty sockets for each session, opened concurrently, each with its snapshot."""

    def open_one(session: str) -> ClientConnection:
        socket = opened.enter_context(served.socket(session))
        say(socket)
        hear(socket, "snapshot")
        return socket

    with ThreadPoolExecutor(120) as pool:
        return list(pool.map(open_one, [session for session in sessions for _ in range(20)]))


def test_a_reload_frees_the_sockets_of_a_user(served: Served, people: SimpleNamespace, feed: Any) -> None:
    sessions = [session_of(user) for user in (people.owner, people.viewer, people.analyst, people.operator, people.admin, people.root)]
    with ExitStack() as opened:
        for socket in open_all(served, sessions, opened):
            socket.socket.close()
        assert len(open_all(served, sessions, opened)) == 120


def test_sockets_above_the_limit_are_refused_with_the_reason(served: Served, people: SimpleNamespace, feed: Any) -> None:
    session = session_of(people.viewer)
    with ExitStack() as opened:
        open_all(served, [session], opened)
        assert ("too-many", 4429) in (refusal(opened.enter_context(served.socket(session))) for _ in range(TRIES))


def test_frames_too_long_or_too_frequent_close_the_socket_with_a_code(served: Served, people: SimpleNamespace, feed: Any) -> None:
    session = session_of(people.viewer)
    with served.socket(session) as socket:
        socket.send("x" * 65_537)
        assert closed(socket) == 4413
    with served.socket(session) as socket:
        socket.send(b"x")
        assert closed(socket) == 4413
    with served.socket(session) as socket:
        for _ in range(300):
            socket.send(json.dumps({"type": "ack", "feed": "yard", "seq": 1}))
        assert closed(socket) == 4429
    assert "Traceback" not in served.log("web")


def test_idle_sockets_stay_open(served: Served, people: SimpleNamespace, feed: Any) -> None:
    """The read timeout of Redis used to equal its blocking time of five seconds: without a
    publisher all sockets were lost repeatedly."""
    session = session_of(people.viewer)
    with ExitStack() as opened:
        served.children[1].send_signal(signal.SIGSTOP)
        opened.callback(served.children[1].send_signal, signal.SIGCONT)
        quiet = [opened.enter_context(served.socket(session)) for _ in range(20)]
        time.sleep(6.5)
        for socket in quiet:
            with pytest.raises(TimeoutError):
                socket.recv(timeout=0)
    assert "Traceback" not in served.log("web")


def test_a_stopping_server_closes_sockets_with_service_restart(
    tmp_path: Path, redis_url: str, people: SimpleNamespace, feed: Any, django_db_setup: None
) -> None:
    ending = Served(tmp_path, redis_url)
    with ExitStack() as opened:
        opened.callback(ending.close)
        ending.wait()
        sockets = open_all(ending, [session_of(people.owner)], opened)
        # Immediately, while daphne still lists the requests that became sockets.
        ending.children[0].terminate()
        assert [closed(socket) for socket in sockets] == [4503] * 20
        ending.children[0].wait(timeout=20)
    assert "Traceback" not in ending.log("web")


NAMES: list[Any] = ["\x00", "yard\x00", "\ud800", "a" * 200, "", "../etc", "Y", "a b", 7, None, ["yard"], {"a": 1}]
NUMBERS: list[Any] = [10**400, -(2**70), 1.5, True, "7", [1], float("nan"), "\x00"]


def test_no_frame_crashes_the_socket_or_leaks_a_slot(served: Served, people: SimpleNamespace, feed: Any) -> None:
    """Each of these used to end the socket with a traceback, and after twenty of
    them its user was locked out."""
    session = session_of(people.viewer)
    strange = [{"feed": name} for name in NAMES] + [{name: number} for number in NUMBERS for name in ("since", "from", "queries", "bbox")]
    strange += [{"bbox": [0, 0, 1, number]} for number in NUMBERS] + [{"queries": [number]} for number in NUMBERS]
    strange += [{"feed": name, "type": kind} for name in NAMES for kind in ("view", "unsubscribe", "ack")]
    strange += [{"type": "view", "bbox": [0, 0, 1, number]} for number in NUMBERS] + [{"type": "ack", "seq": number} for number in NUMBERS]
    assert len(strange) < 200, "more would be too many at once"
    with served.socket(session) as socket:
        for frame in strange:
            say(socket, **frame)
        say(socket)
        hear(socket, "snapshot")
    assert "Traceback" not in served.log("web")


def test_logging_out_closes_the_socket_though_the_publisher_has_a_new_connection(served: Served, people: SimpleNamespace, feed: Any) -> None:
    session = session_of(people.viewer)
    with served.socket(session) as socket, served.socket(session_of(people.owner)) as other:
        for one in (socket, other):
            say(one)
            hear(one, "status")
        time.sleep(4 * CONNECTION_AGE_S)
        client = Client()
        client.cookies[settings.SESSION_COOKIE_NAME] = session
        started = time.monotonic()
        client.post("/logout/")
        assert closed(socket) == 4401
        assert time.monotonic() - started < 2.0
        hear(other, "status")


@pytest.mark.parametrize("origin", ["http://127.0.0.1:1", "https://127.0.0.1:{port}", "http://localhost:{port}", "http://127.0.0.1", "null"])
def test_pages_of_other_origins_are_refused(served: Served, people: SimpleNamespace, origin: str) -> None:
    session = session_of(people.viewer)
    with ExitStack() as opened:
        sockets = (opened.enter_context(served.socket(session, origin=origin.format(port=served.port))) for _ in range(TRIES))
        assert ("wrong-origin", 4403) in map(refusal, sockets)


SMALL = 10
HEAD_S = 3.0
"""How long a busy server may take to answer after a request's head."""


def posted(served: Served, path: str, size: int, **headers: str) -> tuple[int, int]:
    """The status of the response to a body of zeros, and how many bytes of
    it had been read by then."""
    with socket.create_connection(("127.0.0.1", served.port), timeout=20) as connection:
        lines = {"Host": f"127.0.0.1:{served.port}", "Content-Length": str(size), "Content-Type": "application/json", **headers}
        head = f"POST {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in lines.items()) + "\r\n"
        connection.sendall(head.encode())
        sent = 0
        # A server that reads the body first never answers after the head alone.
        timeout_s = HEAD_S if size > SMALL else 0
        while sent < size and not select.select([connection], [], [], 0 if sent else timeout_s)[0]:
            try:
                sent += connection.send(b"0" * min(65_536, size - sent))
            except (BrokenPipeError, ConnectionResetError):
                break
        answer = connection.recv(65_536)
    return int(answer.split()[1]), sent


@pytest.mark.parametrize("path", ["/login/", "/api/v1/regions/import", "/api/v1/feeds/yard/events", "/admin/login/"])
def test_a_large_anonymous_body_is_refused_before_it_is_read(served: Served, path: str) -> None:
    assert posted(served, path, 60_000_000) == (401, 0)
    assert posted(served, path, SMALL)[0] in (302, 401, 403, 404)


def test_a_body_above_all_limits_is_refused(served: Served) -> None:
    assert posted(served, "/api/v1/regions/import", 200_000_000, Authorization="Bearer x") == (413, 0)
