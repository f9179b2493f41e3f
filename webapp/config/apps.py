"""The application that owns settings, middleware and what all pages share."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "webapp.config"
    label = "config"

    def ready(self) -> None:
        from webapp.config import checks  # noqa: F401  registers the checks
