"""The server's entry: pages, API and sockets. Every socket passes the check of its Origin and a log-in, by session or token."""

import os
from contextlib import suppress

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()

# Models can be imported only after the line above.
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.core.exceptions import ImproperlyConfigured  # noqa: E402
from django.core.signals import request_finished  # noqa: E402
from django.db import OperationalError, connection  # noqa: E402

from webapp.config.bodies import bound  # noqa: E402
from webapp.config.connections import give_back  # noqa: E402
from webapp.config.postgresql.base import keep_connections  # noqa: E402
from webapp.config.rotation import check_keys  # noqa: E402
from webapp.live.origin import SameOrigin  # noqa: E402
from webapp.live.routing import websocket_urlpatterns  # noqa: E402
from webapp.live.tokens import TokenLogin  # noqa: E402
from webapp.platform.waits import limit_waits  # noqa: E402

if not (settings.SECRET_KEY_GIVEN or settings.DEBUG):
    raise ImproperlyConfigured("SECRET_KEY is not set: give it 50 random characters or more in the environment.")

# While the database is away the server may come up: it says so itself (`/healthz`).
with suppress(OperationalError):
    check_keys()
connection.close()

bound()
limit_waits()
keep_connections()
request_finished.connect(give_back, dispatch_uid="connections")
application = ProtocolTypeRouter({"http": http, "websocket": SameOrigin(AuthMiddlewareStack(TokenLogin(URLRouter(websocket_urlpatterns))))})
