"""How users are authenticated: passwords, log-in by OpenID Connect, second factors, e-mail
(django-allauth)."""

import json
from typing import Any

from django.core.exceptions import ImproperlyConfigured

from webapp.config.settings.environment import env, text
from webapp.config.settings.security import HTTPS

AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "live"
LOGOUT_REDIRECT_URL = "account_login"

# -- e-mail: `smtp://user:password@host:587/?tls=True`; without it nothing is sent, and the pages
# show this ---------------------------

EMAIL_GIVEN = bool(text("EMAIL_URL"))
# Empty counts as not set: Compose passes on a variable without a value in this way.
vars().update(env.email_url_config(text("EMAIL_URL") or "dummymail://"))
EMAIL_TIMEOUT = 10
DEFAULT_FROM_EMAIL = text("VEDETTE_MAIL_FROM") or "vedette@localhost"
PUBLIC_URL = text("VEDETTE_PUBLIC_URL").rstrip("/")
"""The address of the site for links in messages, which are not answers to a request."""
SERVER_EMAIL = DEFAULT_FROM_EMAIL
PASSWORD_RESET_TIMEOUT = 3600

# -- log-in ----------------------------------------------------------------------------------------

ACCOUNT_ADAPTER = "webapp.accounts.adapters.AccountAdapter"
ACCOUNT_FORMS = {"login": "webapp.accounts.forms.LogInForm"}
ACCOUNT_LOGIN_METHODS = {"username"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email", "password1*"]
# Accounts are made by administrators, invitations and trusted providers; the rights of an address
# are decided there.
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_EMAIL_NOTIFICATIONS = EMAIL_GIVEN
ACCOUNT_EMAIL_SUBJECT_PREFIX = "[Vedette] "
ACCOUNT_DEFAULT_HTTP_PROTOCOL = "https" if HTTPS else "http"
ACCOUNT_SESSION_REMEMBER = True
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_REAUTHENTICATION_TIMEOUT = 15 * 60
# Counted in the shared cache (webapp/config/cache.py). A `key` is one account, from any address; an
# `ip` one address.
ACCOUNT_RATE_LIMITS = {
    "login": "60/m/ip",
    "login_failed": "10/15m/key,50/15m/ip",
    "reauthenticate": "10/m/user",
    "reset_password": "10/h/ip,3/h/key",
    "reset_password_from_key": "20/m/ip",
    "change_password": "5/m/user",
}

# -- second factors --------------------------------------------------------------------------------

MFA_ADAPTER = "webapp.accounts.adapters.SecondFactorAdapter"
MFA_FORMS = {"authenticate": "webapp.accounts.forms.AuthenticateForm", "reauthenticate": "webapp.accounts.forms.ReauthenticateForm"}
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
# `required`: users who log in with only a password must set up a second
# factor before anything else.
SECOND_FACTOR_REQUIRED = text("VEDETTE_SECOND_FACTOR", "optional") == "required"
if text("VEDETTE_SECOND_FACTOR", "optional") not in ("required", "optional"):
    raise ImproperlyConfigured("VEDETTE_SECOND_FACTOR is required or optional.")
MFA_TOTP_ISSUER = "Vedette"
# Sign-up is closed, so an address cannot be claimed to lock out its owner.
MFA_ALLOW_UNVERIFIED_EMAIL = True
# Browsers allow passkeys without https only on loopback names; the same rule applies here.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not HTTPS

# -- OpenID Connect --------------------------------------------------------------------------------

PROVIDER_KEYS = {"id", "name", "issuer", "client_id", "secret", "sign_up", "trust_email", "second_factor"}


def oidc_apps(document: str) -> list[dict[str, Any]]:
    """The providers of `VEDETTE_OIDC_PROVIDERS`, a JSON list, as allauth reads them. Raises
    ImproperlyConfigured with the place of a fault.

    >>> corp = '{"id": "corp", "name": "C", "issuer": "https://id.example.org", "client_id": "x"}'
    >>> [app["provider_id"] for app in oidc_apps(f"[{corp}]")]
    ['corp']
    """
    try:
        apps = json.loads(document or "[]")
    except ValueError as error:
        raise ImproperlyConfigured(f"VEDETTE_OIDC_PROVIDERS is not JSON: {error}") from error
    if not isinstance(apps, list):
        raise ImproperlyConfigured("VEDETTE_OIDC_PROVIDERS must be a JSON list of objects.")
    return [_oidc_app(position, one) for position, one in enumerate(apps)]


def _oidc_app(position: int, one: Any) -> dict[str, Any]:
    place = f"VEDETTE_OIDC_PROVIDERS, entry {position}"
    missing = {"id", "name", "issuer", "client_id"} - set(one) if isinstance(one, dict) else {"id"}
    if missing or set(one) - PROVIDER_KEYS:
        raise ImproperlyConfigured(
            f"{place}: needs id, name, issuer and client_id, and may have secret, sign_up, trust_email and second_factor; nothing else."
        )
    factors = one.get("second_factor", ["mfa"])
    if factors != "trusted" and not (isinstance(factors, list) and all(isinstance(value, str) for value in factors)):
        raise ImproperlyConfigured(f'{place}: second_factor is "trusted", or a list of values of amr or acr that mean two factors.')
    return {
        "provider_id": one["id"],
        "name": one["name"],
        "client_id": one["client_id"],
        "secret": one.get("secret", ""),
        "settings": {
            "server_url": str(one["issuer"]).rstrip("/"),
            "oauth_pkce_enabled": True,
            "sign_up": bool(one.get("sign_up", True)),
            "email_authentication": bool(one.get("trust_email", False)),
            "second_factor": factors,
        },
    }


SOCIALACCOUNT_ADAPTER = "webapp.accounts.adapters.ProviderAdapter"
SOCIALACCOUNT_PROVIDERS = {"openid_connect": {"OAUTH_PKCE_ENABLED": True, "APPS": oidc_apps(text("VEDETTE_OIDC_PROVIDERS"))}}
SOCIALACCOUNT_EMAIL_AUTHENTICATION_AUTO_CONNECT = True
SOCIALACCOUNT_REQUESTS_TIMEOUT = 10
# Tokens of providers are needed once, at the log-in, and never kept.
SOCIALACCOUNT_STORE_TOKENS = False
