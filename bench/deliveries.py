"""How long from an alert's frame to a mailbox, a browser's push service and a
webhook, on a running system.

    EMAIL_URL=smtp://127.0.0.1:2525 VEDETTE_PUBLIC_URL=http://127.0.0.1:8000 \\
        VEDETTE_WEBHOOK_NETWORKS=127.0.0.0/8 make demo
    python -m bench.deliveries --password ... [--url http://127.0.0.1:8000] [--user analyst]
        [--feed city] [--alerts 60] [--smtp-port 2525]

A probe car enters a separate square while the feed's traffic continues; each entry opens a
critical alert. Three channels carry it to receivers of this program: a mail server, a push
service that checks the signature and decrypts, and a webhook. One machine, so one clock
serves all. Prints p50, p95, p99 and the greatest from the frame that brings the alert to a
page, and from the 202 of its row.

`--without-job`: the alerts are written as a batch's transaction writes them, straight into the
database that `. var/environment` names, so that the time from the frame on can be measured while
the job is stopped or behind.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from aiosmtpd.controller import Controller

from bench.latency import Client, followed, spread, square, step
from tests.webapp.alerts.push_service import PushService

PROBE = "latency-probe"
SETTLE_S = 8.0
Arrivals = dict[int, float]
"""Alert -> when it arrived, in seconds of the wall clock."""


@dataclass
class Receivers:
    """The messages that arrived at each receiver."""

    came: dict[str, Arrivals] = field(default_factory=lambda: {"mailbox": {}, "push": {}, "webhook": {}})

    def take(self, where: str, alerts: list[int]) -> None:
        now = time.time()
        for alert in alerts:
            self.came[where].setdefault(alert, now)


@contextmanager
def mail_server(receivers: Receivers, port: int) -> Iterator[None]:
    class Inbox:
        async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
            mail = message_from_bytes(envelope.content, policy=policy.default)
            text = mail.get_body(("plain",))  # type: ignore[attr-defined]
            receivers.take("mailbox", [int(one) for one in re.findall(r"/alerts/(\d+)", str(text))])
            return "250 OK"

    controller = Controller(Inbox(), hostname="127.0.0.1", port=port)
    controller.start()
    try:
        yield
    finally:
        controller.stop()


@contextmanager
def webhook(receivers: Receivers) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            receivers.take("webhook", [alert["id"] for alert in body["data"]["alerts"]])
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()


class TimedPush(PushService):
    """Records when each alert came."""

    receivers: Receivers

    def take(self, path: str, headers: Any, body: bytes) -> int:
        status = super().take(path, headers, body)
        if status == 201:
            link = self.browsers[path].got[-1][1]["link"]
            self.receivers.take("push", [int(one) for one in re.findall(r"/alerts/(\d+)", link)])
        return status


async def alerts_framed(client: Client, feed: str, query: int, framed: Arrivals, starts: dict[int, int]) -> None:
    """Notes when the frame with an alert of the query came, and the time of its row."""
    async for now, frame in followed(client, feed, query):
        for alert in frame.get("alerts", ()):
            if alert["query"] == query:
                framed.setdefault(alert["id"], now)
                starts.setdefault(alert["id"], alert["start"])


async def measure(given: argparse.Namespace) -> dict[str, dict[str, float]]:
    client = Client(given.url)
    client.login(given.user, given.password)
    receivers = Receivers()
    push = TimedPush(client.call("GET", "channels/push-key")["key"])
    push.receivers = receivers
    browser = push.subscribe()
    with mail_server(receivers, given.smtp_port), webhook(receivers) as hook:
        made = [
            {"name": "probe mail", "kind": "mail", "recipient": "duty@example.org"},
            {"name": "probe hook", "kind": "webhook", "url": hook},
            {"name": "probe browser", "kind": "push", "url": push.address_of(browser), "browser_keys": browser.key_text},
        ]
        channels = [
            client.call("POST", "channels/", {"min_severity": "critical", "per_minute": 600, "queries": [], "all_queries": False, **one})["id"]
            for one in made
        ]
        try:
            return await (written if given.without_job else probe)(client, given, channels, receivers)
        finally:
            for channel in channels:
                client.call("DELETE", f"channels/{channel}/")
            push.close()


async def probe(client: Client, given: argparse.Namespace, channels: list[int], receivers: Receivers) -> dict[str, dict[str, float]]:
    feed = client.call("GET", f"feeds/{given.feed}/")
    x, y = feed["view"]["center"][0] + 0.3, feed["view"]["center"][1] + 0.3
    document = {"family": "border", "version": 1, "region": square(x, y)}
    name = f"delivery probe {time.time():.0f}"
    query_body = {"feed": given.feed, "name": name, "specification": document, "alert_kinds": ["in"], "severity": "critical"}
    query = client.call("POST", "queries/", {**query_body, "channels": channels})["id"]
    token = client.call("POST", "tokens/", {"name": "delivery probe", "scopes": ["ingest"]})
    framed, starts, accepted = Arrivals(), dict[int, int](), dict[int, float]()
    listener = asyncio.create_task(alerts_framed(client, given.feed, query, framed, starts))
    try:
        await asyncio.sleep(SETTLE_S)
        for n in range(2 * given.alerts + 1):
            one = await asyncio.to_thread(step, client, given.feed, token["token"], n % 2 == 1, x, y)
            accepted[one.t] = one.accepted
            await asyncio.sleep(given.pause)
        await asyncio.sleep(SETTLE_S)
    finally:
        listener.cancel()
        client.call("DELETE", f"queries/{query}/")
        client.call("DELETE", f"tokens/{token['id']}/")
    assert len(framed) >= 0.9 * given.alerts, f"{len(framed)} alerts of {given.alerts} were framed"
    for where, came in receivers.came.items():
        assert framed.keys() <= came.keys(), f"{len(framed.keys() - came.keys())} alerts never reached the {where}"
    hops = {f"frame to {where}": spread([came[one] - framed[one] for one in framed]) for where, came in receivers.came.items()}
    whole = {f"202 to {where}": spread([came[one] - accepted[starts[one]] for one in framed]) for where, came in receivers.came.items()}
    return hops | whole


async def written(client: Client, given: argparse.Namespace, channels: list[int], receivers: Receivers) -> dict[str, dict[str, float]]:
    """The same from the frame on, with alerts of a separate world of the benchmark."""
    from bench.desk import World

    def begin() -> World:
        world = World(given.user, severities=("critical",))
        for channel in channels:
            client.call("PATCH", f"channels/{channel}/", {"queries": [world.query.pk]})
        return world

    world = await asyncio.to_thread(begin)
    framed = Arrivals()
    listener = asyncio.create_task(alerts_framed(client, world.feed.name, world.query.pk, framed, {}))
    try:
        await asyncio.sleep(SETTLE_S)
        for _ in range(given.alerts):
            await asyncio.to_thread(world.open, 1, is_pushed=True, is_planned=False)
            await asyncio.sleep(2 * given.pause)
        await asyncio.sleep(SETTLE_S)
    finally:
        listener.cancel()
        await asyncio.to_thread(world.remove)
    assert len(framed) == given.alerts, f"{len(framed)} alerts of {given.alerts} were framed"
    for where, came in receivers.came.items():
        assert framed.keys() <= came.keys(), f"{len(framed.keys() - came.keys())} alerts never reached the {where}"
    return {f"frame to {where}": spread([came[one] - framed[one] for one in framed]) for where, came in receivers.came.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--url", default="http://127.0.0.1:8000")
    parser.add_argument("--user", default="analyst")
    parser.add_argument("--password", required=True)
    parser.add_argument("--feed", default="city")
    parser.add_argument("--alerts", type=int, default=60)
    parser.add_argument("--pause", type=float, default=0.47, help="seconds between two steps")
    parser.add_argument("--without-job", action="store_true")
    parser.add_argument("--smtp-port", type=int, default=2525)
    hops = asyncio.run(measure(parser.parse_args()))
    print(f"load of the machine {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    for hop, figures in hops.items():
        print(f"{hop:24}" + "  ".join(f"{name} {value:7.0f} ms" for name, value in figures.items()))


if __name__ == "__main__":
    main()
