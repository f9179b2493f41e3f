"""Pending transitions: the kernel compared with a dictionary, over enough events that chunks are
reused and the table is rebuilt."""

from __future__ import annotations

import numpy as np
import pytest

from engine.border_monitoring.transitions import BorderEvents, Groups, WaitingEvents

WITHIN = np.array([0, 3, 3, 40])
RINGS, RING_OF_GROUP = np.array([0, 3, 40]), np.array([0, 1, 1, 2], np.int32)

Facts = set[tuple[int, int, int, int, int]]
"""group, entity, type, seq of the first event, and of the second (-1: none)."""


def events(rng: np.random.Generator, count: int, groups: int, entities: int, start: int, first_seq: int) -> tuple[np.ndarray, ...]:
    t = start + np.sort(rng.integers(0, 4, count))
    seq = np.arange(first_seq, first_seq + count)
    group, entity = rng.integers(0, groups, count).astype(np.int32), rng.integers(0, entities, count).astype(np.int32)
    return group, entity, rng.integers(0, 2, count).astype(np.int8), t, seq, seq * 0.5, seq * 0.25


class Plain:
    """The same with a dictionary that is searched completely."""

    def __init__(self, wanted: np.ndarray) -> None:
        self.wanted, self.waits = wanted, dict[tuple[int, int], tuple[int, int, int]]()

    def step(self, columns: tuple[np.ndarray, ...], watermark: int) -> Facts:
        found = []
        for group, entity, inward, t, seq, *_ in zip(*(column.tolist() for column in columns), strict=True):
            if (group, entity) in self.waits:
                was, at, first = self.waits.pop((group, entity))
                met = t - at <= WITHIN[group]
                found.append((group, entity, (0 if was else 1) if met else (2 if was else 3), first, seq if met else -1))
            if self.wanted[group] & (5 if inward else 10):
                self.waits[group, entity] = (inward, t, seq)
        for (group, entity), (was, at, first) in list(self.waits.items()):
            if at + WITHIN[group] < watermark:
                del self.waits[group, entity]
                found.append((group, entity, 2 if was else 3, first, -1))
        return {fact for fact in found if self.wanted[fact[0]] >> fact[2] & 1}


@pytest.mark.parametrize(("seed", "entities"), [(1, 3), (2, 40), (3, 5000)])
def test_the_kernel_agrees_with_a_dictionary(seed: int, entities: int) -> None:
    rng = np.random.default_rng(seed)
    wanted = np.array([15, 15, 4, 11], np.int8)
    waiting, plain, seq = WaitingEvents.empty(len(RINGS)), Plain(wanted), 0
    transitions_seen = 0
    for k in range(120):
        columns = events(rng, int(rng.integers(0, 200)), len(WITHIN), entities, 4 * k, seq)
        seq += len(columns[0])
        watermark = 4 * k + int(rng.integers(-3, 4))
        waiting.reserve(len(columns[0]))
        groups = Groups(WITHIN, RING_OF_GROUP, wanted, RINGS)
        key, kind, first, second = waiting.decide(BorderEvents(*columns), watermark, groups)  # type: ignore[call-arg]
        began = waiting.events(first)
        ended = np.where(second >= 0, columns[4][second], -1) if len(columns[4]) else np.full(len(key), -1)
        found = list(zip((key >> 32).tolist(), (key & 0xFFFFFFFF).tolist(), kind.tolist(), began["seq"].tolist(), ended.tolist(), strict=True))
        assert (began["x"] == began["seq"] * 0.5).all()
        assert (began["y"] == began["seq"] * 0.25).all()
        assert len(set(found)) == len(found)
        assert set(found) == plain.step(columns, watermark)
        waiting.check(RING_OF_GROUP)
        assert waiting.live == len(plain.waits)
        transitions_seen += len(found)
    assert transitions_seen > 1000
    # Slots and places of the table are reused: the size depends on the greatest number at
    # one time, not on the total.
    assert len(waiting.records) < 20_000
