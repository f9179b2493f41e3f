"""The Celery application: `celery -A webapp.config worker` and `beat`."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")

app = Celery("vedette")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_init.connect  # type: ignore[untyped-decorator]
def check_keys_first(**_: Any) -> None:
    """A worker whose keys do not fit ends immediately: each delivery would fail later. Celery only
    logs other exceptions of a signal's receiver."""
    import django
    from django.core.exceptions import ImproperlyConfigured

    django.setup()
    # Models can be imported only after the line above.
    from webapp.config.rotation import check_keys_at_start

    try:
        check_keys_at_start()
    except ImproperlyConfigured as error:
        raise SystemExit(str(error)) from error
