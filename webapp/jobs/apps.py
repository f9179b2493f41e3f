import os

from django.apps import AppConfig
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from engine.failpoints import VARIABLE


class JobsConfig(AppConfig):
    name = "webapp.jobs"
    label = "jobs"

    def ready(self) -> None:
        if os.environ.get(VARIABLE) and settings.HTTPS:
            raise ImproperlyConfigured(f"{VARIABLE} makes processes fail on purpose: it is for tests, never for a site served to others.")
