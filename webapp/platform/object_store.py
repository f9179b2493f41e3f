"""A store of S3's protocol on loopback: S3Proxy over a folder, for `make cluster` and the tests. It runs in production elsewhere too."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

from webapp.platform.embedded import EmbeddedServer, EmbeddedServerError
from webapp.platform.maven import java_program, maven
from webapp.platform.processes import Process

BUCKET = "vedette"
KEY = "vedette"
S3PROXY = ("org.gaul", "s3proxy", "3.3.0")
ANNOTATIONS = ("com.fasterxml.jackson.core", "jackson-annotations", "2.21")
"""Of one of its parts the version that its list resolves to is too old."""


class ObjectStoreError(EmbeddedServerError):
    """The store could not be fetched or started."""


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
        try:
            folders = [maven(*ANNOTATIONS), maven(*S3PROXY)]
        except (subprocess.SubprocessError, OSError) as error:
            raise ObjectStoreError(f"S3Proxy could not be fetched from Maven Central: {error}") from error
        # Of two versions in one class path the first would be taken, whatever the other's name.
        jars = [jar for folder in folders for jar in sorted(folder.glob("*.jar")) if folder is folders[0] or not jar.name.startswith(ANNOTATIONS[1])]
        java = (java_program(), "-Xmx128m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-cp", ":".join(map(str, jars)))
        return Process("store", (*java, "org.gaul.s3proxy.Main", "--properties", str(self._settings)), before_start=self.prepare)

    @property
    def _settings(self) -> Path:
        return self.folder / "s3proxy.conf"

    def prepare(self) -> None:
        """Writes the settings (mode 0600: they hold the password) and the bucket, and frees the port."""
        (self.folder / "data" / BUCKET).mkdir(parents=True, exist_ok=True)
        settings = {
            "s3proxy.endpoint": f"http://127.0.0.1:{self.port}",
            "s3proxy.authorization": "aws-v2-or-v4",
            "s3proxy.identity": KEY,
            "s3proxy.credential": self.password,
            "jclouds.provider": "filesystem-nio2",
            "jclouds.filesystem.basedir": f"{self.folder}/data",
        }
        self._settings.touch(mode=0o600)
        self._settings.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
        self._reservation.release()

    def ready(self) -> bool:
        """Whether it takes connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True
