"""Applications, templates, static files, language."""

import django_stubs_ext

from webapp.config.settings.environment import ROOT, base_maps, flag, text

# Lets generic classes of Django be written with their parameters, as the type checker reads them.
django_stubs_ext.monkeypatch()

DEBUG = flag("VEDETTE_DEBUG", False)
ROOT_URLCONF = "webapp.config.urls"
ASGI_APPLICATION = "webapp.config.asgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    # Templates of allauth say how long ago something was.
    "django.contrib.humanize",
    "allauth",
    "allauth.account",
    "allauth.socialaccount",
    "allauth.socialaccount.providers.openid_connect",
    "allauth.mfa",
    "allauth.usersessions",
    "channels",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "webapp.config",
    "webapp.audit",
    "webapp.accounts",
    "webapp.jobs",
    "webapp.feeds",
    "webapp.queries",
    "webapp.detections",
    "webapp.alerts",
    "webapp.connectors",
    "webapp.entities",
    "webapp.overlays",
    "webapp.supervisor",
    "webapp.live",
    "webapp.demo",
]

MIDDLEWARE = [
    # First, so that its headers are on static files and on errors of the others too.
    "webapp.config.middleware.SecurityHeaders",
    "webapp.config.middleware.NoNul",
    "django.middleware.security.SecurityMiddleware",
    "webapp.config.middleware.StaticFiles",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "webapp.accounts.language.ReaderLanguage",
    "webapp.audit.middleware.Audit",
    "webapp.cage.middleware.AskedByUser",
    "allauth.account.middleware.AccountMiddleware",
    "webapp.config.middleware.LoginRequired",
    "django.contrib.messages.middleware.MessageMiddleware",
    "webapp.accounts.second_factor.SecondFactorRequired",
    "webapp.config.parameters.KnownParameters",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "webapp.audit.middleware.ChangeWithEntry",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [ROOT / "webapp" / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "webapp.config.context.product",
            ],
        },
    }
]

LANGUAGE_CODE = "en-gb"
LANGUAGES = [("en-gb", "English"), ("de", "Deutsch")]
LOCALE_PATHS = [ROOT / "webapp" / "locale"]
TIME_ZONE = "UTC"
USE_TZ = True

STATIC_URL = "/static/"
STATICFILES_DIRS = [folder for folder in (ROOT / "static",) if folder.is_dir()]
VITE_MANIFEST = ROOT / "static" / "build" / ".vite" / "manifest.json"
VITE_PREFIX = "build/"
# The address of Vite's own server while the front end is being worked on; only used with
# VEDETTE_DEBUG.
VITE_SERVER = text("VEDETTE_VITE_URL") if DEBUG else ""

# An XYZ tile layer for the map, e.g. https://tiles.example.org/{z}/{x}/{y}.png; empty: the bundled
# coastlines and borders alone.
TILE_URL = text("VEDETTE_TILE_URL")
TILE_ATTRIBUTION = text("VEDETTE_TILE_ATTRIBUTION")
# More maps to choose from: a JSON list of {"name", "tiles", "wms" with "layers", or
# "pmtiles", "attribution"}.
BASE_MAPS = [
    *([{"name": "Tiles", "tiles": TILE_URL, "attribution": TILE_ATTRIBUTION}] if TILE_URL else []),
    *base_maps("VEDETTE_BASE_MAPS"),
]

# The audit log's entries as JSON lines as well: `-` on standard output, else in the file of this
# name, which may be moved away at any time.
AUDIT_FILE = text("VEDETTE_AUDIT_LINES")
AUDIT_LINES = {
    "": {"class": "logging.NullHandler"},
    "-": {"class": "logging.StreamHandler", "stream": "ext://sys.stdout", "formatter": "alone"},
}.get(AUDIT_FILE, {"class": "logging.handlers.WatchedFileHandler", "filename": AUDIT_FILE, "delay": True, "formatter": "alone"})
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "webapp.config.logs.OneLine", "format": "{asctime} {levelname} {name}: {message}", "style": "{"},
        "alone": {"format": "{message}", "style": "{"},
    },
    "handlers": {
        "console": {"class": "logging.StreamHandler", "formatter": "line"},
        "audit": AUDIT_LINES,
    },
    "root": {"handlers": ["console"], "level": text("VEDETTE_LOG_LEVEL", "INFO")},
    "loggers": {
        # Entries of the audit log as they are stored, for a collector that
        # takes them to another machine.
        "vedette.audit": {"level": "INFO", "handlers": ["audit"], "propagate": False},
        "daphne.http_protocol": {"level": "WARNING"},
        "django.channels.server": {"level": "WARNING"},
        # It logs every call between Python and the JVM, and its last connection after the
        # interpreter has closed the stream that it writes to.
        "py4j": {"level": "WARNING"},
    },
}
