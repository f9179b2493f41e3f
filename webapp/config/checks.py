"""Settings that are required before anything is served."""

import ipaddress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from django.conf import settings
from django.core.checks import Error, Tags, Warning, register


@register(Tags.security)
def secret_key_is_given(**_: Any) -> list[Error]:
    """Sessions signed with a key of one process would end with it and fail in every other
    process."""
    if settings.SECRET_KEY_GIVEN or settings.DEBUG:
        return []
    hint = (
        "Set SECRET_KEY to 50 random characters or more in the environment; "
        "for a system that `make demo` or `make up` runs: `. var/environment` first."
    )
    return [Error("SECRET_KEY is not set.", hint=hint, id="vedette.E001")]


@register(Tags.security, deploy=True)
def connections_to_other_machines_use_tls(**_: Any) -> list[Warning]:
    """Passwords, positions and mail pass through the network in clear."""
    return [
        Warning(f"{name} is on another machine and reached without TLS.", hint=f"{remedy} (docs/settings.md).", id="vedette.W001")
        for name, is_clear, remedy in (_postgresql(), _redis(), _mail())
        if is_clear
    ]


def _postgresql() -> tuple[str, bool, str]:
    database = settings.DATABASES["default"]
    verified = database.get("OPTIONS", {}).get("sslmode") in ("verify-ca", "verify-full")
    return "PostgreSQL", _is_elsewhere(database.get("HOST")) and not verified, "Write sslmode=verify-full and sslrootcert into DATABASE_URL"


def _redis() -> tuple[str, bool, str]:
    url = urlsplit(settings.REDIS_URL)
    verified = url.scheme == "rediss" and parse_qs(url.query).get("ssl_cert_reqs", ["required"])[0] == "required"
    return "Redis", _is_elsewhere(url.hostname) and not verified, "Write rediss:// and ssl_ca_certs into REDIS_URL"


def _mail() -> tuple[str, bool, str]:
    is_safe = getattr(settings, "EMAIL_USE_TLS", False) or getattr(settings, "EMAIL_USE_SSL", False)
    sent_to = settings.EMAIL_HOST if settings.EMAIL_GIVEN else None
    return "The mail server", _is_elsewhere(sent_to) and not is_safe, "Write ?tls=True or ?ssl=True into EMAIL_URL"


def _is_elsewhere(host: str | None) -> bool:
    """Whether there is a host, and it is another machine; a path is a socket of this one."""
    if not host or host.startswith("/") or host == "localhost":
        return False
    try:
        return not ipaddress.ip_address(host).is_loopback
    except ValueError:
        return True
