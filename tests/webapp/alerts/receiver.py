"""A receiver of webhooks, and messages on their way to it."""

import threading
import time
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from webapp.alerts import deliveries


class Receiver:
    """A receiver on loopback that stores requests and answers as configured."""

    def __init__(self) -> None:
        self.got: list[tuple[dict[str, str], bytes]] = []
        self.statuses: list[int] = []
        self.seconds = 0.0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.got.append(({name.lower(): value for name, value in self.headers.items()}, body))
                time.sleep(outer.seconds)
                status = outer.statuses.pop(0) if outer.statuses else 204
                self.send_response(status)
                if status == 429:
                    self.send_header("Retry-After", "3600")
                if status == 302:
                    self.send_header("Location", outer.url)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook?x=1"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()


def deliver(now: datetime | None = None) -> int:
    deliveries.notifications_plan()
    deliveries.deliveries_prepare(now)
    return sum(deliveries.channel_send(channel_id=pk) for pk in deliveries.channels_due())
