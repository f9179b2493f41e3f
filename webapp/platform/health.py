"""Whether a web server on this machine answers."""

from __future__ import annotations

import http.client


def healthy(port: int) -> bool:
    """Whether `/healthz` on this loopback port answers 200 within two
    seconds; never by way of a proxy."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        connection.request("GET", "/healthz")
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
