"""Every address of the API, and every parameter of an address, is named in the documents."""

from __future__ import annotations

import json
import re
from typing import Any

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


EXAMPLES = {
    "Feeds": "feeds/{name}/",
    "Regions": "regions/{id}/",
    "Queries": "queries/{id}/",
    "Alerts": "alerts/",
    "Channels": "channels/{id}/",
    "Routing rules": "routing-rules/{id}/",
    "Jobs": "jobs/{name}/",
    "Connectors": "connectors/{id}/",
    "Detections": "detections/",
}
"""The section of an example, and the address that answers with it, or with a page of it."""
IN_SETTINGS_OF_MESSAGES = frozenset(
    ["zone", "quiet_from", "quiet_until", "digest", "digest_at", "critical_passes", "group_by", "group_minutes", "timing", "browser_keys"]
)
"""The page gives them once, for rules and channels together."""


def example(section: str) -> dict[str, object]:
    """The first block of JSON of a section of docs/api.md. `{...}` and `...` are placeholders for
    more of the same."""
    text = (ROOT / "docs" / "api.md").read_text().split(f"\n## {section}\n")[1]
    found = re.search(r"```json\n(.*?)```", text, re.S)
    assert found is not None
    shown: dict[str, object] = json.loads(found[1].replace("{...}", "{}").replace(", ...]", "]"))
    return shown


def answer_of(address: str) -> dict[str, Any]:
    """The schema of what an address answers; of a page, that of its items."""
    template = next(path for path in document()["paths"] if PLACE.sub("{}", path) == PREFIX + PLACE.sub("{}", address))
    schema = resolved(document()["paths"][template]["get"]["responses"]["200"]["content"]["application/json"]["schema"])
    for one in schema.get("anyOf", [schema]):
        schema = resolved(one)
        if "results" in schema["properties"]:
            return resolved(schema["properties"]["results"]["items"])
    return schema


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in schema or "allOf" in schema:
        schema = schema["allOf"][0] if "allOf" in schema else document()["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return schema


@pytest.mark.parametrize("section", EXAMPLES)
def test_an_example_has_the_keys_of_the_answer(section: str) -> None:
    properties = set(answer_of(EXAMPLES[section])["properties"])
    shown = set(example(section))
    assert shown <= properties
    assert properties - shown <= IN_SETTINGS_OF_MESSAGES
