"""A store of S3's protocol on loopback: S3Proxy over a folder, for `make cluster` and the tests.
S3Proxy is also used in production.

`python -m webapp.platform.object_store FOLDER PORT` becomes the server for other machines, with the
keys of AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY; with `--fetch` it only fetches the program.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

from webapp.platform.embedded import EmbeddedServer, EmbeddedServerError
from webapp.platform.jars import jars, java_program
from webapp.platform.processes import Process

BUCKET = "vedette"
KEY = "vedette"

LOGGING = """<configuration>
  <appender name="standard" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%date %level %logger %message%n</pattern></encoder>
  </appender>
  <root level="WARN"><appender-ref ref="standard"/></root>
</configuration>
"""


class ObjectStoreError(EmbeddedServerError):
    """The store could not be fetched or started."""


def command(settings: Path) -> tuple[str, ...]:
    """The command of S3Proxy. Fetches it the first time. Raises ObjectStoreError."""
    try:
        folder = jars("s3proxy")
    except OSError as error:
        raise ObjectStoreError(f"S3Proxy could not be fetched from Maven Central: {error}") from error
    logging = f"-Dlogback.configurationFile={settings.with_suffix('.xml')}"
    java = (java_program(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", logging, "-cp", f"{folder}/*")
    return (*java, "org.gaul.s3proxy.Main", "--properties", str(settings))


def write_settings(path: Path, folder: Path, address: str, key: str, secret: str) -> None:
    """The settings (mode 0600: they hold the secret), and the bucket."""
    (folder / BUCKET).mkdir(parents=True, exist_ok=True)
    settings = {
        "s3proxy.endpoint": f"http://{address}",
        "s3proxy.authorization": "aws-v2-or-v4",
        "s3proxy.identity": key,
        "s3proxy.credential": secret,
        "jclouds.provider": "filesystem-nio2",
        "jclouds.filesystem.basedir": str(folder),
    }
    # Without it each request writes a hundred lines.
    path.with_suffix(".xml").write_text(LOGGING)
    path.touch(mode=0o600)
    path.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))


class ObjectStore(EmbeddedServer):
    """One gateway with one bucket."""

    title = "The S3 store"
    error = ObjectStoreError

    @property
    def url(self) -> str:
        """For VEDETTE_LOG_STORE, with the keys."""
        return f"s3://{KEY}:{self.password}@{BUCKET}/log?scheme=http&region=us-east-1&endpoint_override=127.0.0.1%3A{self.port}"

    def process(self) -> Process:
        """The server for a process manager."""
        return Process("store", command(self._settings), before_start=self.prepare)

    @property
    def _settings(self) -> Path:
        return self.folder / "s3proxy.conf"

    def prepare(self) -> None:
        """Writes the settings and frees the port for the server."""
        write_settings(self._settings, self.folder / "data", f"127.0.0.1:{self.port}", KEY, self.password)
        self._reservation.release()


def main(arguments: list[str]) -> None:
    """The program."""
    settings = Path(tempfile.gettempdir(), "s3proxy.conf")
    program = command(settings)
    if arguments != ["--fetch"]:
        folder, port = arguments
        write_settings(settings, Path(folder), f"0.0.0.0:{port}", os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
        os.execv(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
