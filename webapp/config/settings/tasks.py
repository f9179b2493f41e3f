"""Celery: short tasks, JSON only, no results kept; work that must not be lost is a row in
PostgreSQL, not a message."""

from webapp.config.settings.storage import REDIS_URL

CELERY_BROKER_URL = REDIS_URL or "memory://"
CELERY_TASK_SERIALIZER = "json"
CELERY_RESULT_SERIALIZER = "json"
CELERY_EVENT_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_TIME_LIMIT = 60
CELERY_TASK_SOFT_TIME_LIMIT = 50
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_MAX_TASKS_PER_CHILD = 500
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"visibility_timeout": 300, "global_keyprefix": "vedette-celery:", "health_check_interval": 10}
CELERY_TIMEZONE = "UTC"
# Deliveries wait for receivers: they have a separate worker, so that no receiver
# delays the supervision of jobs.
CELERY_TASK_ROUTES = {"webapp.alerts.tasks.send": {"queue": "deliveries"}}
CELERY_BEAT_SCHEDULE = {
    "reconcile jobs": {"task": "webapp.supervisor.tasks.reconcile", "schedule": 3.0, "options": {"expires": 3.0}},
    "stop what derives from what is hidden": {
        "task": "webapp.queries.tasks.stop_queries_without_access",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
    "forget what is too old": {"task": "webapp.supervisor.tasks.expire", "schedule": 1800.0, "options": {"expires": 600.0}},
    "deliver notifications": {"task": "webapp.alerts.tasks.deliver", "schedule": 1.0, "options": {"expires": 2.0}},
    "warn of shifts that end": {"task": "webapp.alerts.tasks.warn_of_shifts", "schedule": 3600.0, "options": {"expires": 600.0}},
    "look for watched entities": {"task": "webapp.entities.tasks.look", "schedule": 5.0, "options": {"expires": 5.0}},
}
