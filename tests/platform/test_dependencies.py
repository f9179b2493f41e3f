"""The audit of the project's dependencies: real auditors, with an index of the test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from webapp.platform.dependencies import node_audit, python_audit, write_sboms

pytestmark = pytest.mark.services
REQUIREMENTS = f"vulnerable-thing==1.0 --hash=sha256:{'0' * 64}\n"


class Index(BaseHTTPRequestHandler):
    """Knows one vulnerability of each kind; implements the protocols of
    OSV and of npm's registry."""

    answers = True

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        advisory = {"id": 1, "url": "https://example.org/1", "title": "bad", "severity": "high", "vulnerable_versions": ">0", "cwe": [], "cvss": {}}
        flaw = {
            "id": "PYSEC-1",
            "summary": "bad",
            "affected": [
                {
                    "package": {"name": "vulnerable-thing", "ecosystem": "PyPI"},
                    "ranges": [{"type": "ECOSYSTEM", "events": [{"introduced": "0"}, {"fixed": "1.1"}]}],
                }
            ],
        }
        body = json.dumps({"leaflet": [advisory]} if "npm" in self.path else {"vulns": [flaw]}).encode()
        self.send_response(200 if self.answers else 405)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self) -> None:
        """Npm asks for the versions of a vulnerable package."""
        versions = {"1.9.4": {"name": "leaflet", "version": "1.9.4"}}
        body = json.dumps({"name": "leaflet", "dist-tags": {"latest": "1.9.4"}, "versions": versions}).encode()
        self.send_response(200 if self.path == "/leaflet" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def index(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), Index)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.fixture
def requirements(tmp_path: Path) -> Path:
    path = tmp_path / "requirements.txt"
    path.write_text(REQUIREMENTS)
    return path


def test_a_known_vulnerability_of_a_python_package_is_reported(index: str, requirements: Path) -> None:
    assert python_audit(requirements, ("-s", "osv", "--osv-url", f"{index}/v1/query")) == ["vulnerable-thing 1.0: PYSEC-1, fixed in 1.1"]


def test_a_known_vulnerability_of_the_front_end_is_reported(index: str) -> None:
    found = node_audit("--registry", index)
    assert [line for line in found if line.startswith("leaflet ") and line.endswith(": high")], found


def test_an_unreachable_index_is_reported_without_failing(
    index: str, requirements: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Index, "answers", False)
    assert python_audit(requirements, ("-s", "osv", "--osv-url", f"{index}/v1/query")) == []
    assert node_audit("--registry", index) == []
    assert capsys.readouterr().out.count("not audited") == 2


def test_both_sboms_are_written(tmp_path: Path) -> None:
    write_sboms(tmp_path)
    python, frontend = (json.loads((tmp_path / f"{name}.cdx.json").read_text()) for name in ("python", "frontend"))
    assert python["bomFormat"] == frontend["bomFormat"] == "CycloneDX"
    assert {"django", "pyspark"} <= {part["name"] for part in python["components"]}
    assert "leaflet" in {part["name"] for part in frontend["components"]}
    assert "pytest" not in {part["name"] for part in python["components"]}
