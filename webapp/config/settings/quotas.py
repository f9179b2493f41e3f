"""How much one user and one team may have:
`VEDETTE_USER_QUOTAS=queries=1000,feeds=5` changes the named ones."""

from webapp.config.settings.environment import names, number, text


def quotas(variable: str, **defaults: int) -> dict[str, int]:
    """The defaults, overridden by the variable. Raises ValueError for an unknown quota."""
    for part in names(variable, []):
        name, _, limit = part.partition("=")
        if name.strip() not in defaults:
            raise ValueError(f"{variable} sets some of {', '.join(defaults)}, each as name=number; not {part!r}")
        defaults[name.strip()] = int(limit)
    return defaults


# `uploads`: megabytes of files that wait or are being loaded. `vertices`: of all
# stored regions together; `rows`: a second, over HTTP, on average; `messages`: sent to channels, in
# an hour.
USER_QUOTAS = quotas(
    "VEDETTE_USER_QUOTAS",
    queries=200_000, vertices=5_000_000, feeds=200, tokens=100, rows=500_000, uploads=4_000, channels=20, rules=200, messages=600,
)  # fmt: skip
TEAM_QUOTAS = quotas(
    "VEDETTE_TEAM_QUOTAS", queries=500_000, vertices=20_000_000, feeds=1_000, jobs=1, rows=1_000_000, channels=50, rules=500, messages=3_000
)

# The greatest age of a token, in days.
TOKEN_DAYS = number("VEDETTE_TOKEN_DAYS", 365, least=1, most=36_500)
# Requests with rows of one user.
INGEST_RATE = text("VEDETTE_INGEST_RATE", "6000/min")
