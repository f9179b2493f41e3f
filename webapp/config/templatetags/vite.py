"""`{% vite "live" %}`: the script and style elements of one entry of the front end."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

register = template.Library()


@register.simple_tag
def vite(entry: str) -> SafeString:
    """The elements for `frontend/src/pages/<entry>.ts`: from Vite's own server while developing,
    else from the built manifest."""
    source = f"src/pages/{entry}.ts"
    if settings.VITE_SERVER:
        addresses = [f"{settings.VITE_SERVER}/@vite/client", f"{settings.VITE_SERVER}/{source}"]
        return format_html_join("\n", '<script type="module" src="{}"></script>', ((address,) for address in addresses))
    manifest = _manifest()
    if source not in manifest:
        return format_html("<!-- The front end is not built: run make setup. -->")
    chunks = [manifest[key] for key in _chunks(manifest, source)]
    styles = dict.fromkeys(name for chunk in chunks for name in chunk.get("css", ()))
    links = [("stylesheet", _address(name)) for name in styles]
    # Else the browser learns what a chunk imports only when it has read that chunk, step by step.
    links += [("modulepreload", _address(chunk["file"])) for chunk in chunks[:-1]]
    return format_html(
        '{}\n<script type="module" src="{}"></script>',
        format_html_join("\n", '<link rel="{}" href="{}">', links),
        _address(manifest[source]["file"]),
    )


def _address(name: str) -> str:
    return static(settings.VITE_PREFIX + name)


def _chunks(manifest: Mapping[str, Any], key: str, seen: set[str] | None = None) -> Iterator[str]:
    """The keys of the chunks that this one imports, directly or not; then its own."""
    seen = set() if seen is None else seen
    if key in seen:
        return
    seen.add(key)
    for imported in manifest[key].get("imports", ()):
        yield from _chunks(manifest, imported, seen)
    yield key


def _manifest() -> Mapping[str, Any]:
    path = Path(settings.VITE_MANIFEST)
    try:
        return _read(path, path.stat().st_mtime_ns)
    except FileNotFoundError:
        return {}


@lru_cache(maxsize=2)
def _read(path: Path, changed: int) -> Mapping[str, Any]:
    """The manifest as it was at the modification time `changed`."""
    manifest: Mapping[str, Any] = json.loads(path.read_text())
    return manifest
