"""Vedette's policies for django-allauth: which client address counts, who may get an account, and
the keys of rate limits."""

from __future__ import annotations

from typing import Any, ClassVar

from allauth.account.adapter import DefaultAccountAdapter
from allauth.account.internal.userkit import filter_users_by_email
from allauth.core.exceptions import ImmediateHttpResponse
from allauth.mfa.adapter import DefaultMFAAdapter
from allauth.socialaccount.adapter import DefaultSocialAccountAdapter
from allauth.socialaccount.models import SocialLogin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.shortcuts import render
from django.utils import translation
from django.utils.translation import gettext_lazy

from webapp.accounts.language import language_of_address
from webapp.accounts.second_factor import note_provider
from webapp.audit.logins import log_in_locked_out
from webapp.config.addresses import address_of, host_of
from webapp.config.opened_links import link_to
from webapp.config.secrets_at_rest import decrypt, encrypt


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Log-in by password."""

    error_messages: ClassVar = {
        **DefaultAccountAdapter.error_messages,
        "too_many_login_attempts": gettext_lazy("Too many log-ins have failed. Try again in 15 minutes."),
        "username_password_mismatch": gettext_lazy("The name or the password is wrong."),
        "incorrect_password": gettext_lazy("That is not your current password."),
        "incorrect_code": gettext_lazy("That code is wrong or has been used."),
    }

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Sign-up is closed: accounts come from administrators, invitations and providers."""
        return False

    def send_mail(self, template_prefix: str, email: str, context: dict[str, Any]) -> None:
        """In the reader's language; in that of the request if the address has no account or
        its language is not known."""
        chosen = getattr(context.get("user"), "language_of_messages", "") or language_of_address(email)
        with translation.override(chosen or translation.get_language()):
            super().send_mail(template_prefix, email, context)

    def get_client_ip(self, request: HttpRequest) -> str:
        # A request without an address did not come over a network: a test sent it.
        # The key of limits: a host with one IPv6 network has 2**64 addresses.
        return host_of(address_of(request)) or "::"

    def get_reset_password_from_key_url(self, key: str) -> str:
        return str(self.request.build_absolute_uri(link_to("password-key", key)))

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError:
            log_in_locked_out(request, str(credentials.get("username", "")))
            raise

    def _get_login_attempts_cache_key(self, request: HttpRequest, **credentials: Any) -> str:
        # allauth also counts by the Host header: each further name of the server would
        # allow as many more guesses.
        return str(credentials.get("username", "")).strip().casefold()


class ProviderAdapter(DefaultSocialAccountAdapter):  # type: ignore[misc]
    """Log-in by OpenID Connect."""

    def is_open_for_signup(self, request: HttpRequest, sociallogin: SocialLogin) -> bool:
        """A user of a trusted provider gets an account, unless its settings forbid it
        (`sign_up`)."""
        return bool(sociallogin.provider.app.settings["sign_up"])

    def pre_social_login(self, request: HttpRequest, sociallogin: SocialLogin) -> None:
        """A provider's e-mail address does not open an existing account with that address, unless
        the provider is trusted with addresses."""
        app, claims = sociallogin.provider.app, sociallogin.account.extra_data.get("id_token", {})
        note_provider(request, app.provider_id, claims, app.settings["second_factor"])
        if sociallogin.is_existing or request.user.is_authenticated:
            return
        taken = next((one.email for one in sociallogin.email_addresses if filter_users_by_email(one.email)), None)
        if taken is not None:
            raise ImmediateHttpResponse(render(request, "socialaccount/address_taken.html", {"email": taken}, status=409))


class SecondFactorAdapter(DefaultMFAAdapter):  # type: ignore[misc]
    """Authenticator apps, passkeys and recovery codes. The secrets behind the codes are
    encrypted in the database."""

    def encrypt(self, text: str) -> str:
        return encrypt(text)

    def decrypt(self, encrypted_text: str) -> str:
        return decrypt(encrypted_text)
