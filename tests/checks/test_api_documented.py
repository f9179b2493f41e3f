"""Every address of the API, and every parameter of an address, is named in the documents."""

from __future__ import annotations

import re

import pytest

from tests.webapp.openapi import PREFIX, document
from webapp.platform.folders import ROOT

PAGES = [ROOT / "docs" / name for name in ("api.md", "ingest.md", "connectors.md")]
TEXT = re.sub(r"\s+", " ", " ".join(path.read_text() for path in PAGES))
PLACE = re.compile(r"\{[^}]*\}|<[a-z]+>")
ADDRESSES = PLACE.sub("{}", TEXT)
IN_A_LIST = {"alerts/{}/resolve", "alerts/{}/reopen"}
"""The page names them behind `alerts/{id}/acknowledge`."""
OF_ALL_LISTS = {"page", "page_size", "cursor"}


def addresses() -> list[str]:
    return sorted(path.removeprefix(PREFIX) for path in document()["paths"] if path.startswith(PREFIX))


def parameters(address: str) -> set[str]:
    operations = document()["paths"][PREFIX + address].values()
    given = [one for operation in operations if isinstance(operation, dict) for one in operation.get("parameters", [])]
    return {one["name"] for one in given if one["in"] == "query"} - OF_ALL_LISTS


def test_every_address_is_named() -> None:
    plain = {PLACE.sub("{}", address).rstrip("/") for address in addresses()}
    assert {address for address in plain - IN_A_LIST if address not in ADDRESSES} == set()
    assert len(plain) > 100


@pytest.mark.parametrize("address", [address for address in addresses() if parameters(address)])
def test_every_parameter_of_an_address_is_named(address: str) -> None:
    missing = {name for name in parameters(address) if not re.search(rf"[?&`\"\s\[]{re.escape(name)}[=&`\"?\s:,]", TEXT)}
    assert missing == set()
