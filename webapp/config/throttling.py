"""How many requests one user or token may send; answers 429 with Retry-After beyond that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.request import Request
from rest_framework.throttling import SimpleRateThrottle, UserRateThrottle

if TYPE_CHECKING:
    # At run time the views import this module.
    from rest_framework.views import APIView


class PerUser(UserRateThrottle):
    """All requests of one user together."""

    scope = "user"


class PerAction(SimpleRateThrottle):
    """Expensive actions of one user: a view names its rate in `throttle_action`."""

    def __init__(self) -> None:
        """The rate is known when the view is."""

    def allow_request(self, request: Request, view: APIView) -> bool:
        self.scope = getattr(view, "throttle_action", None)
        if self.scope is None:
            return True
        self.rate = self.get_rate()
        self.num_requests, self.duration = self.parse_rate(self.rate)
        return bool(super().allow_request(request, view))

    def get_cache_key(self, request: Request, view: APIView) -> str:
        return self.cache_format % {"scope": self.scope, "ident": request.user.pk or self.get_ident(request)}
