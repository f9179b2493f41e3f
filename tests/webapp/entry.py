"""The server's entry, for tests that run it in their own process."""

from typing import Any


def server_entry() -> Any:
    """What the web server serves. Loading it asks the database: not to be called in a loop.

    A web server waits for the database in its own way, in which nothing can COPY, and keeps
    connections; other tests do neither.
    """
    from psycopg2 import extensions

    from webapp.config.asgi import application
    from webapp.config.postgresql.base import IDLE_CONNECTIONS

    extensions.set_wait_callback(None)
    IDLE_CONNECTIONS.limit = 0
    return application
