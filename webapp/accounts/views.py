"""The account page, and views in front of allauth's."""

from __future__ import annotations

from allauth.account.decorators import secure_admin_login
from allauth.socialaccount.providers.openid_connect import views as oidc
from django.conf import settings
from django.contrib import admin
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.shortcuts import render

from webapp.accounts.api import TokenSerializer
from webapp.accounts.selectors import token_list
from webapp.config.pages import page_data


def account(request: HttpRequest) -> HttpResponse:
    """The person's own settings, teams and tokens."""
    assert request.user.is_authenticated
    tokens = TokenSerializer(token_list(user=request.user), many=True).data
    data = page_data(request, tokens=tokens, token_days=settings.TOKEN_DAYS)
    data["page_data"]["teams"] = data["page_data"]["me"]["teams"]
    return render(request, "pages/account.html", data)


def teams(request: HttpRequest) -> HttpResponse:
    """The user's teams and, for administrators of the server, all teams and all users."""
    return render(request, "pages/teams.html", page_data(request))


admin_login_redirect = secure_admin_login(admin.site.login)
"""The admin's log-in: redirects to the site's; logged-in users who are not staff are refused."""


def provider_log_in(request: HttpRequest, provider_id: str) -> HttpResponseBase:
    """Begins the log-in at a provider of OpenID Connect.

    It is a page that continues by itself, not a redirect: the content security policy allows form
    targets on this site only, and browsers also apply this to redirects of a form's response.
    """
    answer: HttpResponseBase = oidc.login(request, provider_id)
    if isinstance(answer, HttpResponseRedirect) and not answer.url.startswith("/"):
        return render(request, "socialaccount/login_redirect.html", {"redirect_to": answer.url})
    return answer
