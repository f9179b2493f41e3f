"""Connections to the database of threads that end with their request."""

from typing import Any

from django.db import connections

from webapp.config.settings.storage import session_limits


def give_back(**_: Any) -> None:
    """Closes this thread's connections. Under ASGI each request has a separate thread: a connection
    that it keeps is never used again, and PostgreSQL runs out of connections."""
    for connection in connections.all(initialized_only=True):
        if not connection.in_atomic_block:
            connection.close()


def limit_statements(seconds: int) -> None:
    """Connections that this process opens from now on have this time limit for statements."""
    connections["default"].settings_dict["OPTIONS"]["options"] = session_limits(seconds)
