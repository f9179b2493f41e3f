"""Programs on the live socket are authenticated by the handshake's token instead of a session."""

from __future__ import annotations

from typing import Any

from channels.db import database_sync_to_async

from webapp.accounts.models import Scope
from webapp.accounts.services import token_authenticate
from webapp.live.origin import bearer


class TokenLogin:
    """Puts the token's user into the scope, what the token begins with, and its text as `bearer`.

    The token is checked again as long as the socket is open.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        text = bearer(scope.get("headers", ()))
        if text is not None:
            token = await database_sync_to_async(token_authenticate)(text, Scope.READ)
            scope = {**scope, "bearer": text, "user": None, "token_prefix": ""}
            if token is not None:
                scope |= {"user": token.user, "token_prefix": token.prefix}
        await self.application(scope, receive, send)
