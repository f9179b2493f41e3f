"""PostgreSQL, the cache and the folder for the data of a running installation."""

from pathlib import Path
from typing import Any

from webapp.config.settings.environment import ROOT, env, number, text

VAR = Path(text("VEDETTE_VAR") or ROOT / "var").resolve()
EVENT_LOG_ROOT = VAR / "log-of-events"
# Empty: the logs are in EVENT_LOG_ROOT, for processes of this machine. Else a store that several
# machines write to (decision 26).
VEDETTE_LOG_STORE = text("VEDETTE_LOG_STORE")
CHECKPOINT_ROOT = VAR / "checkpoints"
MEDIA_ROOT = VAR / "media"
# Real recordings that are offered as samples; none of them is part of the project.
SAMPLES_ROOT = Path(text("VEDETTE_DATA") or ROOT.parent / "shared" / "data").resolve()
# Where `collectstatic` put the files, on a machine that serves without the sources; else they are
# served from their source folders.
STATIC_ROOT = text("VEDETTE_STATIC_ROOT") or None

# The time after which PostgreSQL ends a statement; jobs allow more (`webapp/supervisor/driver.py`).
STATEMENT_SECONDS = number("VEDETTE_STATEMENT_SECONDS", 30, least=1, most=3600)
LOCK_SECONDS, IDLE_SECONDS = 10, 60
"""How long a statement waits for a lock, and a transaction for its next statement."""


def session_limits(statement_seconds: int) -> str:
    """libpq's `options` for sessions with limits, so that no session blocks others forever."""
    limits = {"statement_timeout": statement_seconds, "lock_timeout": LOCK_SECONDS, "idle_in_transaction_session_timeout": IDLE_SECONDS}
    return " ".join(f"-c {name}={seconds}s" for name, seconds in limits.items())


# A machine or a network that is down sends nothing: libpq would wait a quarter of an hour for an
# acknowledgement, and forever for an answer.
NETWORK_LIMITS = {"connect_timeout": 10, "tcp_user_timeout": 20_000, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3}


def _database(variable: str, **defaults: Any) -> dict[str, Any]:
    """The database that the variable names; options of libpq in its URL
    (`?sslmode=verify-full`) take precedence."""
    url = env.db_url(variable, engine="webapp.config.postgresql", **defaults)
    return {**url, "OPTIONS": {"options": session_limits(STATEMENT_SECONDS), **NETWORK_LIMITS, **url.get("OPTIONS", {})}}


DATABASES = {
    "default": {
        # For threads that last: of jobs, publisher, ingest. Requests under ASGI return theirs
        # (`asgi.py`) for the next one.
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,
        **_database("DATABASE_URL", default="postgres:///vedette"),
    }
}
# The roles of the database (`webapp/config/database_roles.py`). Only `migrate` and other code that
# changes the schema gets the owner's.
DATABASE_OWNER = {
    name: value for name, value in (env.db_url("DATABASE_OWNER_URL") if text("DATABASE_OWNER_URL") else {}).items() if name in ("USER", "PASSWORD")
}
DATABASE_APPLICATION_ROLE = DATABASES["default"]["USER"]
DATABASE_READER_ROLE = text("DATABASE_READER_ROLE")

REDIS_URL = text("REDIS_URL")
CACHES = {
    "default": (
        {
            "BACKEND": "webapp.config.cache.SharedCache",
            "LOCATION": REDIS_URL,
            "KEY_PREFIX": "vedette",
            "OPTIONS": {"socket_timeout": 2, "socket_connect_timeout": 1},
        }
        if REDIS_URL
        else {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}
    )
}
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    # File names of the front end carry a hash of their content already (Vite); whitenoise
    # serves them as immutable.
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/build/assets/.+-[\w-]{8}\.\w+$"
FILE_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
DATA_UPLOAD_MAX_MEMORY_SIZE = 20_000_000
