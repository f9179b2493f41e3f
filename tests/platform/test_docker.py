"""The guarantees of `docker/compose.yaml` for every container."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from webapp.platform.dependencies import without_digest
from webapp.platform.folders import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
IMAGES = dict(re.findall(r"^(\w+)=(\S+)$", (ROOT / "docker" / "images.env").read_text(), re.M))


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_is_read_only_limited_and_gains_no_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "pids_limit", "cpus", "networks"} <= set(service)
    # The entry of PostgreSQL's image changes from root to its own user, and
    # needs capabilities for that.
    assert name == "postgres" or service["cap_drop"] == ["ALL"]


def test_only_web_servers_the_sender_of_webhooks_and_connectors_reach_the_world() -> None:
    assert {name for name, service in SERVICES.items() if "outside" in service["networks"]} == {"web", "web-2", "deliveries", "connectors"}
    assert {name for name, network in COMPOSE["networks"].items() if not (network or {}).get("internal")} == {"outside"}
    assert {name for name, service in SERVICES.items() if "ports" in service} == {"web", "web-2"}


def test_only_the_migration_knows_the_owner_and_spark_knows_no_database() -> None:
    assert {name for name, service in SERVICES.items() if "DATABASE_OWNER_URL" in service.get("environment", {})} == {"migrate"}
    for name in ("spark-master", "spark-worker"):
        assert set(SERVICES[name]["environment"]) == {"VEDETTE_SPARK_MASTER", "VEDETTE_SPARK_SECRET"}


@pytest.mark.parametrize("image", IMAGES.values())
def test_each_image_has_its_exact_version_and_digest(image: str) -> None:
    assert re.search(r":\d+\.\d+(\.\d+)?(-[\w-]+)?@sha256:[0-9a-f]{64}$", image), image


def test_all_images_are_those_of_the_one_file() -> None:
    named = re.findall(r"^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text(), re.M)
    named += [service["image"] for service in SERVICES.values() if "build" not in service]
    assert {re.fullmatch(r"\$\{(\w+)(:\?[^}]+)?\}", name)[1] for name in named} == IMAGES.keys()  # type: ignore[index]  # none is a failure
    built = SERVICES["web"]["build"]["args"]
    assert built.keys() == {"NODE_IMAGE", "PYTHON_IMAGE"}


def test_pinning_adds_digests_and_replaces_old_ones(tmp_path: Path) -> None:
    """A dummy docker command replaces the registry, which the tests do not reach."""
    shutil.copy(ROOT / "docker" / "pin", tmp_path)
    (tmp_path / "images.env").write_text(f"# Why\nA_IMAGE=a/b:1.2-c\nB_IMAGE=d:3.4-e@sha256:{'0' * 64}\n")
    answer, stands_in = "sha256:" + "7" * 64, tmp_path / "bin" / "docker"
    stands_in.parent.mkdir()
    for said, status in ((answer, 0), ("unauthorized", 1)):
        stands_in.write_text(f'#!/bin/sh\n[ "$*" = "buildx imagetools inspect --format {{{{.Manifest.Digest}}}} $6" ] && echo "{said}"\n')
        stands_in.chmod(0o755)
        environment = {**os.environ, "PATH": f"{stands_in.parent}:{os.environ['PATH']}"}
        done = subprocess.run([tmp_path / "pin"], env=environment, check=False, capture_output=True)
        assert done.returncode == status, done.stderr
        assert (tmp_path / "images.env").read_text() == f"# Why\nA_IMAGE=a/b:1.2-c@{answer}\nB_IMAGE=d:3.4-e@{answer}\n"
    assert without_digest((tmp_path / "images.env").read_text()) == []
    assert without_digest(f"A_IMAGE=a/b:1.2-c\nB_IMAGE=d:3.4-e@{answer}\n") == ["a/b:1.2-c"], "`make check` names it"


def test_processes_that_evaluate_begin_with_the_kernels_of_the_image(tmp_path: Path) -> None:
    """The entry itself, in a folder in place of the image's, with programs that only print their
    arguments."""
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "one.nbi").write_text("compiled")
    entry = (ROOT / "docker" / "entry").read_text().replace("cd /app", f"cd {tmp_path}")
    stands_in = tmp_path / "bin" / "python"
    stands_in.parent.mkdir()
    stands_in.write_text("#!/bin/sh\n")
    stands_in.chmod(0o755)
    for role, evaluates in (("web", True), ("worker", True), ("job", True), ("backtest", True), ("publisher", False), ("ingest", False)):
        cache = tmp_path / f"cache of {role}"
        environment = {"PATH": f"{stands_in.parent}:{os.environ['PATH']}", "NUMBA_CACHE_DIR": str(cache)}
        for _ in range(2):
            subprocess.run(["sh", "-c", entry, "entry", role], env=environment, check=True)
        assert [path.name for path in cache.glob("*")] == ["one.nbi"] * evaluates, role
    assert "NUMBA_CACHE_DIR=/app/kernels python -m webapp.demo.kernels" in (ROOT / "docker" / "Dockerfile").read_text()


def test_every_secret_of_the_containers_is_in_the_example() -> None:
    wanted = set(re.findall(r"\$\{(\w+):\?", (ROOT / "docker" / "compose.yaml").read_text())) - IMAGES.keys()
    assert wanted <= set(re.findall(r"^(\w+)=", (ROOT / "docker" / ".env.example").read_text(), re.M))


def test_our_processes_take_any_other_setting_from_a_file_that_need_not_exist() -> None:
    ours = {name for name, service in SERVICES.items() if "SECRET_KEY" in service.get("environment", {})}
    assert {"web", "worker", "deliveries", "ingest", "connectors", "publisher", "beat"} <= ours
    for name in ours:
        assert SERVICES[name]["env_file"] == [{"path": "settings.env", "required": False}]


def test_a_setting_may_be_in_a_file_that_ends_with_a_line_break(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("required\n")
    shown = "from webapp.config.settings.environment import text; print(repr(text('VEDETTE_SECOND_FACTOR')))"
    environment = {**os.environ, "VEDETTE_SECOND_FACTOR_FILE": str(tmp_path / "secret")}
    done = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "'required'\n", done.stderr


def test_the_containers_that_send_mail_get_its_settings_and_none_of_them_is_needed() -> None:
    names = ("EMAIL_URL", "VEDETTE_MAIL_FROM", "VEDETTE_PUBLIC_URL")
    example = (ROOT / "docker" / ".env.example").read_text()
    for name in names:
        assert f"\n{name}=\n" in example
        for service in ("web", "worker", "deliveries"):
            assert SERVICES[service]["environment"][name] == f"${{{name}:-}}"
    shown = "from webapp.config.settings import identity as i; print(i.EMAIL_GIVEN, i.EMAIL_BACKEND.split('.')[-2], i.DEFAULT_FROM_EMAIL)"
    environment = {**os.environ, "SECRET_KEY": "x", **dict.fromkeys(names, "")}
    done = subprocess.run([sys.executable, "-c", shown], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout == "False dummy vedette@localhost\n", done.stderr
