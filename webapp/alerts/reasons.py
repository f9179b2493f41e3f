"""Why a message did not leave, in words for the log of deliveries."""

from __future__ import annotations

import socket
import ssl

MOST = 300
"""Characters that a delivery keeps."""


def reason_of(error: Exception) -> str:
    """What the person who keeps the channel can do something about comes in a sentence; all else as it is."""
    match error:
        case socket.gaierror():
            text = f"The name of the receiver's host has no address: check it ({error.strerror})."
        case ConnectionRefusedError():
            text = "Nothing takes connections at the receiver's address and port (connection refused)."
        case ssl.SSLCertVerificationError():
            text = f"The receiver's certificate is not trusted: {getattr(error, 'verify_message', error.strerror)}."
        case TimeoutError():
            text = "The receiver did not answer in time."
        case _:
            text = f"{type(error).__name__}: {error}"
    return text[:MOST]
