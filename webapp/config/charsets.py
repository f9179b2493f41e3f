"""The encoding that a request declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.core.handlers.asgi import ASGIRequest
from django.utils.http import parse_header_parameters


def is_of_texts(charset: str) -> bool:
    """Whether any bytes can be read as text in this encoding of Python's.

    >>> [is_of_texts(name) for name in ("utf-8", "latin-1", "zlib", "idna", "punycode")]
    [True, True, False, False, False]
    """
    try:
        b"\xff=1".decode(charset, "replace")
    except (LookupError, ValueError):
        return False
    return True


class TextRequest(ASGIRequest):
    """A request as Django takes it, which fails for `charset=zlib` and others that are no encodings
    of texts, and for parameters that cannot be decoded: they are ignored, as Django ignores an
    unknown encoding."""

    def _set_content_type_params(self, meta: Mapping[str, Any]) -> None:
        header = meta.get("CONTENT_TYPE", "")
        try:
            self.content_type, self.content_params = parse_header_parameters(header)
        except ValueError:
            self.content_type, self.content_params = header.partition(";")[0].strip().lower(), {}
            return
        if is_of_texts(self.content_params.get("charset", "utf-8")):
            super()._set_content_type_params(meta)  # type: ignore[misc]  # not in the stubs
