"""The origin of an action: the current request, or a command on the server."""

from __future__ import annotations

import getpass
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from django.http import HttpRequest

from webapp.audit.models import AuthenticationMethod
from webapp.config.addresses import address_of, address_of_scope

SECRET_PARTS = ("token",)
"""Parts of addresses, by their names in `urls.py`, that are secrets: trackers cannot
send theirs in any other way."""


@dataclass
class Work:
    """One request being answered; `entries` counts what was recorded for it."""

    request: HttpRequest
    entries: int = field(default=0)


_work: ContextVar[Work | None] = ContextVar("work", default=None)


@contextmanager
def answering(request: HttpRequest) -> Iterator[Work]:
    """Everything recorded inside belongs to this request."""
    work = Work(request)
    before = _work.set(work)
    try:
        yield work
    finally:
        _work.reset(before)


def present_work() -> Work | None:
    """The request that is being answered, if there is one."""
    return _work.get()


def count_entry() -> None:
    """Counts an entry for the current request, if there is one."""
    work = _work.get()
    if work is not None:
        work.entries += 1


def origin(actor: Any = None) -> dict[str, Any]:
    """The fields of an entry for actor, authentication and address. `actor`: a user known before
    the request has one."""
    work = _work.get()
    return _of_command(actor) if work is None else of_request(work.request, actor)


def of_request(request: HttpRequest, actor: Any = None) -> dict[str, Any]:
    """The same for the given request."""
    user: Any = actor if actor is not None else getattr(request, "user", None)
    known = user is not None and user.pk is not None
    prefix = getattr(getattr(request, "auth", None), "prefix", "")
    return {
        "actor": user.pk if known else None,
        "actor_name": user.get_username() if known else "",
        "means": AuthenticationMethod.TOKEN if prefix else AuthenticationMethod.SESSION if known else AuthenticationMethod.NOBODY,
        "token": prefix,
        "address": _address(address_of(request)),
        "request": f"{request.method} {_path(request)}"[:300],
    }


def _path(request: HttpRequest) -> str:
    """The address without its secret parts."""
    parts = request.resolver_match.kwargs if request.resolver_match is not None else {}
    path = request.path
    for name in SECRET_PARTS:
        if parts.get(name):
            path = path.replace(str(parts[name]), "...")
    return path


def of_socket(scope: dict[str, Any]) -> dict[str, Any]:
    """The same for a WebSocket."""
    user: Any = scope.get("user")
    known = user is not None and user.pk is not None
    prefix = scope.get("token_prefix", "")
    return {
        "actor": user.pk if known else None,
        "actor_name": user.get_username() if known else "",
        "means": AuthenticationMethod.TOKEN if prefix else AuthenticationMethod.SESSION if known else AuthenticationMethod.NOBODY,
        "token": prefix,
        "address": _address(address_of_scope(scope)),
        # The rest of its address may be the secret of a link.
        "request": f"WEBSOCKET {'/'.join(scope['path'].split('/')[:3])}/"[:300],
    }


def _of_command(actor: Any) -> dict[str, Any]:
    program = " ".join([Path(sys.argv[0]).name, *sys.argv[1:2]])
    return {
        "actor": actor.pk if actor is not None else None,
        "actor_name": actor.get_username() if actor is not None else _system_user(),
        "means": AuthenticationMethod.COMMAND,
        "request": program[:300],
    }


def _system_user() -> str:
    """The user of the machine; in a container it may have no name."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return ""


def _address(text: str) -> str | None:
    try:
        return str(ip_address(text))
    except ValueError:
        return None
