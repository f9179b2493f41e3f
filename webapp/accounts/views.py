"""The account page."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.accounts.api import TokenSerializer
from webapp.accounts.selectors import token_list
from webapp.config.pages import page_data


def account(request: HttpRequest) -> HttpResponse:
    """The person's own settings, teams and tokens."""
    assert request.user.is_authenticated
    tokens = TokenSerializer(token_list(user=request.user), many=True).data
    data = page_data(request, tokens=tokens)
    data["page_data"]["teams"] = data["page_data"]["me"]["teams"]
    return render(request, "pages/account.html", data)
