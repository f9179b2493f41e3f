"""The explanations of failed deliveries."""

from __future__ import annotations

import http.client
import socket
import ssl

import pytest

from webapp.alerts.reasons import reason_of
from webapp.alerts.webhooks import post_bytes


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (socket.gaierror(-2, "Name or service not known"), "The name of the receiver's host has no address: check it (Name or service not known)."),
        (http.client.RemoteDisconnected("Remote end closed connection without response"), "The receiver closed the connection without an answer."),
        (ConnectionRefusedError(111, "Connection refused"), "Nothing listens at the receiver's address and port (connection refused)."),
        (ssl.SSLCertVerificationError(1, "certificate verify failed"), "The receiver's certificate is not trusted: certificate verify failed."),
        (TimeoutError("timed out"), "The receiver did not answer in time."),
        (OSError(101, "Network is unreachable"), "OSError: [Errno 101] Network is unreachable"),
    ],
)
def test_errors_that_users_can_mend_are_explained_in_a_sentence(error: Exception, words: str) -> None:
    assert reason_of(error) == words


def test_a_webhook_with_an_unknown_host_is_explained() -> None:
    answer = post_bytes("https://nowhere.invalid/alerts", b"{}", {})
    assert answer.error.startswith("The name of the receiver's host has no address")
