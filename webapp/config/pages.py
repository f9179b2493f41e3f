"""The data of every page's template for its scripts."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from webapp.accounts.selectors import me
from webapp.alerts.selectors import alerts_waiting
from webapp.feeds.selectors import feeds_for_page


def page_data(request: HttpRequest, **more: Any) -> dict[str, Any]:
    """The template's context: `page_data`, to be written as JSON (`docs/api.md`, Pages)."""
    user: Any = request.user
    shown = {"me": me(user), "feeds": feeds_for_page(user=user), "is_watching": user.watches.exists(), "waiting": alerts_waiting(user=user)}
    return {"page_data": {**shown, **more}}
