import os

from django.apps import AppConfig
from django.core.exceptions import ImproperlyConfigured

from engine.failpoints import TESTING, VARIABLE


class SupervisorConfig(AppConfig):
    name = "webapp.supervisor"
    label = "supervisor"

    def ready(self) -> None:
        if os.environ.get(VARIABLE) and os.environ.get(TESTING) != "1":
            raise ImproperlyConfigured(f"{VARIABLE} makes processes fail on purpose, for tests. Take it out of the environment.")
