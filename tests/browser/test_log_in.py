"""Log-in in a browser, under the content security policy: passkeys with a virtual authenticator,
an OpenID Connect provider."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.browser.conftest import PASSWORD
from tests.webapp.accounts.outside import identity_provider, providers

if TYPE_CHECKING:
    from tests.browser.conftest import Site

pytestmark = [pytest.mark.browser, pytest.mark.services]

DEVICE = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True, "isUserVerified": True}


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    with identity_provider() as issuer:
        monkeypatch.setenv("VEDETTE_OIDC_PROVIDERS", providers(issuer))
        yield issuer


def test_a_passkey_or_a_provider_logs_a_user_in(provider: str, site: Site) -> None:
    # Passkeys belong to a domain name; browsers do not accept an IP address.
    site.address = site.address.replace("127.0.0.1", "localhost")
    page = site.page
    devices = site.context.new_cdp_session(page)
    devices.send("WebAuthn.enable")
    device = devices.send("WebAuthn.addVirtualAuthenticator", {"options": {**DEVICE, "automaticPresenceSimulation": True}})
    site.log_in()
    page.goto(site.address + "/account/security/")
    page.get_by_role("link", name="Add a passkey").click()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Confirm").click()
    page.get_by_label("Name").fill("This laptop")
    page.get_by_role("button", name="Add it").click()
    page.get_by_role("heading", name="Recovery codes").wait_for()
    assert len(page.get_by_label("Unused codes").input_value().split()) == 10
    kept = devices.send("WebAuthn.getCredentials", {"authenticatorId": device["authenticatorId"]})["credentials"]
    assert [one["isResidentCredential"] for one in kept] == [True]
    page.goto(site.address + "/account/")
    # What the page still asked would be refused after the log-out.
    page.wait_for_load_state("networkidle")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url(site.address + "/login/")
    page.get_by_role("button", name="Log in with a passkey").click()
    page.wait_for_url(site.address + "/")
    page.goto(site.address + "/account/security/passkeys/")
    page.get_by_text("This laptop").wait_for()

    site.context.clear_cookies()
    address = site.address.replace("localhost", "127.0.0.1")
    page.goto(address + "/login/?next=/account/")
    page.get_by_role("button", name="Log in with Example Corp").click()
    page.locator("input[name=login]").fill("grace")
    page.locator("input[name=password]").fill("any")
    page.get_by_role("button", name="Sign-in").click()
    page.get_by_role("button", name="Continue").click()
    page.wait_for_url(re.compile(re.escape(address) + "/account/"))
    page.get_by_role("heading", name="grace").wait_for()
    # The provider's own page requests a font from the internet.
    # The provider's own pages have no icon.
    assert [fault for fault in site.faults if "ERR_NAME_NOT_RESOLVED" not in fault and not fault.endswith("/favicon.ico")] == []
