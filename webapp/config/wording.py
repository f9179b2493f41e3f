"""The engine's sentences in the reader's language (decision 42).

A Message knows its text and its values. One that was stored, or that came out of a child process,
is only an English sentence: it is recognised by comparing it with the texts of the catalogue.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from django.conf import settings
from django.utils import translation
from django.utils.formats import number_format
from django.utils.translation import gettext
from rest_framework import serializers

from engine.model.messages import PLACE, Message, Value, filled, untranslated

LONGEST = 4_000
"""Longer sentences are not translated."""
DEEPEST = 4
"""Stored sentences are looked for within each other up to this depth."""
LETTERS = 10
"""A stored sentence is recognised by a text that has at least this many letters outside its
values."""
MEANT = frozenset(["what", "known", "kind", "other", "expected", "needed", "remedy", "why", "reason", "entities", "form", "format"])
"""Values of these names may be fixed words, too short to be recognised by their letters."""


def translated(sentence: str) -> str:
    """The sentence in the reader's language; unchanged if it has no translation."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    if language.startswith("en"):
        # Of exactly this type: YAML knows no other.
        return str.__str__(sentence)
    return _translated_at(sentence, language, 0)


def _translated_at(sentence: str, language: str, depth: int) -> str:
    if isinstance(sentence, Message) and sentence.text != untranslated("").text:
        return _translated_message(sentence, language, depth)
    return _of_words(str.__str__(sentence), language, depth) if depth < DEEPEST else sentence


class TranslatedField(serializers.CharField):
    """A sentence that is stored in English and shown in the reader's language."""

    def to_representation(self, value: str) -> str:
        return translated(value)


def _translated_message(message: Message, language: str, depth: int) -> str:
    values = {name: _translated_at(value, language, depth + 1) if isinstance(value, Message) else value for name, value in message.values.items()}
    return filled(gettext(message.text) if message.text else "", values, _grouped)


def _grouped(number: float) -> str:
    return number_format(number, use_l10n=True, force_grouping=True)


@lru_cache(maxsize=2_000)
def _of_words(sentence: str, language: str, depth: int) -> str:
    if not sentence or len(sentence) > LONGEST:
        return sentence
    known = gettext(sentence)
    if known != sentence:
        return known
    message = next(filter(None, (one.read(sentence) for one in _forms(language))), None)
    if message is None:
        return sentence
    return _translated_message(Message.of(message[0], {name: _value(name, value) for name, value in message[1].items()}), language, depth)


def _value(name: str, value: str) -> Value:
    digits = value.replace(",", "")
    if digits.isdigit() and len(digits) < 20 and f"{int(digits):,}" == value:
        return int(digits)
    word = gettext(value) if name in MEANT and value else value
    return word if word != value else untranslated(value)


@dataclass(frozen=True)
class _Form:
    """A text with placeholders: the words between them, and their names."""

    text: str
    between: tuple[str, ...]
    names: tuple[str, ...]

    def read(self, sentence: str) -> tuple[str, Mapping[str, str]] | None:
        """The text of the catalogue and the values that give this sentence."""
        first, *inner, last = self.between
        if not sentence.startswith(first) or not sentence.endswith(last):
            return None
        values: dict[str, str] = {}
        begin, end = len(first), len(sentence) - len(last)
        for name, part in zip(self.names, [*inner, None], strict=True):
            at = end if part is None else sentence.find(part, begin, end)
            if at < begin or values.setdefault(name, sentence[begin:at]) != sentence[begin:at]:
                return None
            begin = at + len(part or "")
        return self.text, values


@cache
def _forms(language: str) -> tuple[_Form, ...]:
    """The texts with placeholders, those with the most letters first."""
    forms = []
    for text in _catalogue_texts(Path(settings.LOCALE_PATHS[0]) / language.partition("-")[0] / "LC_MESSAGES" / "django.mo"):
        pieces = PLACE.split(text)
        between, names = tuple(pieces[::3]), tuple(pieces[1::3])
        if names and len(re.sub(r"\W", "", "".join(between))) >= LETTERS:
            forms.append(_Form(text, between, names))
    return tuple(sorted(forms, key=lambda form: -len("".join(form.between))))


def _catalogue_texts(path: Path) -> Iterator[str]:
    """The texts of a compiled catalogue (the format: GNU gettext, "The Format of GNU MO Files")."""
    if not path.exists():
        return
    data = path.read_bytes()
    count, table = struct.unpack_from("<II", data, 8)
    for number in range(count):
        length, at = struct.unpack_from("<II", data, table + 8 * number)
        yield data[at : at + length].decode()
