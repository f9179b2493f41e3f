from django.apps import AppConfig


class EntitiesConfig(AppConfig):
    name = "webapp.entities"
    label = "entities"

    def ready(self) -> None:
        """Streams' facts of entities go into the registry."""
        from webapp.entities.learning import learn
        from webapp.feeds.connectors.facts import entities_described

        entities_described.connect(learn)
