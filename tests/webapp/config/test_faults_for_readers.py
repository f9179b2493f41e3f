"""Refusals in terms that users understand, not in those of the framework."""

from __future__ import annotations

import pytest
from django.conf import settings
from django.test import Client

from tests.webapp.answers import a_user

pytestmark = [pytest.mark.services, pytest.mark.django_db]


def test_what_is_gone_is_reported_in_the_readers_language() -> None:
    client = Client(headers={"Accept-Language": "de"})
    client.force_login(a_user())
    answer = client.get("/api/v1/queries/987654/")
    assert answer.status_code == 404
    assert answer.json()["faults"][0]["message"] == "Hier ist nichts, oder es ist nicht mit Ihnen geteilt."


def test_a_page_learns_that_its_token_is_out_of_date() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(a_user())
    assert settings.CSRF_COOKIE_NAME not in client.cookies
    answer = client.post("/api/v1/queries/check", {}, content_type="application/json")
    assert answer.status_code == 403 and answer.headers["X-Page-Outdated"] == "1"
    assert answer.json()["faults"][0]["message"].startswith("This page is out of date.")
