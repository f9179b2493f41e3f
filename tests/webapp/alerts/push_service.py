"""A push service on loopback (RFC 8030) that accepts one sender (VAPID, RFC 8292), and browsers
that decrypt its messages (RFC 8291)."""

from __future__ import annotations

import base64
import hmac
import json
import os
import threading
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF, HKDFExpand
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

MOST_BYTES = 4_096
DAY_S = 86_400


def text_of(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def bytes_of(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def point_of(key: ec.EllipticCurvePublicKey) -> bytes:
    return key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)


class Browser:
    """A browser: its keys, and the messages that its push service
    delivered, decrypted on arrival."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.private = ec.generate_private_key(ec.SECP256R1())
        self.auth = os.urandom(16)
        self.got: list[tuple[dict[str, str], dict[str, Any]]] = []

    @property
    def keys(self) -> dict[str, str]:
        return {"p256dh": text_of(point_of(self.private.public_key())), "auth": text_of(self.auth)}

    @property
    def key_text(self) -> str:
        return " ".join(self.keys.values())

    def decrypt(self, body: bytes) -> bytes:
        """RFC 8188 with the keys of RFC 8291, for one record, step by step as written there."""
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        sender, record = body[21 : 21 + length], body[21 + length :]
        assert len(record) <= size and len(body) <= MOST_BYTES
        shared = self.private.exchange(ec.ECDH(), ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender))
        info = b"WebPush: info\0" + point_of(self.private.public_key()) + sender
        secret = HKDF(hashes.SHA256(), 32, self.auth, info).derive(shared)
        pseudo = hmac.digest(salt, secret, "sha256")
        key = HKDFExpand(hashes.SHA256(), 16, b"Content-Encoding: aes128gcm\0").derive(pseudo)
        nonce = HKDFExpand(hashes.SHA256(), 12, b"Content-Encoding: nonce\0").derive(pseudo)
        padded = AESGCM(key).decrypt(nonce, record, None).rstrip(b"\0")
        assert padded.endswith(b"\x02"), "the last record"
        return padded[:-1]


class PushService:
    """Accepts messages signed by `sender` (its public key in the browsers' subscriptions), and
    keeps them for known browsers."""

    def __init__(self, sender: str) -> None:
        self.sender = sender
        self.browsers: dict[str, Browser] = {}
        self.statuses: list[int] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = outer.take(self.path, {name.lower(): value for name, value in self.headers.items()}, body)
                self.send_response(status)
                if status == 429:
                    self.send_header("Retry-After", "3600")
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *arguments: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def subscribe(self) -> Browser:
        browser = Browser(f"/push/{text_of(os.urandom(24))}")
        self.browsers[browser.path] = browser
        return browser

    def address_of(self, browser: Browser) -> str:
        return self.origin + browser.path

    def take(self, path: str, headers: Mapping[str, str], body: bytes) -> int:
        """The status: 201 if accepted."""
        if path not in self.browsers:
            return 410
        if not self.is_of_sender(headers.get("authorization", "")):
            return 403
        if not headers.get("ttl", "").isdecimal() or headers.get("content-encoding") != "aes128gcm":
            return 400
        if len(body) > MOST_BYTES:
            return 413
        status = self.statuses.pop(0) if self.statuses else 201
        if status == 201:
            browser = self.browsers[path]
            browser.got.append((dict(headers), json.loads(browser.decrypt(body))))
        return status

    def is_of_sender(self, authorization: str) -> bool:
        """`vapid t=<JWT>, k=<key>`: signed by the sender that the browser subscribed to, for this
        service, for a day at most."""
        scheme, _, rest = authorization.partition(" ")
        parameters = dict(part.strip().split("=", 1) for part in rest.split(","))
        signed, _, mark = parameters["t"].rpartition(".")
        claims = json.loads(bytes_of(signed.split(".")[1]))
        raw = bytes_of(mark)
        key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), bytes_of(self.sender))
        try:
            asn1 = encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
            key.verify(asn1, signed.encode(), ec.ECDSA(hashes.SHA256()))
        except InvalidSignature:
            return False
        for_us = claims["aud"] == self.origin and time.time() < claims["exp"] <= time.time() + DAY_S
        return scheme == "vapid" and parameters["k"] == self.sender and for_us and claims["sub"].startswith(("mailto:", "https:"))

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
