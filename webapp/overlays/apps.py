from django.apps import AppConfig


class OverlaysConfig(AppConfig):
    name = "webapp.overlays"
    label = "overlays"
