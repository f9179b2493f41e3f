"""Kinds of answers in the reader's language, as the pages name them."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

KINDS: Mapping[str, Promise] = {
    "in": gettext_lazy("Entered"),
    "out": gettext_lazy("Left"),
    "passed": gettext_lazy("Passed through"),
    "returned": gettext_lazy("Left and came back"),
    "stayed_in": gettext_lazy("Stayed in"),
    "stayed_out": gettext_lazy("Stayed out"),
    "occupied": gettext_lazy("Number reached"),
    "met": gettext_lazy("Met"),
    "arriving": gettext_lazy("On its way in"),
    "match": gettext_lazy("Match"),
    "detection": gettext_lazy("Detected"),
}
"""The kinds of all families but the calculus, whose programs name their answers."""


def kind_name(kind: str) -> str:
    """`Stayed in`; what a program names is shown as it is named, with spaces.

    >>> kind_name("illegal_parking")
    'illegal parking'
    """
    return str(KINDS.get(kind, kind.replace("_", " ")))
