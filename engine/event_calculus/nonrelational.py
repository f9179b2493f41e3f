"""The non-relational stage of one program: the windows of one partition's entities, and its
messages to the relational stage.

It advances with the feed's clock, which all partitions know, so its lists for a query time are
complete before the relational stage decides it.

References: [dRTEC] 3.2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b

from engine.event_calculus.answers import NEVER
from engine.event_calculus.arrivals import InputRows
from engine.event_calculus.evaluation import Evaluation
from engine.event_calculus.intervals import INF, Ints
from engine.event_calculus.local_results import LocalMessage, encode_lists
from engine.event_calculus.partitioning import Partitioning
from engine.event_calculus.state import WindowState
from engine.event_calculus.syntax import Indicator
from engine.event_calculus.tables import Symbols
from engine.event_calculus.windows import Windows

_DIGEST_BYTES = 16


@dataclass
class EntityState:
    """Windows over one partition's entities.

    `partition`: its unique name, the seq of the first row that it read; `sent`:
    digest of its last message.
    """

    windows: WindowState = field(default_factory=lambda: WindowState(Symbols()))
    partition: int = NEVER
    sent: bytes = b""


class NonRelational:
    """Evaluates the keyed part of a divided program. Immutable: everything that
    changes is in the EntityState."""

    def __init__(self, partitioning: Partitioning, windows: Windows) -> None:
        """`windows`: those of the keyed part; their outputs are the answers
        that cross a window's edge."""
        self.partitioning = partitioning
        self.windows = windows

    def take(self, state: EntityState, rows: Mapping[Indicator, InputRows], seq: int, t: Ints, arrived: Ints) -> None:
        """Adds rows that have arrived; `seq` is that of the first, `t` and
        `arrived` are of all of them."""
        if state.partition == NEVER:
            state.partition = seq
        self.windows.take(state.windows, rows, int(t[0]), NEVER, t, arrived)

    def advance(self, state: EntityState, clock: int) -> list[LocalMessage]:
        """The messages about the query times that the feed's clock has passed."""
        own, found = state.windows, []
        own.clock = max(own.clock, clock)
        for decision in self.windows.advance(own):
            lists = encode_lists(
                self.partitioning, decision.evaluation, without_rows=not any(len(part) for parts in own.rows.values() for part in parts)
            )
            digest = blake2b(lists, digest_size=_DIGEST_BYTES).digest()
            if digest != state.sent:
                found.append(LocalMessage(decision.query_time, state.partition, lists))
            if digest != state.sent or self._leaves(decision.evaluation):
                # The next query time must not be skipped, because a change may continue, and ended
                # intervals leave the window.
                state.sent, own.idle = digest, 0
        return found

    def _leaves(self, evaluation: Evaluation) -> bool:
        """Whether some asserted interval or event has ended, so that it is not in a later
        window even if no row comes."""
        tables = [evaluation.fluents[node] for node in self.partitioning.sent if node.kind != "event"]
        tables += [evaluation.inputs[indicator] for indicator in self.partitioning.lists if indicator in evaluation.inputs]
        return any((table.lists.e < INF).any() for table in tables) or any(
            evaluation.events[node].n for node in self.partitioning.sent if node.kind == "event"
        )

    def ahead(self, state: EntityState) -> list[LocalMessage]:
        """The lists at the next query time, in case the input ends here."""
        own = state.windows
        if own.first_time == NEVER:
            return []
        query_time = self.windows.next_query(own)
        evaluation, _ = self.windows.evaluate(own, query_time, final=True)
        return [LocalMessage(query_time, state.partition, encode_lists(self.partitioning, evaluation, without_rows=False))]
