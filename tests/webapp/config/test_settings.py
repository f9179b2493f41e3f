"""Settings that the environment gives."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from webapp.config.settings.environment import number


@pytest.mark.parametrize(("given", "value"), [("", 30), ("1", 1), ("150", 150), ("12\n", 12)])
def test_a_number_is_read(given: str, value: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEDETTE_SECONDS", given)
    assert number("VEDETTE_SECONDS", 30, least=1, most=150) == value


@pytest.mark.parametrize("given", ["0", "151", "2 minutes", "1.5"])
def test_what_is_no_number_in_the_range_is_refused_by_name(given: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VEDETTE_SECONDS", given)
    with pytest.raises(ImproperlyConfigured, match="VEDETTE_SECONDS is a whole number from 1 to 150"):
        number("VEDETTE_SECONDS", 30, least=1, most=150)
