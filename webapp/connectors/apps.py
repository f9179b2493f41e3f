from django.apps import AppConfig


class ConnectorsConfig(AppConfig):
    name = "webapp.connectors"
    label = "connectors"
