from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "webapp.alerts"
    label = "alerts"

    def ready(self) -> None:
        from webapp.accounts.quotas import COUNTED
        from webapp.alerts.selectors import channels_held, messages_held, rules_held
        from webapp.alerts.services import alerts_end_with_queries
        from webapp.queries.services import queries_ended

        COUNTED.update(channels=channels_held, rules=rules_held, messages=messages_held)
        queries_ended.connect(alerts_end_with_queries, dispatch_uid="alerts")
