from django.apps import AppConfig


class EntitiesConfig(AppConfig):
    name = "webapp.entities"
    label = "entities"
