"""The page of the audit log."""

from __future__ import annotations

from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from webapp.accounts.audit_log import reads_entries
from webapp.config.pages import page_data


def audit(request: HttpRequest) -> HttpResponse:
    """Who did what; for administrators."""
    if not reads_entries(user=request.user):
        raise PermissionDenied
    return render(request, "pages/audit.html", page_data(request))
