"""The REST API."""

from webapp.config.settings.environment import text

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "webapp.accounts.authentication.TokenAuthentication",
        "webapp.accounts.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["webapp.accounts.authentication.LoggedInWithinScope"],
    # No browsable API: its pages need inline scripts.
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["webapp.config.parsers.Json"],
    "DEFAULT_PAGINATION_CLASS": "webapp.config.pagination.Pages",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_THROTTLE_CLASSES": ["webapp.config.throttling.PerUser", "webapp.config.throttling.PerAction"],
    "DEFAULT_THROTTLE_RATES": {
        "user": text("VEDETTE_API_RATE", "1200/min"),
        "check": "120/min",
        "preview": "30/min",
        # Pages ask every few seconds.
        "progress": "120/min",
        "export": "30/min",
        "import": "20/min",
        "webhook-test": "6/min",
        "trial": "20/min",
        "invite": "60/hour",
    },
    "EXCEPTION_HANDLER": "webapp.config.errors.as_faults",
    "TEST_REQUEST_DEFAULT_FORMAT": "json",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "COERCE_DECIMAL_TO_STRING": False,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Vedette",
    "DESCRIPTION": "Exact continuous queries over streams of moving things. Times are integers in the feed's unit; faults carry JSON pointers.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_PERMISSIONS": ["webapp.accounts.authentication.LoggedInWithinScope"],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": True,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "webapp.config.openapi.with_components",
        "webapp.live.frame_types.with_frames",
    ],
    "ENUM_NAME_OVERRIDES": {
        "SeverityEnum": "webapp.queries.models.Severity",
        "AlertStateEnum": "webapp.alerts.models.AlertState",
    },
}
