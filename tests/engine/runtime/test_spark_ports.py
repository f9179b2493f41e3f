"""The ports of a local Spark driver answer no client without its secret."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import textwrap

import psutil
import pytest

from webapp.platform.java import spark_environment

pytestmark = pytest.mark.spark

DRIVER = """
from engine.runtime import spark
session = spark.session("ports", cores=1, memory="512m")
gateway = session.sparkContext._gateway
print(gateway.proc.pid, gateway.gateway_parameters.port, flush=True)
input()
session.stop()
"""
RPC_REQUEST, RPC_FAILURE = 3, 5


def asked(port: int) -> bytes:
    """The response to a call of Spark's protocol without a secret."""
    body = b"let me in"
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        connection.sendall(struct.pack(">QbQi", 8 + 1 + 8 + 4 + len(body), RPC_REQUEST, 7, len(body)) + body)
        length = struct.unpack(">Q", connection.recv(8, socket.MSG_WAITALL))[0]
        return connection.recv(length - 8, socket.MSG_WAITALL)


def test_a_caller_without_the_secret_is_refused_on_every_port() -> None:
    environment = {**os.environ, **spark_environment()}
    command = [sys.executable, "-c", textwrap.dedent(DRIVER)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as driver:
        assert driver.stdout is not None and driver.stdin is not None
        java, python_port = map(int, driver.stdout.readline().split())
        listening = {at.laddr for at in psutil.Process(java).net_connections("tcp") if at.status == psutil.CONN_LISTEN}
        # The port for the driver's own Python asks for a secret in a separate protocol (py4j).
        answers = [asked(at.port) for at in listening if at.port != python_port]
        driver.communicate("\n")
    assert {at.ip.removeprefix("::ffff:") for at in listening} == {"127.0.0.1"}
    assert len(answers) == 2
    for answer in answers:
        assert answer[0] == RPC_FAILURE and b"Expected SaslMessage" in answer, answer
