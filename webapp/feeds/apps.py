from django.apps import AppConfig


class FeedsConfig(AppConfig):
    name = "webapp.feeds"
    label = "feeds"

    def ready(self) -> None:
        from webapp.accounts.quotas import COUNTED
        from webapp.feeds.selectors import feeds_held, uploads_held, vertices_held

        COUNTED.update(feeds=feeds_held, uploads=uploads_held, vertices=vertices_held)
