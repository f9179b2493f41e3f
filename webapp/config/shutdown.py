"""How the web server stops: it closes all sockets with a code and cancels all
requests before the process ends.

Daphne's own looks for an application at each connection that it knows. A request that has just
become a socket, or whose body is still coming, has none: the loop then raised KeyError, nothing was
ended, and all sockets were cut. It also waited for the first application alone.
"""

from __future__ import annotations

import asyncio

from daphne.server import Server
from twisted.internet.defer import Deferred, succeed

ENDING_S = 5.0
"""How long the process waits for cancelled work to end."""


def kill_all_applications(server: Server) -> Deferred[object]:
    """Cancels running work; returns when all of it has ended, or after ENDING_S."""
    applications = (details.get("application_instance") for details in server.connections.values())
    running = [application for application in applications if application is not None and not application.done()]
    if not running:
        return succeed(None)
    for application in running:
        application.cancel()
    return Deferred.fromFuture(asyncio.ensure_future(asyncio.wait(running, timeout=ENDING_S)))


def end_all() -> None:
    """Makes daphne stop in this way, for which it has no setting."""
    Server.kill_all_applications = kill_all_applications
