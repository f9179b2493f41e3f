"""Keys, hosts, cookies and headers. Without VEDETTE_HTTPS the plain protocol is
allowed on loopback names alone."""

import secrets

from webapp.config.settings.base import BASE_MAPS, VITE_SERVER
from webapp.config.settings.environment import flag, names, number, origin_of, text

LOOPBACK = ["localhost", "127.0.0.1", "[::1]"]
ALLOWED_HOSTS = names("ALLOWED_HOSTS", LOOPBACK)
HTTPS = flag("VEDETTE_HTTPS", not set(ALLOWED_HOSTS) <= set(LOOPBACK))

# A key for one process only: `webapp.config.checks` refuses to serve with it, but settings can be
# read without any environment.
SECRET_KEY_GIVEN = bool(text("SECRET_KEY"))
SECRET_KEY = text("SECRET_KEY") or secrets.token_urlsafe(64)
SECRET_KEY_FALLBACKS = names("SECRET_KEY_FALLBACKS", [])

# The keys that encrypt secrets in the database (`webapp/config/secrets_at_rest.py`): the first key
# encrypts, all decrypt.
SECRETS_KEYS = names("VEDETTE_SECRETS_KEYS", [])

# The private key of P-256 that identifies this installation to push services (VAPID): 32 bytes in
# URL-safe base64. Without it no browser can subscribe.
PUSH_KEY = text("VEDETTE_PUSH_KEY")

AUTH_USER_MODEL = "accounts.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator"},
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator", "OPTIONS": {"min_length": 10}},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
    {"NAME": "webapp.accounts.passwords.NoCommonWords"},
    {"NAME": "webapp.accounts.passwords.NoBreachedPassword"},
    {"NAME": "webapp.accounts.passwords.TokensEnd"},
]
# Words that everybody in the organisation knows, in addition to the product's and the site's names:
# a password that consists mainly of one of them is refused.
PASSWORD_WORDS = names("VEDETTE_PASSWORD_WORDS", [])
# A file of breached passwords (webapp/accounts/passwords.py); none: those of Django's list of
# 20,000 common ones alone are refused.
BREACHED_PASSWORDS = text("VEDETTE_BREACHED_PASSWORDS")

SECURE_SSL_REDIRECT = HTTPS
SECURE_REDIRECT_EXEMPT = [r"^healthz$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https") if flag("VEDETTE_BEHIND_PROXY", False) else None
SECURE_HSTS_SECONDS = 63_072_000 if HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = HTTPS
SECURE_HSTS_PRELOAD = HTTPS
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
X_FRAME_OPTIONS = "DENY"

SESSION_COOKIE_SECURE = HTTPS
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 14 * 24 * 3600
SESSION_COOKIE_NAME = "__Host-session" if HTTPS else "session"
CSRF_COOKIE_SECURE = HTTPS
# Pages read the CSRF token from a meta element, never from the cookie.
CSRF_COOKIE_HTTPONLY = True
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_COOKIE_NAME = "__Host-csrf" if HTTPS else "csrf"
CSRF_FAILURE_VIEW = "webapp.config.errors.csrf_failure"

MAP_ORIGINS = sorted({origin_of(one.get("tiles") or one["wms"]) for one in BASE_MAPS if "pmtiles" not in one})
_VITE_SOCKET = VITE_SERVER.replace("http", "ws", 1)
CONTENT_SECURITY_POLICY = {
    "default-src": ["'self'"],
    "script-src": ["'self'", VITE_SERVER],
    # Vite's own server puts styles into the page; the built front end brings them as files.
    "style-src": ["'self'", "'unsafe-inline'" if VITE_SERVER else ""],
    "img-src": ["'self'", "data:", "blob:", *MAP_ORIGINS],
    "connect-src": ["'self'", VITE_SERVER, _VITE_SOCKET],
    "font-src": ["'self'"],
    "worker-src": ["'self'", "blob:"],
    "object-src": ["'none'"],
    "base-uri": ["'none'"],
    "frame-ancestors": ["'none'"],
    "form-action": ["'self'"],
}
PERMISSIONS_POLICY = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"

# The maximum lifetime, in days, of a link to a live view for readers without an account.
SHARE_DAYS = number("VEDETTE_SHARE_DAYS", 30, least=1, most=36_500)

# Webhooks go to public addresses on these ports only; into the networks named here (CIDR, separated
# by commas) on any port. Connectors of feeds go to public addresses and into these networks too.
WEBHOOK_PORTS = (80, 443, 8080, 8443)
WEBHOOK_NETWORKS = names("VEDETTE_WEBHOOK_NETWORKS", [])
# Off: this installation connects only to the networks named above.
PUBLIC_ADDRESSES = flag("VEDETTE_PUBLIC_ADDRESSES", True)

# Where connectors listen that others send to (AIS receivers): on this address, on these ports.
CONNECTOR_BIND = text("VEDETTE_CONNECTOR_BIND", "127.0.0.1")
CONNECTOR_PORTS = names("VEDETTE_CONNECTOR_PORTS", ["10110-10119"])
