"""Common to all tests: real services started once a run and only when asked for, one Spark session,
Hypothesis profiles, the order of tests.

The address of PostgreSQL is chosen (and its port held) before Django reads its settings; the server
itself starts with the first test that uses it. Settings name no Redis: broker, cache and channel
layer stay in memory, and a test of processes hands `redis_url` to them. A run of `tests/engine`
alone neither loads Django nor starts anything.
"""

import gc
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import environ
import pytest
from hypothesis import HealthCheck, settings

from tests.examples import PROFILE, SHARES, examples
from webapp.platform.folders import ROOT, PortReservation
from webapp.platform.java import spark_environment
from webapp.platform.memory import loading
from webapp.platform.postgres import READER, EmbeddedPostgres
from webapp.platform.redis import EmbeddedRedis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Failpoints act in tests and in what they start, and nowhere else.
os.environ["VEDETTE_TESTING"] = "1"
# The tests' JVMs live for seconds: Java's second compiler would take half of their processor time
# without any gain.
os.environ["SPARK_SUBMIT_OPTS"] = "-XX:TieredStopAtLevel=1"
# Migrations make models by the thousand and drop them: each time Python's garbage collector would
# scan all objects, for a quarter of a second.
gc.set_threshold(10_000, 10, 20)

WITHOUT_DJANGO = ("engine", "platform", "oracles")
"""Folders of tests whose runs load no settings."""

SLOW_CHECKS = [HealthCheck.too_slow]
# The same examples in every run: a failure is a finding about the change, not about the day.
# `thorough` looks for new ones.
for name in SHARES:
    settings.register_profile(
        name, max_examples=examples(100), deadline=None, derandomize=name != "thorough", print_blob=True, suppress_health_check=SLOW_CHECKS
    )
settings.load_profile(PROFILE)
FORGETFUL = {"fsync": "off", "full_page_writes": "off", "synchronous_commit": "off"}
"""The run's own database does not survive a crash of the machine. A test that kills PostgreSQL has
a separate server with the usual settings."""


# -- services --------------------------------------------------------------------------------------


GIVEN_DATABASE = os.environ.get("DATABASE_URL")
GIVEN_REDIS = os.environ.get("REDIS_URL")


@cache
def _folder() -> Path:
    """The run's own `var` folder. Passable by all, because PostgreSQL runs as another user
    when the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="vedette-tests-"))
    folder.chmod(0o711)
    return folder


@cache
def _postgres() -> EmbeddedPostgres:
    return EmbeddedPostgres(_folder() / "postgres", reservation=PortReservation(), changed=FORGETFUL)


def _needs_django(config: pytest.Config) -> bool:
    """Whether the run may touch anything outside WITHOUT_DJANGO."""
    free = [ROOT / "tests" / name for name in WITHOUT_DJANGO]
    chosen = [Path(config.invocation_params.dir, argument.split("::")[0]).resolve() for argument in config.args]
    return not chosen or not all(any(path.is_relative_to(folder) for folder in free) for path in chosen)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if hasattr(config, "workerinput") or not _needs_django(config):
        return  # A worker of pytest-xdist inherits this environment, and its Django is set up.
    if not GIVEN_DATABASE:
        os.environ["DATABASE_URL"] = _postgres().url
        os.environ["DATABASE_OWNER_URL"] = _postgres().owner_url
        os.environ["DATABASE_READER_ROLE"] = READER
        if config.getoption("numprocesses", None):
            _postgres().start()
    os.environ.update(
        REDIS_URL="",
        VEDETTE_VAR=str(_folder()),
        SECRET_KEY="used by tests only, signs nothing that anybody else would trust",
        VEDETTE_SECRETS_KEYS="dGVzdHMgZW5jcnlwdCB3aXRoIHRoaXMgYWxvbmUhISE=",
        VEDETTE_PUSH_KEY="dGhlIHRlc3RzIHNpZ24gcHVzaGVzIHdpdGggdGhpcyE",
        ALLOWED_HOSTS="localhost,127.0.0.1",
        VEDETTE_DEBUG="0",
        VEDETTE_HTTPS="0",
        DJANGO_SETTINGS_MODULE="webapp.config.settings",
    )
    import django

    with loading():
        django.setup()


def pytest_unconfigure() -> None:
    if _postgres.cache_info().currsize:
        _postgres().stop()
    if _folder.cache_info().currsize:
        shutil.rmtree(_folder(), ignore_errors=True)


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a running PostgreSQL: DATABASE_URL if set, else an embedded server that
    lives as long as the run."""
    if GIVEN_DATABASE:
        yield GIVEN_DATABASE
        return
    server = _postgres()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture(scope="session")
