"""The notices name everything that the lock files bring into production, and every
recording that is delivered."""

from __future__ import annotations

import pytest

from webapp.platform import notices
from webapp.platform.notices import SAMPLES, TARGET, node_parts, python_parts, recordings


def test_notices_name_every_delivered_package_with_its_licence() -> None:
    page = TARGET.read_text()
    parts = {*python_parts(), *node_parts()}
    assert len(parts) > 60
    missing = [part.name for part in parts if f"| {part.name} | " not in page]
    assert not missing, "run python -m webapp.platform.notices"


def test_packages_for_other_systems_are_left_out_even_if_they_are_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """`make docs` installs colorama, which production needs only on Windows."""
    monkeypatch.setattr(notices, "_licence", str)
    assert "colorama" not in {part.name for part in python_parts()}


def test_notices_name_every_recording_with_its_licence_and_terms() -> None:
    page, terms = TARGET.read_text(), (SAMPLES / "README.md").read_text()
    named = {file: licence for file, _, licence in recordings()}
    assert set(named) == {path.name for path in SAMPLES.iterdir()} - {"README.md", "samples.json"}
    assert all(named.values())
    missing = [file for file in named if f"| {file} | " not in page or f"| `{file}` | " not in terms]
    assert not missing, "run python -m webapp.platform.notices, and name the terms in fixtures/samples/README.md"
    assert sum((SAMPLES / file).stat().st_size for file in named) < 1_200_000
