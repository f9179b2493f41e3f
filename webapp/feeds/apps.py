from django.apps import AppConfig


class FeedsConfig(AppConfig):
    name = "webapp.feeds"
    label = "feeds"
