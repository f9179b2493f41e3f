"""Credits of an archive keep their text and links, and nothing active."""

from __future__ import annotations

import pytest

from webapp.overlays.credits import safe_credits

REST = 'target="_blank" rel="noopener noreferrer"'


@pytest.mark.parametrize(
    ("markup", "shown"),
    [
        ("Us &amp; them", "Us &amp; them"),
        (
            '<a href="https://osm.org/c?a=1&b" onclick="x()">&copy; OSM</a> and <b>us</b>',
            f'<a href="https://osm.org/c?a=1&amp;b" {REST}>© OSM</a> and us',
        ),
        ('<a href="javascript:x()">© OSM</a>', "© OSM"),
        ('<img src=x onerror="x()">Us<script>x()</script>, too', "Us, too"),
        ('<a href="https://a&quot; onclick=&quot;x()">A', f'<a href="https://a&quot; onclick=&quot;x()" {REST}>A</a>'),
        ("1 < 2 <", "1 &lt; 2 &lt;"),
    ],
)
def test_credits_keep_only_text_and_links(markup: str, shown: str) -> None:
    assert safe_credits(markup) == shown
