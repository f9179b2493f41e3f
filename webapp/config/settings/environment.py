"""The environment that all settings are read from."""

import json
from pathlib import Path

import environ
from django.core.exceptions import ImproperlyConfigured

ROOT = Path(__file__).resolve().parents[3]
# Where NAME_FILE is set, NAME is the content of that file: containers and a vault's agent provide
# secrets as files.
env = environ.FileAwareEnv()


def flag(name: str, default: bool) -> bool:
    """The variable `name` as a boolean."""
    return bool(env.bool(name, default=default))


def text(name: str, default: str = "") -> str:
    """The variable `name` as text."""
    # A file of a secret usually ends with a line break.
    return str(env.str(name, default=default)).rstrip("\r\n")


def names(name: str, default: list[str]) -> list[str]:
    """The variable `name` as a list separated by commas."""
    return [part.strip() for part in env.list(name, default=default) if part.strip()]


def number(name: str, default: int, *, least: int, most: int) -> int:
    """The variable `name` as a whole number from `least` to `most`. Raises ImproperlyConfigured."""
    given = text(name)
    try:
        value = int(given) if given else default
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        raise ImproperlyConfigured(f"{name} is a whole number from {least} to {most}, not {given!r}.")
    return value


def base_maps(name: str) -> list[dict[str, str]]:
    """The variable `name` as maps to choose from. Raises ImproperlyConfigured with the reason."""
    try:
        maps = json.loads(text(name, "[]"))
    except json.JSONDecodeError as error:
        raise ImproperlyConfigured(f"{name} is no JSON: {error}") from error
    for one in maps if isinstance(maps, list) else [None]:
        if not _is_map(one):
            forms = '{"name", "tiles"}, {"name", "wms", "layers"} or {"name", "pmtiles"}'
            raise ImproperlyConfigured(f'{name} is a list of {forms}, each perhaps with "attribution"')
    return list(maps)


def origin_of(address: str) -> str:
    """Scheme and host of an address with placeholders, for the content security policy."""
    return "/".join(address.replace("{s}", "*").split("/")[:3])


def _is_map(one: object) -> bool:
    if not isinstance(one, dict) or not all(isinstance(value, str) for value in one.values()) or not one.get("name"):
        return False
    return set(one) - {"name", "attribution"} in ({"tiles"}, {"wms", "layers"}, {"pmtiles"})
