"""Authentication of API requests, and the scopes of tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.authentication import SessionAuthentication as DrfSessionAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from engine.model.messages import Message
from webapp.accounts.models import ApiToken, Scope, User
from webapp.accounts.services import token_authenticate
from webapp.config.wording import translated

if TYPE_CHECKING:
    # At run time the views import this module.
    from rest_framework.views import APIView


class TokenAuthentication(BaseAuthentication):
    """`Authorization: Bearer <token>`; no cookie is used, so no CSRF check is needed."""

    def authenticate(self, request: Request) -> tuple[User, ApiToken] | None:
        parts = get_authorization_header(request).split()
        if not parts or parts[0].lower() != b"bearer":
            return None
        token = token_authenticate(parts[1].decode("ascii", "replace")) if len(parts) == 2 else None
        if token is None:
            raise AuthenticationFailed(Message("The token is unknown or has expired."))
        return token.user, token

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"


class SessionAuthentication(DrfSessionAuthentication):
    """The browser's session, with CSRF checked on every unsafe method."""

    def authenticate_header(self, request: Request) -> str:
        # "Not logged in" is a 401, not a 403.
        return "Session"


class LoggedInWithinScope(BasePermission):
    """The user is logged in; a token also needs the scope: the view's `token_scope`, else `read`
    for safe methods and `write` for others."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        if not request.user.is_authenticated:
            return False
        if not isinstance(request.auth, ApiToken):
            return True
        needed = getattr(view, "token_scope", None) or (Scope.READ if request.method in SAFE_METHODS else Scope.WRITE)
        lacking = Message("The token lacks the scope {scope}: make one that has it, on the page Account or with manage.py token.", scope=needed)
        self.message = translated(lacking)
        return needed in request.auth.scopes


def person(request: Request) -> User:
    """The user who sends the request, in views that need a log-in."""
    user = request.user
    assert isinstance(user, User)
    return user


class TokenScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the token is described in the OpenAPI document."""

    target_class = "webapp.accounts.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "http", "scheme": "bearer", "description": "A token made at /account/, with scopes read, write, ingest."}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the session is described in the OpenAPI document."""

    target_class = "webapp.accounts.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "session"}