def owner_url(postgres_url: str) -> str:
    """The same, of the role that makes and drops databases."""
    return os.environ.get("DATABASE_OWNER_URL", GIVEN_DATABASE) if GIVEN_DATABASE else _postgres().owner_url


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """The URL of a running Redis: REDIS_URL if set, else an embedded server that
    lives as long as the run."""
    if GIVEN_REDIS:
        yield GIVEN_REDIS
        return
    with EmbeddedRedis(_folder() / "redis").running() as url:
        yield url


@pytest.fixture(scope="session")
def django_db_modify_db_settings(postgres_url: str, django_db_modify_db_settings_parallel_suffix: None) -> None:
    """pytest-django asks for this before the first test with a database: the moment at
    which PostgreSQL has to run.

    The database is made, emptied and dropped by its owner; tests work as
    the application's role does.
    """
    from django.conf import settings
    from django.db import connection

    from tests import emptying

    emptying.install()
    connection.settings_dict.update(settings.DATABASE_OWNER)


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None) -> Iterator[None]:
    """The database is there, made by its owner; from here on it is used by the application's
    role."""
    from django.conf import settings
    from django.db import connection

    application = environ.Env().db_url("DATABASE_URL")
    connection.close()
    connection.settings_dict.update({name: application[name] for name in settings.DATABASE_OWNER})
    yield
    connection.close()
    connection.settings_dict.update(settings.DATABASE_OWNER)


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """The one Spark session of the run."""
    os.environ.update(spark_environment(tmp_path_factory.mktemp("java")))
    from pyspark.sql import SparkSession

    from engine.runtime import spark_classes

    options = {
        "spark.driver.extraJavaOptions": " ".join(spark_classes.reading()),
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "1g",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.python.unix.domain.socket.enabled": "true",
        "spark.sql.streaming.checkpointFileManagerClass": (
            "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager"
        ),
    }
    builder: Any = SparkSession.builder.master("local[2,4]").appName("vedette-tests")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


# -- real recordings -------------------------------------------------------------------------------


def _data_place() -> Path | None:
    """The folder of the recordings: VEDETTE_DATA, else the shared folder next to the project if it
    exists, else none."""
    named = os.environ.get("VEDETTE_DATA")
    sibling = ROOT.parent / "shared" / "data"
    return Path(named) if named else sibling if sibling.exists() else None


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """The folder of real recordings. A test that uses it is marked `data`; an incomplete folder
    fails it."""
    place = _data_place()
    assert place is not None, "a test that uses data_folder must be marked `data`"
    assert (place / "manifest.json").is_file(), f"{place} is no complete folder of recordings: manifest.json is missing"
    return place


# -- order -----------------------------------------------------------------------------------------

ORDER = ("slow", "services", "spark", "browser")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests first, then each heavier kind together; inside a kind the order stays. Without
    recordings the tests of them are skipped, and by day those for the night."""
    for item in items:
        if item.get_closest_marker("nightly") and PROFILE == "fast":
            item.add_marker(pytest.mark.skip(reason="runs at night: HYPOTHESIS_PROFILE=full"))
        if item.get_closest_marker("data") and _data_place() is None:
            item.add_marker(pytest.mark.skip(reason="no real recordings here: VEDETTE_DATA is not set and ../shared/data does not exist"))
    items.sort(key=lambda item: max((ORDER.index(mark) + 1 for mark in ORDER if item.get_closest_marker(mark)), default=0))
