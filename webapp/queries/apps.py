from django.apps import AppConfig


class QueriesConfig(AppConfig):
    name = "webapp.queries"
    label = "queries"

    def ready(self) -> None:
        from webapp.accounts.quotas import COUNTED
        from webapp.queries.selectors import queries_held

        COUNTED.update(queries=queries_held)
