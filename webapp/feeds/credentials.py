"""Tokens of programs that run on the server's machine, kept in files that only their user can
read."""

from __future__ import annotations

import os
from pathlib import Path

from django.conf import settings


def token_path(name: str) -> Path:
    """Where the token of the program `name` is kept."""
    return Path(settings.VAR) / "tokens" / name


def token_keep(name: str, text: str) -> Path:
    """Writes the token without ever exposing it to others; returns its path."""
    path = token_path(name)
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(text + "\n")
    return path


def token_kept(name: str) -> str | None:
    """The token kept for `name`, null without one."""
    try:
        return token_path(name).read_text().strip()
    except FileNotFoundError:
        return None


def server_url() -> str:
    """The address of the web server for programs on this machine: its port, or its name if
    it is served only by TLS."""
    if settings.SECURE_SSL_REDIRECT:
        return f"https://{settings.ALLOWED_HOSTS[0].removeprefix('.')}"
    return f"http://127.0.0.1:{os.environ.get('VEDETTE_PORT', '8000')}"
