"""Why a message could not be sent, for the log of deliveries."""

from __future__ import annotations

import socket
import ssl

from engine.model.messages import Message, untranslated

LONGEST_REASON = 300
"""The maximum length of a stored reason."""


def reason_of(error: Exception) -> Message:
    """A sentence for failures that the channel's owner can fix; other errors unchanged."""
    match error:
        case socket.gaierror():
            return Message("The name of the receiver's host has no address: check it ({why}).", why=error.strerror)
        case ConnectionRefusedError():
            return Message("Nothing listens at the receiver's address and port (connection refused).")
        case ConnectionResetError():
            return Message("The receiver closed the connection without an answer.")
        case ssl.SSLCertVerificationError():
            return Message("The receiver's certificate is not trusted: {why}.", why=getattr(error, "verify_message", error.strerror))
        case TimeoutError():
            return Message("The receiver did not answer in time.")
        case _:
            return untranslated(f"{type(error).__name__}: {error}"[:LONGEST_REASON])
