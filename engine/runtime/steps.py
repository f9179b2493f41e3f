"""How many rows are evaluated and stored at a time: memory stays bounded for any number of
answers."""

from __future__ import annotations

from engine.model.messages import Message
from engine.operator import QueryStopped
from engine.runtime.evaluator import Outcome

STEP_ROWS = 65_536
"""The most rows of a step: all answers of one step are in memory at once."""
COMMIT_ANSWERS = 100_000
"""A batch that finds more is stored in several transactions, of about so many answers each."""
MOST_ANSWERS = 250_000
"""A query that finds more in one step is stopped: its answers alone would take a quarter of a
gigabyte before they are stored."""


def bounded(outcome: Outcome, rows: int) -> Outcome:
    """The outcome of a step of `rows` rows, checked. Raises QueryStopped when one query
    found more than MOST_ANSWERS."""
    if outcome.changes.num_rows > MOST_ANSWERS:
        counted = outcome.changes.group_by(["query", "version"]).aggregate([([], "count_all")]).sort_by([("count_all", "descending")])
        most = counted.slice(0, 1).to_pylist()[0]
        if most["count_all"] > MOST_ANSWERS:
            reason = Message(
                "it found {count:,} answers in {rows:,} rows; at most {most:,} are stored at a time",
                count=most["count_all"],
                rows=rows,
                most=MOST_ANSWERS,
            )
            raise QueryStopped((most["query"], most["version"]), reason)
    return outcome


def next_step(rows: int, found: int) -> int:
    """How many rows to take next when `rows` of them gave `found` answers."""
    if found <= COMMIT_ANSWERS:
        return min(2 * rows, STEP_ROWS)
    return max(rows * COMMIT_ANSWERS // found, 1)
