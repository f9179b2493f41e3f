"""Django's templates can be read in an editor, and their tags are read by Django."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEMPLATES = sorted((ROOT / "webapp").rglob("*.html"))
WIDTH = 140
"""As for the front end. A long text is wrapped in `{% blocktranslate trimmed %}`, which has the
msgid of the text in one line."""


def test_lines_are_wrapped_and_hold_whole_tags() -> None:
    """Django shows a tag with a line break in it as text."""
    wrong = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in TEMPLATES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if len(line) > WIDTH or any(line.count(begin) != line.count(end) for begin, end in (("{%", "%}"), ("{{", "}}"), ("{#", "#}")))
    ]
    assert wrong == [] and TEMPLATES
