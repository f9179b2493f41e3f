from django.apps import AppConfig


class DetectionsConfig(AppConfig):
    name = "webapp.detections"
    label = "detections"
