"""The Celery application: `celery -A webapp.config worker` and `beat`."""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")

app = Celery("vedette")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
