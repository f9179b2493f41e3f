"""How the web server is started."""

import sys


def web_command(port: int) -> tuple[str, ...]:
    """A web server on loopback. A slow handshake must not make browsers retry."""
    options = ("-b", "127.0.0.1", "-p", str(port), "--websocket_connect_timeout", "20")
    return (sys.executable, "-m", "daphne", *options, "webapp.config.asgi:application")
