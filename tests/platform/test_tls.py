"""PostgreSQL and Redis over TLS, configured by their URLs: a server with a certificate of another
authority is refused."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from webapp.platform.folders import ROOT

pytestmark = pytest.mark.services

POSTGRES = """
import django; django.setup()
from django.db import connection
connection.ensure_connection()
print(connection.connection.info.ssl_in_use, connection.connection.info.ssl_attribute("protocol"))
"""
REDIS = """
import django; django.setup()
from asgiref.sync import async_to_sync
from channels.layers import get_channel_layer
from django.core.cache import cache
from webapp.config.celery import app
from webapp.live.positions import client
cache.set("key", "of the cache")
async def through_the_layer():
    layer = get_channel_layer()
    name = await layer.new_channel()
    await layer.send(name, {"type": "of.the.layer"})
    return await layer.receive(name)
with app.connection_for_write() as broker:
    broker.ensure_connection(max_retries=1)
    queue = broker.SimpleQueue("tls"); queue.put("of the broker"); taken = queue.get(timeout=5); taken.ack()
with client() as positions:
    print(cache.get("key"), async_to_sync(through_the_layer)()["type"], taken.payload, positions.ping())
"""


def signed(subject: str, key: ec.EllipticCurvePrivateKey, issuer: str, issuer_key: ec.EllipticCurvePrivateKey, *, authority: bool) -> bytes:
    now = datetime.datetime.now(datetime.UTC)
    name = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)]) for text in (subject, issuer)]
    made = (
        x509.CertificateBuilder()
        .subject_name(name[0])
        .issuer_name(name[1])
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
    )
    if not authority:
        made = made.add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
    return made.sign(issuer_key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with `ca.pem`, `server.pem` and `client.pem` signed by it with their keys, and
    `other.pem` of an unrelated authority."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, server, client, other = (ec.generate_private_key(ec.SECP256R1()) for _ in range(4))
    (folder / "ca.pem").write_bytes(signed("ours", authority, "ours", authority, authority=True))
    (folder / "other.pem").write_bytes(signed("other", other, "other", other, authority=True))
    for name, key in (("server", server), ("client", client)):
        secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        (folder / f"{name}.pem").write_bytes(signed(name, key, "ours", authority, authority=False) + secret)
        (folder / f"{name}.pem").chmod(0o600)
    return folder


@contextmanager
def behind_tls(port: int, certificates: Path, *, asked_first: bool = False, of_ours: bool = False) -> Iterator[int]:
    """The port of a TLS terminator before the real server, whose embedded build has none.
    `asked_first`: PostgreSQL's request for TLS.

    `of_ours`: clients without a certificate of our authority are refused.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates / "server.pem")
    if of_ours:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(certificates / "ca.pem")
    listener = socket.create_server(("127.0.0.1", 0))

    def copy(source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65536):
                target.sendall(data)
        for one in (source, target):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def serve(plain: socket.socket) -> None:
        with suppress(OSError):
            if asked_first:
                plain.recv(8, socket.MSG_WAITALL)
                plain.sendall(b"S")
            outer = context.wrap_socket(plain, server_side=True)
            inner = socket.create_connection(("127.0.0.1", port))
            threading.Thread(target=copy, args=(inner, outer), daemon=True).start()
            copy(outer, inner)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.close()


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """The output of the program, run with our settings and these variables."""
    variables = {**os.environ, "DJANGO_SETTINGS_MODULE": "webapp.config.settings", "SECRET_KEY": "x", **environment}
    return subprocess.run([sys.executable, "-c", program], cwd=ROOT, env=variables, capture_output=True, text=True, check=False, timeout=60)


def test_postgresql_is_reached_over_tls_and_only_with_our_certificate(postgres_url: str, certificates: Path) -> None:
    parts = urlsplit(postgres_url)
    assert parts.port is not None
    with behind_tls(parts.port, certificates, asked_first=True) as port:
        url = f"postgres://{parts.netloc.rpartition('@')[0]}@localhost:{port}{parts.path}?sslmode=verify-full&sslrootcert={certificates}"
        done = run(POSTGRES, DATABASE_URL=f"{url}/ca.pem")
        assert done.stdout.startswith("True TLSv1."), done.stderr
        refused = run(POSTGRES, DATABASE_URL=f"{url}/other.pem")
    assert refused.returncode != 0 and "certificate verify failed" in refused.stderr


def test_cache_layer_broker_and_positions_reach_redis_over_tls(redis_url: str, certificates: Path) -> None:
    parts = urlsplit(redis_url)
    assert parts.port is not None
    with behind_tls(parts.port, certificates) as port:
        url = f"rediss://{parts.netloc.rpartition('@')[0]}@localhost:{port}/0?ssl_cert_reqs=required&ssl_ca_certs={certificates}"
        done = run(REDIS, REDIS_URL=f"{url}/ca.pem")
        assert done.stdout.strip() == "of the cache of.the.layer of the broker True", done.stderr
        refused = run(REDIS, REDIS_URL=f"{url}/other.pem")
    assert refused.returncode != 0 and "CERTIFICATE_VERIFY_FAILED" in refused.stderr


def test_our_processes_send_the_client_certificates_that_the_urls_name(postgres_url: str, redis_url: str, certificates: Path) -> None:
    """Instead of permanent passwords (OWASP ASVS 5, 13.2.1)."""
    database, redis = urlsplit(postgres_url), urlsplit(redis_url)
    assert database.port is not None and redis.port is not None
    client = certificates / "client.pem"
    with (
        behind_tls(database.port, certificates, asked_first=True, of_ours=True) as port,
        behind_tls(redis.port, certificates, of_ours=True) as redis_port,
    ):
        url = f"postgres://{database.netloc.rpartition('@')[0]}@localhost:{port}{database.path}?sslmode=verify-full&sslrootcert={certificates}/ca.pem"
        assert run(POSTGRES, DATABASE_URL=url).returncode != 0
        done = run(POSTGRES, DATABASE_URL=f"{url}&sslcert={client}&sslkey={client}")
        assert done.stdout.startswith("True TLSv1."), done.stderr
        url = f"rediss://{redis.netloc.rpartition('@')[0]}@localhost:{redis_port}/0?ssl_cert_reqs=required&ssl_ca_certs={certificates}/ca.pem"
        found = run(REDIS, REDIS_URL=f"{url}&ssl_certfile={client}&ssl_keyfile={client}")
        assert found.stdout.strip() == "of the cache of.the.layer of the broker True", found.stderr
