"""The registered queries in columns: equal parts share one number, and numbers are stable while
queries are added and removed.

- Queries with equal `where` and equal needed columns see the same tuples of every
  entity: a **tuple class**.
- Queries of one class with the same region or ranges and the same options share its
  crossings: a **monitor**.
- Transition queries of one monitor with the same time bound share what waits: a **group**; groups
  of one bound share a ring.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from engine.border_monitoring.options import Options
from engine.border_monitoring.specification import BorderSpecification, TransitionSpecification
from engine.border_monitoring.transitions import NAMES
from engine.context import Range
from engine.model.batch import X, Y
from engine.model.conditions import Conditions
from engine.model.region import Region
from engine.operator import RegisteredQuery

Ints = npt.NDArray[np.int32]
MonitorKey = tuple[Conditions, Region | None, tuple[Range, ...], Options, bool]
"""where, region or ranges, options, and whether passes are wanted."""
ClassKey = tuple[Conditions, bool, tuple[str, ...]]
"""where, whether its monitors are regions (closed) or ranges (half-open), needed columns."""
QueryKey = tuple[str, int]


def _ints() -> Ints:
    return np.empty(0, np.int32)


@dataclass(frozen=True)
class Registry:
    """Numbers of queries (slots), monitors, groups and classes. Immutable.

    `slots`, `monitors`, `groups` find the numbers of live ones; numbers are not reused. By slot:
    `monitor`, `group` (-1: a border query), `mask` of asked types; by monitor: `keys`, `class_of`,
    `dwell`; by group: `group_monitor`, `group_within`.
    """

    slots: dict[QueryKey, int] = field(default_factory=dict)
    monitors: dict[MonitorKey, int] = field(default_factory=dict)
    groups: dict[tuple[int, int], int] = field(default_factory=dict)
    classes: dict[ClassKey, int] = field(default_factory=dict)
    monitor: Ints = field(default_factory=_ints)
    group: Ints = field(default_factory=_ints)
    mask: npt.NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    keys: tuple[MonitorKey, ...] = ()
    class_of: Ints = field(default_factory=_ints)
    dwell: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    group_monitor: Ints = field(default_factory=_ints)
    group_within: npt.NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))

    def remove(self, gone: Sequence[QueryKey]) -> Registry:
        """The registry without these queries, and without the monitors and
        groups that only they had."""
        if not gone:
            return self
        slots, monitors, groups = dict(self.slots), dict(self.monitors), dict(self.groups)
        left = np.array([slots.pop(key) for key in gone], np.int64)
        alive = self.slots_alive(slots)
        for monitor in _unused_numbers(self.monitor, left, alive):
            del monitors[self.keys[monitor]]
        for group in _unused_numbers(self.group, left, alive):
            del groups[int(self.group_monitor[group]), int(self.group_within[group])]
        return replace(self, slots=slots, monitors=monitors, groups=groups)

    def slots_alive(self, slots: dict[QueryKey, int]) -> npt.NDArray[np.bool_]:
        alive = np.zeros(len(self.monitor), np.bool_)
        alive[np.fromiter(slots.values(), np.int64, len(slots))] = True
        return alive

    def add(self, fresh: Sequence[RegisteredQuery]) -> Registry:
        """The registry with these queries, which it does not know."""
        if not fresh:
            return self
        slots, monitors, groups, classes = dict(self.slots), dict(self.monitors), dict(self.groups), dict(self.classes)
        rows: list[tuple[int, int, int]] = []
        new_keys: list[MonitorKey] = []
        class_of: list[int] = []
        grouped: list[tuple[int, int]] = []
        for query in fresh:
            specification: BorderSpecification = query.specification
            key = (specification.where, specification.region, specification.ranges, specification.options, specification.segments)
            monitor = monitors.setdefault(key, len(self.keys) + len(new_keys))
            if monitor == len(self.keys) + len(new_keys):
                new_keys.append(key)
                class_of.append(classes.setdefault(class_key(key), len(classes)))
            group, mask = -1, 0
            if isinstance(specification, TransitionSpecification):
                group = groups.setdefault((monitor, specification.within), len(self.group_within) + len(grouped))
                if group == len(self.group_within) + len(grouped):
                    grouped.append((monitor, specification.within))
                mask = sum(1 << NAMES.index(name) for name in specification.types)
            slots[query.key] = len(self.monitor) + len(rows)
            rows.append((monitor, group, mask))
        columns = np.array(rows, np.int64)
        return Registry(
            slots,
            monitors,
            groups,
            classes,
            monitor=np.concatenate([self.monitor, columns[:, 0].astype(np.int32)]),
            group=np.concatenate([self.group, columns[:, 1].astype(np.int32)]),
            mask=np.concatenate([self.mask, columns[:, 2].astype(np.int8)]),
            keys=(*self.keys, *new_keys),
            class_of=np.concatenate([self.class_of, np.array(class_of, np.int32)]),
            dwell=np.concatenate([self.dwell, np.array([key[3].dwell for key in new_keys], np.int64)]),
            group_monitor=np.concatenate([self.group_monitor, np.array([monitor for monitor, _ in grouped], np.int32)]),
            group_within=np.concatenate([self.group_within, np.array([within for _, within in grouped], np.int64)]),
        )


def class_key(monitor: MonitorKey) -> ClassKey:
    where, region, ranges, _, _ = monitor
    return (where, True, (X, Y)) if region is not None else (where, False, tuple(column for column, _, _ in ranges))


def _unused_numbers(numbers: Ints, left: npt.NDArray[np.int64], alive: npt.NDArray[np.bool_]) -> list[int]:
    """Which monitors (groups) of the freed slots `left` no used slot has; `numbers` are those
    of the slots, -1 for none."""
    candidates = np.unique(numbers[left])
    candidates = candidates[candidates >= 0]
    still = np.zeros(int(numbers.max(initial=-1)) + 1, np.bool_)
    having = numbers[alive]
    still[having[having >= 0]] = True
    ended: list[int] = candidates[~still[candidates]].tolist()
    return ended
