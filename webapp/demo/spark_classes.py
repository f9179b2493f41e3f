"""Has a JVM write Spark's classes to a file, once, at set-up:
`python -m webapp.demo.spark_classes`. See engine/runtime/spark_classes.py."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
from pathlib import Path
from typing import Any

from engine.runtime.spark_classes import forget, writing
from webapp.platform.java import JavaError, java_version, spark_environment

GIVEN_UP_S = 600


def worked() -> None:
    """A session that does once what those of jobs do, in a JVM that ends by itself."""
    from engine.runtime.spark import LogStream, session
    from engine.runtime.spark_tasks import Tasks

    spark, folder, over = session("classes", cores=2), Path(tempfile.mkdtemp(prefix="vedette-classes-")), threading.Event()

    def take(_: float) -> None:
        if not over.is_set():
            Tasks(spark).run(list, [(None, spark.sparkContext.broadcast(n).value) for n in range(2)])
        over.set()

    stream = LogStream(spark, folder, take)
    stream.start()
    if not over.wait(GIVEN_UP_S):
        raise RuntimeError(stream.failure())
    stream.stop()
    gateway: Any = spark.sparkContext._gateway
    spark.stop()
    gateway.shutdown()
    gateway.proc.stdin.close()
    gateway.proc.wait(GIVEN_UP_S)


def main() -> None:
    """Jobs start without the file, too: any error here is only logged."""
    forget()
    try:
        path = written()
    except (JavaError, OSError, subprocess.SubprocessError) as error:
        forget()
        said = getattr(error, "stderr", None) or error
        sys.stderr.write(f"Jobs will start slower: Spark's classes could not be written: {said}\n")
    else:
        sys.stderr.write(
            f"{path.stat().st_size / 1e6:.0f} MB of classes\n" if path.is_file() else "This Java writes no classes: jobs will start slower.\n"
        )


def written() -> Path:
    """Where they are, if this Java writes any."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, **spark_environment(Path(folder))}
        path, option = writing(java_version(f"{environment['JAVA_HOME']}/bin/java") or 0)
        environment["SPARK_SUBMIT_OPTS"] = f"-XX:TieredStopAtLevel=1 {option}"
        command = [sys.executable, "-c", "from webapp.demo.spark_classes import worked; worked()"]
        subprocess.run(command, env=environment, capture_output=True, text=True, timeout=2 * GIVEN_UP_S, check=True)
    return path


if __name__ == "__main__":
    main()
