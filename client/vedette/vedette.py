"""The way in."""

from __future__ import annotations

from typing import Any

from vedette.answers import POLL_S, Answers
from vedette.connection import Connection, Fault, Refused
from vedette.feeds import Feed

NOT_FOUND = 404


class Vedette:
    """A server. `retry_for`: for how many seconds repeatable requests are repeated; `timeout`:
    the limit for one response.

    Tokens are made on the page Account: the scope ingest sends rows, read reads answers.
    """

    def __init__(self, url: str, token: str, *, retry_for: float = 600.0, timeout: float = 30.0) -> None:
        self._connection = Connection(url, token, retry_for=retry_for, timeout=timeout)

    def feed(self, name: str) -> Feed:
        """A feed, by its name; sends no request yet."""
        return Feed(self._connection, name)

    def answers(self, query: int | str, *, after: int | None = None, poll: float = POLL_S) -> Answers:
        """The answers of a query, by its id or its name. Raises Refused when there is
        none, or several of that name."""
        return Answers(self._connection, self._query(query), after=after, poll=poll)

    def close(self) -> None:
        """Ends the connection of this thread; the next request makes another."""
        self._connection.close()

    def _query(self, query: int | str) -> dict[str, Any]:
        if isinstance(query, int):
            found: dict[str, Any] = self._connection.get(f"queries/{query}/")
            return found
        named: list[dict[str, Any]] = []
        page = 1
        while True:
            answer = self._connection.get("queries/", page=page, page_size=1_000)
            named += [one for one in answer["results"] if one["name"] == query]
            if not answer["next"]:
                break
            page += 1
        if len(named) != 1:
            problem = "There is no query" if not named else f"There are {len(named)} queries"
            raise Refused(NOT_FOUND, [Fault("", f"{problem} named {query!r}{': take the id' if named else ''}.")])
        return named[0]
