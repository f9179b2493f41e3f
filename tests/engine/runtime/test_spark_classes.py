"""Spark's JVM takes over the classes that set-up wrote for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from engine.runtime import spark_classes
from engine.runtime.spark import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_each_java_has_a_file_of_its_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_classes, "FOLDER", tmp_path)
    assert spark_classes.reading() == []
    for version, reading in ((17, "-XX:SharedArchiveFile="), (25, "-XX:AOTCache=")):
        path, writing = spark_classes.writing(version)
        assert writing.endswith(f"={path}")
        path.touch()
        assert spark_classes.reading() == [f"{reading}{path}"]
        spark_classes.forget()
        assert not path.exists()


@pytest.mark.spark
def test_jobs_name_the_file_and_a_jvm_has_mapped_it(spark: SparkSession) -> None:
    options = spark_classes.reading()
    if not options:
        pytest.skip("set-up wrote no file: this Java does not")
    gateway: Any = spark.sparkContext._gateway
    jvm = psutil.Process(gateway.proc.pid)
    for whose in ("driver", "executor"):
        assert set(options) <= set(settings(1)[f"spark.{whose}.extraJavaOptions"].split())
    (path,) = (option.partition("=")[2] for option in options)
    assert path in {region.path for region in jvm.memory_maps()}
