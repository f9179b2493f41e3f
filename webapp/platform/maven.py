"""Programs for the JVM from Maven Central, fetched by the Ivy that Spark brings along."""

from __future__ import annotations

import fcntl
import subprocess
from pathlib import Path

from webapp.platform.folders import package_folder
from webapp.platform.java import java_home

FETCH_S = 600


def java_program() -> str:
    """The `java` to run them with. Raises JavaError."""
    return str(java_home() / "bin" / "java")


def maven(group: str, artifact: str, version: str) -> Path:
    """A folder with the jar and those that it needs. Raises CalledProcessError when they cannot be had."""
    folder = Path.home() / ".cache" / "vedette-tests" / f"{artifact}-{version}"
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        # Ivy's cache is no place for two at once.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _fetch(folder, (group, artifact, version))
    return folder


def _fetch(folder: Path, coordinates: tuple[str, str, str]) -> None:
    part = folder.with_suffix(".part")
    where = f"{part}/[artifact]-[revision](-[classifier]).[ext]"
    spark = package_folder("pyspark")
    assert spark is not None, "Spark is one of our packages"
    ivy = next((spark / "jars").glob("ivy-*.jar"))
    command = [java_program(), "-cp", str(ivy), "org.apache.ivy.Main", "-cache", str(folder.parent / "ivy"), "-confs", "default"]
    command += ["-dependency", *coordinates, "-retrieve", where, "-types", "jar", "bundle"]
    subprocess.run(command, check=True, capture_output=True, timeout=FETCH_S)
    part.rename(folder)
