"""An archive's attribution as HTML that is safe to show: texts, and links to other pages."""

from __future__ import annotations

from html import escape
from html.parser import HTMLParser

SILENT = ("script", "style")
"""The content of these elements is not text."""


def safe_credits(markup: str) -> str:
    """The texts of `markup` and its links; every other element, and every
    other attribute, is left out."""
    reader = _Reader()
    reader.feed(markup)
    reader.close()
    return "".join(reader.parts)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.parts: list[str] = []
        self._href: str | None = None
        self._silent = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent = tag in SILENT
        if tag == "a":
            href = dict(attrs).get("href") or ""
            self._href = href if href.startswith(("https://", "http://")) else None

    def handle_endtag(self, tag: str) -> None:
        self._silent = False
        if tag == "a":
            self._href = None

    def handle_data(self, data: str) -> None:
        if self._silent:
            return
        text = escape(data)
        self.parts.append(text if self._href is None else f'<a href="{escape(self._href)}" target="_blank" rel="noopener noreferrer">{text}</a>')
