"""Links whose secret follows their `#`, as the page `opening` opens them."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit


def opened(client: Any, link: str) -> Any:
    """The response to the link's secret; the page that it opens, if there is one."""
    parts = urlsplit(link)
    assert parts.fragment and client.get(parts.path).status_code == 200
    answer = client.post(parts.path, {"secret": parts.fragment}, **({"format": "multipart"} if hasattr(client, "credentials") else {}))
    return client.get(answer["Location"]) if answer.status_code == 302 else answer


def page_of(client: Any, link: str) -> str:
    """The address of the page that the link opens in this session."""
    return str(opened(client, link).request["PATH_INFO"])
