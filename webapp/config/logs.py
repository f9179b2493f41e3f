"""How lines of the process's log are written: times in UTC, and each message one line, also if it
quotes untrusted text."""

from __future__ import annotations

import logging
import re
import time
from typing import Any

TOKEN = re.compile(r"(vdt_[\w-]{4})[\w-]+")
"""A token of the API. Trackers have theirs in the address, which the log quotes: the
part that names it is kept."""


class OneLine(logging.Formatter):
    """Control characters of a message are escaped as in Python (`\\n`): input cannot add a line
    that looks like an entry."""

    converter = staticmethod(time.gmtime)
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = _masked(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: Any) -> str:
        """The lines of a trace are indented: none of them looks like an entry, even if the error
        quotes untrusted text."""
        return "\n".join(f"  {_masked(line)}" for line in super().formatException(ei).splitlines())


def _masked(text: str) -> str:
    return TOKEN.sub(r"\1...", _escaped(text))


def _escaped(text: str) -> str:
    return "".join(sign if sign.isprintable() or sign == " " else sign.encode("unicode_escape").decode() for sign in text)
