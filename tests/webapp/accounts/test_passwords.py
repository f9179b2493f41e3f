"""Which passwords are refused, in addition to short, common and numeric ones."""

from __future__ import annotations

import hashlib
import random
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError

from webapp.accounts.passwords import is_in_order


def refusal(password: str) -> list[str]:
    try:
        validate_password(password)
    except ValidationError as error:
        return [one.code or "" for one in error.error_list]
    return []


@pytest.mark.parametrize("password", ["vedette2026!", "Vedette-123", "VedetteVedette1", "harbour-2026", "Oceanwatch99"])
def test_names_known_to_users_are_refused_as_passwords(password: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS, settings.PASSWORD_WORDS = ["harbour.example.org"], ["Oceanwatch"]
    assert "password_of_the_place" in refusal(password)
    assert refusal("a vedette of seven lanterns") == [], "a long one may hold the word"


def breached(path: Path, passwords: list[str]) -> Path:
    digests = sorted(hashlib.sha1(one.encode(), usedforsecurity=False).hexdigest().upper() for one in passwords)
    path.write_text("".join(f"{digest}:{len(digest)}\r\n" for digest in digests))
    return path


def test_a_breached_password_is_refused(tmp_path: Path, settings: Any) -> None:
    settings.BREACHED_PASSWORDS = str(breached(tmp_path / "known", ["seven lanterns at sea", "another one entirely"]))
    assert refusal("seven lanterns at sea") == ["password_breached"]
    assert refusal("eight lanterns at sea") == []


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 500])
def test_exactly_the_breached_passwords_are_found(tmp_path: Path, count: int) -> None:
    chance = random.Random(count)
    passwords = [str(chance.random()) for _ in range(count)]
    path = breached(tmp_path / "known", passwords)
    for found, some in ((True, passwords), (False, [one + "x" for one in passwords] + ["", "a"])):
        for one in some:
            assert is_in_order(path, hashlib.sha1(one.encode(), usedforsecurity=False).hexdigest().upper().encode()) is found
    for edge in (b"0" * 40, b"F" * 40):
        assert not is_in_order(path, edge)
