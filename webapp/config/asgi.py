"""The server's entry: pages, API and sockets. Every socket passes the check of its Origin and a log-in, by session or token."""

import atexit
import gc
import os

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "webapp.config.settings")

from django.core.asgi import get_asgi_application

http = get_asgi_application()

# Models can be imported only after the line above.
from channels.auth import AuthMiddlewareStack  # noqa: E402
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.core.signals import request_finished  # noqa: E402

from webapp.config.bodies import bound  # noqa: E402
from webapp.config.connections import give_back  # noqa: E402
from webapp.config.postgresql.base import keep_connections  # noqa: E402
from webapp.config.rotation import check_keys_at_start  # noqa: E402
from webapp.config.shutdown import end_all  # noqa: E402
from webapp.live.origin import SameOrigin  # noqa: E402
from webapp.live.routing import websocket_urlpatterns  # noqa: E402
from webapp.live.tokens import TokenLogin  # noqa: E402
from webapp.platform.memory import freeze_loaded_objects  # noqa: E402
from webapp.platform.waits import limit_waits  # noqa: E402

check_keys_at_start()
bound()
end_all()
limit_waits()
keep_connections()
request_finished.connect(give_back, dispatch_uid="connections")
# At its end Python looks through everything that was loaded for cycles: most of a second of processor time, for memory that goes anyway.
atexit.register(gc.freeze)
application = ProtocolTypeRouter({"http": http, "websocket": SameOrigin(AuthMiddlewareStack(TokenLogin(URLRouter(websocket_urlpatterns))))})
freeze_loaded_objects()
