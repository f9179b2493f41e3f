"""Jars are fetched once, and only if they are complete and have the digests of their lock."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from webapp.platform import jars

CONTENT = b"classes"


class Central(BaseHTTPRequestHandler):
    asked: list[str]
    refusals: int

    def do_GET(self) -> None:
        self.asked.append(self.path)
        kind = type(self)
        if kind.refusals:
            kind.refusals -= 1
            self.send_error(503)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT)

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def central(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Central]]:
    Central.asked, Central.refusals = [], 0
    with ThreadingHTTPServer(("127.0.0.1", 0), Central) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setattr(jars, "CENTRAL", f"http://127.0.0.1:{server.server_address[1]}")
        monkeypatch.setattr(jars, "LOCKS", tmp_path)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))
        locked(tmp_path, hashlib.sha256(CONTENT).hexdigest())
        yield Central
        server.shutdown()


def locked(folder: Path, *digests: str) -> None:
    (folder / "tool.lock").write_text("".join(f"org.tool:part{n}:1.2 {digest}\n" for n, digest in enumerate(digests)))


def test_concurrent_callers_fetch_a_jar_once(central: type[Central]) -> None:
    with ThreadPoolExecutor(3) as threads:
        folders = set(threads.map(lambda _: jars.jars("tool"), range(3)))
    assert central.asked == ["/org/tool/part0/1.2/part0-1.2.jar"]
    (folder,) = folders
    assert [(path.name, path.read_bytes()) for path in folder.iterdir()] == [("part0-1.2.jar", CONTENT)]


def test_transient_server_errors_are_retried(central: type[Central]) -> None:
    central.refusals = jars.TRIES - 1
    assert jars.jars("tool").is_dir()


def test_a_failed_download_names_the_file_and_the_next_call_tries_again(central: type[Central]) -> None:
    central.refusals = jars.TRIES
    with pytest.raises(OSError, match=r"part0-1\.2\.jar: HTTP Error 503"):
        jars.jars("tool")
    assert jars.jars("tool").is_dir()


def test_a_jar_with_another_digest_is_refused(central: type[Central], tmp_path: Path) -> None:
    locked(tmp_path, hashlib.sha256(CONTENT).hexdigest(), hashlib.sha256(b"others").hexdigest())
    with pytest.raises(OSError, match=r"org\.tool:part1:1\.2 has not the SHA-256"):
        jars.jars("tool")
    assert not [path for path in (tmp_path / "home").rglob("*.jar") if ".part" not in str(path)]


@pytest.mark.parametrize("program", ["kafka", "s3proxy"])
def test_each_line_of_a_lock_is_a_jar_with_its_digest(program: str) -> None:
    lines = (Path(jars.__file__).parent / "jar_locks" / f"{program}.lock").read_text().splitlines()
    assert lines == sorted(set(lines))
    for line in lines:
        coordinates, digest = line.split()
        assert coordinates.count(":") == 2 and len(bytes.fromhex(digest)) == 32
