"""The server's entry: pages, API and sockets. Every socket passes the check of its Origin and a
log-in, by session or token."""

import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")

from django.core.asgi import get_asgi_application

from webapp.platform.memory import freeze_loaded_objects, loading

with loading():
    http = get_asgi_application()

# Models can be imported only after the line above.
from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from django.core.signals import request_finished

from webapp.config.bodies import bound
from webapp.config.charsets import TextRequest
from webapp.config.connections import give_back
from webapp.config.postgresql.base import keep_connections
from webapp.config.rotation import check_keys_at_start
from webapp.config.shutdown import end_all
from webapp.live.origin import SameOrigin
from webapp.live.routing import websocket_urlpatterns
from webapp.live.tokens import TokenLogin
from webapp.platform.waits import limit_waits

check_keys_at_start()
bound()
end_all()
limit_waits()
keep_connections()
http.request_class = TextRequest
request_finished.connect(give_back, dispatch_uid="connections")
application = ProtocolTypeRouter({"http": http, "websocket": SameOrigin(AuthMiddlewareStack(TokenLogin(URLRouter(websocket_urlpatterns))))})
freeze_loaded_objects()
