"""The application for the audit log."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    name = "webapp.audit"
    label = "audit"

    def ready(self) -> None:
        from webapp.audit import logins

        logins.connect()
