"""Programs for the JVM from Maven Central: `make cluster` and the tests run Kafka and S3Proxy.

`jar_locks/PROGRAM.lock` has a line for each jar that a program loads: `group:artifact:version`,
and the SHA-256 of the file.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.error import URLError

from webapp.platform.java import java_home

LOCKS = Path(__file__).parent / "jar_locks"
CENTRAL = "https://repo1.maven.org/maven2"
AT_ONCE, TRIES, STALL_S = 8, 3, 30.0
"""How many files are fetched at the same time, how often each is tried, and how long
a connection may be idle."""


def java_program() -> str:
    """The `java` to run them with. Raises JavaError."""
    return str(java_home() / "bin" / "java")


def jars(program: str) -> Path:
    """A folder with the program's jars, fetched at the first call on this machine. Raises OSError
    when they cannot be fetched."""
    lock = (LOCKS / f"{program}.lock").read_text()
    folder = Path.home() / ".cache" / "vedette" / f"{program}-{hashlib.sha256(lock.encode()).hexdigest()[:16]}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as turn:
        # The parts of the tests may call this at the same time.
        fcntl.flock(turn, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch_all(lock, folder)
    return folder


def _fetch_all(lock: str, folder: Path) -> None:
    part = folder.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(lambda line: _fetch(line, part), lock.splitlines()))
    part.rename(folder)


def _fetch(line: str, folder: Path) -> None:
    coordinates, digest = line.split()
    group, artifact, version = coordinates.split(":")
    name = f"{artifact}-{version}.jar"
    content = _read(f"{CENTRAL}/{group.replace('.', '/')}/{artifact}/{version}/{name}")
    if hashlib.sha256(content).hexdigest() != digest:
        raise OSError(f"{coordinates} has not the SHA-256 that its lock names")
    (folder / name).write_bytes(content)


def _read(address: str) -> bytes:
    for attempt in range(1, TRIES + 1):
        try:
            with urllib.request.urlopen(address, timeout=STALL_S) as answer:  # noqa: S310  from a fixed list of addresses
                return bytes(answer.read())
        except (URLError, TimeoutError, ConnectionError) as error:
            if attempt == TRIES:
                raise OSError(f"{address}: {error}") from error
    raise AssertionError
