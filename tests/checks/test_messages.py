"""Messages and their translations name the values in their texts (decision 42)."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from engine.model.messages import PLACE

ROOT = Path(__file__).resolve().parents[2]
CATALOGUES = sorted((ROOT / "webapp" / "locale").glob("*/LC_MESSAGES/django.po"))


def _messages() -> Iterator[tuple[str, ast.Call]]:
    for folder in ("engine", "webapp"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            code = path.read_text(encoding="utf-8")
            if "engine.model.messages import" not in code and path.name != "messages.py":
                continue
            for node in ast.walk(ast.parse(code)):
                if isinstance(node, ast.Call) and (node.func.id if isinstance(node.func, ast.Name) else "") == "Message":
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", node


def places(text: str) -> set[str]:
    return {match[0] for match in PLACE.finditer(text)}


def test_each_message_text_is_a_literal_and_names_its_values() -> None:
    wrong, count = [], 0
    for at, call in _messages():
        count += 1
        text = call.args[0] if len(call.args) == 1 else None
        if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
            wrong.append(f"{at}: the text is no literal")
        elif {match[1] for match in PLACE.finditer(text.value)} != {keyword.arg for keyword in call.keywords}:
            wrong.append(f"{at}: the values are not those of the text")
    assert wrong == [] and count > 700


def test_translations_have_the_placeholders_of_their_texts() -> None:
    wrong = []
    for path in CATALOGUES:
        for text, translated in re.findall(r'^msgid "(.+)"\nmsgstr "(.*)"$', path.read_text(encoding="utf-8"), re.M):
            if places(text) != places(translated):
                wrong.append(f"{path.parts[-3]}: {text}")
    assert wrong == [] and CATALOGUES
