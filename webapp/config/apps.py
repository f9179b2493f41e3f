"""The application with the settings, the middleware and the code that all pages share."""

from django.apps import AppConfig


class ConfigConfig(AppConfig):
    name = "webapp.config"
    label = "config"

    def ready(self) -> None:
        from webapp.config import checks  # noqa: F401  registers the checks
