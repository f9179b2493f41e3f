from django.apps import AppConfig


class EntitiesConfig(AppConfig):
    name = "webapp.entities"
    label = "entities"

    def ready(self) -> None:
        """Stores facts about entities from streams in the registry."""
        from webapp.connectors.facts import entities_described
        from webapp.entities.learning import learn

        entities_described.connect(learn)
