from django.apps import AppConfig


class OverlaysConfig(AppConfig):
    name = "webapp.overlays"
    label = "overlays"

    def ready(self) -> None:
        from webapp.overlays import checks  # noqa: F401  registers the checks
