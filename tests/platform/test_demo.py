"""The demo's starter with a dummy application: it starts, prints its address, and leaves nothing
behind."""

import http.client
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from tests.platform.test_postgres import wait_until
from webapp.platform.demo import environment, keep_environment
from webapp.platform.folders import ROOT, PortReservation

pytestmark = pytest.mark.services

MANAGE = """
import os, sys, time
import psycopg2
migrates = sys.argv[1] == "migrate"
assert (migrates or sys.argv[1] == "restore") == ("DATABASE_OWNER_URL" in os.environ)
connection = psycopg2.connect(os.environ["DATABASE_OWNER_URL" if migrates else "DATABASE_URL"])
with connection, connection.cursor() as cursor:
    if sys.argv[1] == "restore":
        cursor.execute("SELECT to_regclass('start')")
        assert cursor.fetchone() == (None,), "after the migration"
        print("restored:", open(sys.argv[2]).read(), flush=True)
    if migrates:
        print("System check identified some issues:\\n?: (vedette.W002) VEDETTE_BASE_MAPS, Away: /away.pmtiles cannot be read.", flush=True)
        cursor.execute("CREATE TABLE IF NOT EXISTS start (n serial, seeded text)")
        cursor.execute("GRANT ALL ON start, start_n_seq TO vedette_app")
    if sys.argv[1] == "demo_seed":
        cursor.execute("INSERT INTO start (seeded) VALUES (%s)", [os.environ["VEDETTE_DEMO_PASSWORD"]])
if sys.argv[1] in ("publish", "ingest", "connect", "simulate"):
    assert "VEDETTE_DEMO_PASSWORD" not in os.environ
    print("works", flush=True)
    time.sleep(600)
"""
ASGI = """
async def application(scope, receive, send):
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": b"ok"})
"""
CELERY = """
import os, subprocess, sys
from celery import Celery, signals
app = Celery("standin", broker=os.environ["REDIS_URL"])
@signals.worker_ready.connect
def start_job(sender, **_):
    if not sender.hostname.startswith("deliveries@"):
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)", "a-spark-job"], start_new_session=True)
"""


@pytest.fixture
def project() -> Iterator[Path]:
    """A copy of the platform with a dummy application."""
    with tempfile.TemporaryDirectory(prefix="vedette-demo-") as name:
        root = Path(name)
        shutil.copytree(ROOT / "webapp" / "platform", root / "webapp" / "platform", ignore=shutil.ignore_patterns("__pycache__"))
        (root / "webapp" / "config" / "settings").mkdir(parents=True)
        for path, text in {
            "manage.py": MANAGE, "webapp/__init__.py": "", "webapp/config/__init__.py": "", "webapp/config/settings/__init__.py": "",
            "webapp/config/asgi.py": ASGI, "webapp/config/celery.py": CELERY,
        }.items():  # fmt: skip
            (root / path).write_text(text)
        yield root


