"""The notices name everything that the locks bring into production."""

from __future__ import annotations

from webapp.platform.notices import TARGET, node_parts, python_parts


def test_every_package_that_is_delivered_is_named_with_its_licence() -> None:
    page = TARGET.read_text()
    parts = {*python_parts(), *node_parts()}
    assert len(parts) > 60
    missing = [part.name for part in parts if f"| {part.name} | " not in page]
    assert not missing, "run python -m webapp.platform.notices"
