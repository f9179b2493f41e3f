"""Java for Spark: the machine's if suitable, else the wheel's without the one
flag that it does not know."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from webapp.platform.java import VECTOR_FLAG, JavaError, java_home, java_version


def fake_java(folder: Path, version: str, knows_vector: bool = True) -> Path:
    """A JAVA_HOME whose java only prints a version, and refuses the vector module
    unless it `knows_vector`."""
    program = folder / "bin" / "java"
    program.parent.mkdir(parents=True)
    refuse = "" if knows_vector else f'[ "$1" = "{VECTOR_FLAG}" ] && exit 1\n'
    program.write_text(f'#!/bin/sh\n{refuse}echo "openjdk version \\"{version}\\"" >&2\nfor a do echo "argument: $a"; done\n')
    program.chmod(0o755)
    return folder


@pytest.mark.parametrize(("printed", "version"), [("17.0.15", 17), ("25", 25), ("1.8.0_402", 8), ("21-ea", 21)])
def test_the_version_is_read_as_java_prints_it(tmp_path: Path, printed: str, version: int) -> None:
    assert java_version(str(fake_java(tmp_path / "jdk", printed) / "bin" / "java")) == version


def test_java_home_comes_first(tmp_path: Path) -> None:
    chosen = fake_java(tmp_path / "jdk", "21.0.1")
    assert java_home(tmp_path / "made", {"JAVA_HOME": str(chosen), "PATH": os.environ["PATH"]}) == chosen


def test_an_old_java_is_passed_over(tmp_path: Path) -> None:
    old, new = fake_java(tmp_path / "old", "11.0.2"), fake_java(tmp_path / "new", "17.0.1")
    assert java_home(tmp_path / "made", {"JAVA_HOME": str(old), "PATH": str(new / "bin")}) == new


def test_a_java_without_the_vector_module_is_wrapped_and_every_other_argument_passes(tmp_path: Path) -> None:
    home = java_home(tmp_path / "made", {"JAVA_HOME": str(fake_java(tmp_path / "jdk with space", "25", knows_vector=False)), "PATH": ""})
    assert home == tmp_path / "made"
    given = ["-Da=b c", VECTOR_FLAG, "", "it's", "$HOME", "*"]
    done = subprocess.run([str(home / "bin" / "java"), *given], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"argument: {argument}" for argument in given if argument != VECTOR_FLAG]


def test_no_java_at_all_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webapp.platform.java.package_folder", lambda name: None)
    old = fake_java(tmp_path / "old", "11.0.2")
    with pytest.raises(JavaError, match=r"set JAVA_HOME, or run: make setup.*is version 11"):
        java_home(tmp_path / "made", {"JAVA_HOME": str(old), "PATH": ""})


@pytest.mark.spark
@pytest.mark.nightly
def test_spark_runs_on_the_wheels_java(tmp_path: Path) -> None:
    """A real session, a Parquet file and Python workers on the JDK of the wheel, with
    the machine's Java hidden."""
    program = f"""
        from pyspark.sql import SparkSession
        session = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
                   .config("spark.driver.bindAddress", "127.0.0.1").getOrCreate())
        session.range(100).write.parquet({str(tmp_path / "numbers")!r})
        def double(batches):
            import pyarrow as pa
            for batch in batches:
                yield pa.record_batch([pa.array([2 * n for n in batch.column(0).to_pylist()])], names=["id"])
        table = session.read.parquet({str(tmp_path / "numbers")!r}).mapInArrow(double, "id long").toArrow()
        print(sum(table.column(0).to_pylist()), session._jvm.System.getProperty("java.version"))
        session.stop()
    """
    home = java_home(tmp_path / "java", {})
    environment = {
        "JAVA_HOME": str(home),
        "PATH": "/usr/bin:/bin",
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_SUBMIT_OPTS": os.environ["SPARK_SUBMIT_OPTS"],
    }
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    total, version = done.stdout.split()
    assert total == "9900"
    assert version.startswith(str(java_version(str(home / "bin" / "java"))))