class Demo:
    """One run of the starter in `root`, read up to its announcement."""

    def __init__(self, root: Path, *arguments: str) -> None:
        port = PortReservation()
        port.release()
        hidden = ("DATABASE_URL", "DATABASE_OWNER_URL", "DATABASE_READER_ROLE", "REDIS_URL", "VEDETTE_VAR", "SECRET_KEY", "VEDETTE_SECRETS_KEYS")
        environment = {name: value for name, value in os.environ.items() if name not in hidden} | {"VEDETTE_PORT": str(port.port)}
        self.popen = subprocess.Popen(
            [sys.executable, "-m", "webapp.platform.demo", *arguments],
            cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        assert self.popen.stdout is not None
        self.output = ""
        for line in self.popen.stdout:
            self.output += line
            if "Ctrl-C" in line:
                break
        self.tree = psutil.Process(self.popen.pid).children(recursive=True) if self.popen.poll() is None else []

    def job(self) -> psutil.Process:
        """The process that the worker started in another session."""
        found: list[psutil.Process] = []

        def there() -> bool:
            found[:] = [p for p in psutil.Process(self.popen.pid).children(recursive=True) if "a-spark-job" in command_of(p)]
            return bool(found)

        assert wait_until(there, 30)
        return found[0]

    def end(self, number: int) -> int:
        """The exit status after the signal."""
        self.popen.send_signal(number)
        assert self.popen.stdout is not None
        self.output += self.popen.stdout.read() if number != signal.SIGKILL else ""
        status = self.popen.wait(60)
        self.popen.stdout.close()
        return status


@pytest.fixture
def start(project: Path) -> Iterator[Callable[..., Demo]]:
    """Starts the demo of the dummy application; everything that a failed test leaves running is
    stopped."""
    demos: list[Demo] = []

    def started(*arguments: str) -> Demo:
        demos.append(Demo(project, *arguments))
        return demos[-1]

    yield started
    for demo in demos:
        if demo.popen.poll() is None:
            demo.end(signal.SIGTERM)


def command_of(process: psutil.Process) -> list[str]:
    """The processes that it runs; empty if it has just ended."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def alive(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Those that are still running."""
    return [process for process in processes if is_alive(process)]


def is_alive(process: psutil.Process) -> bool:
    """It may end between two questions."""
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def test_the_demo_starts_prints_its_address_and_stops_all_processes(project: Path, start: Callable[[], Demo]) -> None:
    demo = start()
    assert "Warning: VEDETTE_BASE_MAPS, Away: /away.pmtiles cannot be read.\n" in demo.output
    assert ("this runs as root" in demo.output) == (os.geteuid() == 0)
    address = re.search(r"http://127\.0\.0\.1:(\d+)/", demo.output)
    assert address is not None, demo.output
    connection = http.client.HTTPConnection("127.0.0.1", int(address[1]), timeout=5)
    connection.request("GET", "/healthz")
    assert connection.getresponse().status == 200
    connection.close()
    password = project / "var" / "analyst-password"
    assert f"Log in as analyst with {password.read_text().strip()}" in demo.output
    assert password.stat().st_mode & 0o777 == 0o600
    assert (project / "var" / "log" / "players.log").read_text() == "works\n"
    assert (project / "var" / "log").stat().st_mode & 0o777 == 0o700
    second = start()
    assert "runs already" in second.output
    assert second.popen.wait(10) == 1
    tree = [*demo.tree, demo.job()]
    assert demo.end(signal.SIGINT) == 0, demo.output
    assert alive(tree) == []


def test_after_kill_9_it_starts_again_with_its_data_at_the_same_address(project: Path, start: Callable[[], Demo]) -> None:
    first = start()
    job = first.job()
    # The job outlives it on purpose, to be adopted by the next reconciler. It may have been
    # listed in the process tree.
    others = [process for process in first.tree if process != job]
    first.end(signal.SIGKILL)
    assert wait_until(lambda: alive(others) == [], 30), alive(others)
    assert alive([job]) == [job]
    job.kill()
    port = (project / "var" / "postgres" / "port").read_text()
    second = start()
    assert "is ready" in second.output
    assert (project / "var" / "postgres" / "port").read_text() == port
    assert second.end(signal.SIGTERM) == 0
    assert (project / "var" / "log" / "seed.log").exists()
    assert alive(second.tree) == []


@pytest.mark.parametrize("has_key", [pytest.param(False, marks=pytest.mark.nightly), True])
def test_it_starts_from_a_backup(project: Path, start: Callable[..., Demo], has_key: bool) -> None:
    (project / "backup.tar").write_text("6 feeds")
    if has_key:
        (project / "var").mkdir()
        (project / "var" / "secrets-key").write_text("of the old folder")
    demo = start("--no-feeds", "--restore", "backup.tar")
    assert "restored: 6 feeds\n" in demo.output
    assert "Log in with a user and a password of the backup" in demo.output
    assert "Log in as analyst" not in demo.output
    assert ("there is no" in demo.output) == (not has_key)


def test_another_shell_reaches_the_running_system(tmp_path: Path) -> None:
    kept = tmp_path / "environment"
    variables = {"SECRET_KEY": "it's $HOME; `x`", "DATABASE_URL": "postgres://a:b%20@127.0.0.1:5/c"}
    keep_environment(kept, {"SECRET_KEY": "of an earlier start, and longer than the next one"})
    keep_environment(kept, variables)
    assert kept.stat().st_mode & 0o777 == 0o600
    shell = subprocess.run(["sh", "-c", f'. {kept}; printf \'%s\\n\' "$SECRET_KEY" "$DATABASE_URL"'], capture_output=True, text=True, check=True)
    assert shell.stdout.splitlines() == list(variables.values())


def test_another_shell_has_the_settings_with_which_it_was_started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A backup from a shell without VEDETTE_LOG_STORE would be one without rows."""
    given = {"VEDETTE_LOG_STORE": "s3://rows/log", "AWS_SECRET_ACCESS_KEY": "s", "EMAIL_URL_FILE": "/mail", "VEDETTE_TOKEN": "t", "LANGUAGE": "de"}
    monkeypatch.delenv("VEDETTE_VAR", raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    variables = environment(tmp_path, port=1, database_url="postgres:///a", redis_url="redis://a")
    assert {name: variables[name] for name in given if name in variables} == {
        "VEDETTE_LOG_STORE": "s3://rows/log", "AWS_SECRET_ACCESS_KEY": "s", "EMAIL_URL_FILE": "/mail",
    }  # fmt: skip
    assert variables["VEDETTE_VAR"] == str(tmp_path)
