"""The pages of queries."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from webapp.cage.warm_pool import ENGINE, PARSERS
from webapp.config.pages import page_data
from webapp.queries.api import QuerySerializer
from webapp.queries.families import families
from webapp.queries.selectors import query_list


def queries(request: HttpRequest) -> HttpResponse:
    """The list."""
    return render(request, "pages/queries.html", page_data(request, families=families()))


def query_new(request: HttpRequest) -> HttpResponse:
    """An empty form."""
    ENGINE.prepare()
    PARSERS.prepare()
    return render(request, "pages/query.html", page_data(request, query=None, families=families()))


def query(request: HttpRequest, pk: int) -> HttpResponse:
    """A query with its form."""
    ENGINE.prepare()
    row = get_object_or_404(query_list(user=request.user), pk=pk)
    data = QuerySerializer(row, context={"request": request}).data
    return render(request, "pages/query.html", page_data(request, query=data, families=families()))
