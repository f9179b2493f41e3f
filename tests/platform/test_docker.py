"""What `docker/compose.yaml` promises of every container."""

from __future__ import annotations

import re
from typing import Any

import pytest
import yaml

from webapp.platform.folders import ROOT

COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
SERVICES: dict[str, Any] = COMPOSE["services"]
IMAGES = [
    *re.findall(r"^FROM (\S+)", (ROOT / "docker" / "Dockerfile").read_text(), re.M),
    *(SERVICES[name]["image"] for name in ("postgres", "valkey")),
]


@pytest.mark.parametrize("name", SERVICES)
def test_each_container_is_read_only_limited_and_gains_no_rights(name: str) -> None:
    service = SERVICES[name]
    assert service["read_only"] is True
    assert service["security_opt"] == ["no-new-privileges:true"]
    assert {"mem_limit", "pids_limit", "cpus", "networks"} <= set(service)
    # The entry of PostgreSQL's image changes from root to its own user, and needs capabilities for that.
    assert name == "postgres" or service["cap_drop"] == ["ALL"]


def test_only_the_web_server_and_the_sender_of_webhooks_reach_the_world() -> None:
    assert {name for name, service in SERVICES.items() if "outside" in service["networks"]} == {"web", "deliveries"}
    assert {name for name, network in COMPOSE["networks"].items() if not (network or {}).get("internal")} == {"outside"}
    assert {name for name, service in SERVICES.items() if "ports" in service} == {"web"}


def test_only_the_migration_knows_the_owner_and_spark_knows_no_database() -> None:
    assert {name for name, service in SERVICES.items() if "DATABASE_OWNER_URL" in service.get("environment", {})} == {"migrate"}
    for name in ("spark-master", "spark-worker"):
        assert set(SERVICES[name]["environment"]) == {"VEDETTE_SPARK_MASTER", "VEDETTE_SPARK_SECRET"}


@pytest.mark.parametrize("image", IMAGES)
def test_each_image_has_its_exact_version(image: str) -> None:
    assert re.search(r":\d+\.\d+(\.\d+)?-", image), image


def test_every_secret_of_the_containers_is_in_the_example() -> None:
    wanted = set(re.findall(r"\$\{(\w+):\?", (ROOT / "docker" / "compose.yaml").read_text()))
    assert wanted <= set(re.findall(r"^(\w+)=", (ROOT / "docker" / ".env.example").read_text(), re.M))
