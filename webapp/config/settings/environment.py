"""The environment that all settings are read from."""

from pathlib import Path

import environ

ROOT = Path(__file__).resolve().parents[3]
env = environ.Env()


def flag(name: str, default: bool) -> bool:
    """The variable `name` as a truth value."""
    return bool(env.bool(name, default=default))


def text(name: str, default: str = "") -> str:
    """The variable `name` as text."""
    return str(env.str(name, default=default))


def names(name: str, default: list[str]) -> list[str]:
    """The variable `name` as a list separated by commas."""
    return [part.strip() for part in env.list(name, default=default) if part.strip()]


def number(name: str, default: int) -> int:
    """The variable `name` as a whole number."""
    return int(env.int(name, default=default))
