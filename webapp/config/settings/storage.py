"""PostgreSQL, the cache and the folder for everything that running leaves behind."""

from pathlib import Path

from webapp.config.settings.environment import ROOT, env, text

VAR = Path(text("VEDETTE_VAR") or ROOT / "var").resolve()
EVENT_LOG_ROOT = VAR / "log-of-events"
CHECKPOINT_ROOT = VAR / "checkpoints"
MEDIA_ROOT = VAR / "media"
# Where `collectstatic` put the files, on a machine that serves without the sources; else they are served from where they lie.
STATIC_ROOT = text("VEDETTE_STATIC_ROOT") or None

DATABASES = {
    "default": {
        # For threads that last: of jobs, publisher, ingest. Requests under ASGI give theirs back (`asgi.py`).
        "CONN_MAX_AGE": 60,
        "CONN_HEALTH_CHECKS": True,
        "ATOMIC_REQUESTS": False,
        **env.db_url("DATABASE_URL", default="postgres:///vedette", engine="django.db.backends.postgresql"),
    }
}

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
    # File names of the front end carry a hash of their content already (Vite); whitenoise serves them as immutable.
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
WHITENOISE_USE_FINDERS = STATIC_ROOT is None
WHITENOISE_IMMUTABLE_FILE_TEST = r"^/static/build/assets/.+-[\w-]{8}\.\w+$"
FILE_UPLOAD_MAX_MEMORY_SIZE = 2_500_000
DATA_UPLOAD_MAX_MEMORY_SIZE = 20_000_000
