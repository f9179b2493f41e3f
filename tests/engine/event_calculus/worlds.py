"""Random hierarchical programs and streams over a small world, and the two ways to evaluate
them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from hypothesis import strategies as st

from engine.event_calculus.answers import NEVER
from engine.event_calculus.arrivals import InputRows
from engine.event_calculus.compiler import compile_text
from engine.event_calculus.intervals import INF
from engine.event_calculus.plan import Plan
from engine.event_calculus.program import Program
from engine.event_calculus.shapes import base_name
from engine.event_calculus.state import Settings, WindowState
from engine.event_calculus.storage import dump_state, load_state
from engine.event_calculus.windows import WindowResult, Windows
from tests.oracles.event_calculus import Key, PointByPoint, runs

NAMES = ("a", "b", "c")
LAST = 20
"""Rows are at times 0 to LAST."""
Inputs = Mapping[str, tuple[str, int]]
"""How rows state an input, and its number of arguments."""
INPUTS: Inputs = {"ev": ("event", 1), "go": ("event", 1), "tie": ("event", 2), "pt": ("points", 1), "iv": ("intervals", 1), "near": ("intervals", 2)}

Row = tuple[str, tuple[str, ...], int, int]
"""Input, arguments, t, t_end."""
Facts = set[tuple[str, tuple[str, ...], str, int, int | None]]
"""Fluent, arguments, value, start, end (null: open); an event has the value ""
and its end is its start."""


@st.composite
def rows(draw: st.DrawFn, most: int = 25) -> list[Row]:
    """A stream sorted by arrival = t (an interval's t_end)."""
    found = set()
    for _ in range(draw(st.integers(0, most))):
        name = draw(st.sampled_from(sorted(INPUTS)))
        kind, arity = INPUTS[name]
        t = draw(st.integers(0, LAST))
        end = draw(st.integers(t + 1, LAST + 1)) if kind == "intervals" else t + 1
        if kind == "intervals" and end > LAST:
            end, t = LAST, min(t, LAST - 1)
        found.add((name, tuple(draw(st.sampled_from(NAMES)) for _ in range(arity)), t, end))
    return sorted(found, key=lambda row: (row[3] if INPUTS[row[0]][0] == "intervals" else row[2], row))


ONE = ["pt(X)=true", "iv(X)=true"]
PAIR = ["near(X, Y)=true"]


@st.composite
def programs(draw: st.DrawFn, *, timeless: bool = False) -> str:
    """Text of a program in which each fluent uses those before it (and maybe one
    cycle of simple fluents).

    `timeless`: only constructs with the same result in sliding windows and in one big window: no
    complement, no duration, no Allen relation.
    """
    lines: list[str] = []
    one, pair = list(ONE), list(PAIR)
    events = ["ev(X)", "go(X)"]
    for number in range(draw(st.integers(1, 4))):
        kind = draw(st.sampled_from(["simple", "simple", "derived", "pair", "event"]))
        name = f"{kind}{number}"
        if kind == "simple":
            lines += _simple(draw, name, one, pair, events)
            one += [f"{name}(X)=on", f"{name}(X)=off", f"{name}(X)=1"]
        elif kind == "derived":
            for _ in range(draw(st.integers(1, 2))):
                lines.append(_derived(draw, f"{name}(X)", [draw(st.sampled_from(one)) for _ in range(3)], timeless))
            one.append(f"{name}(X)=true")
        elif kind == "pair":
            lines.append(_pair(draw, name, one, pair))
            pair.append(f"{name}(X, Y)=true")
        else:
            lines.append(f"happensAt({name}(X), T) :- {_trigger(draw, one, pair, events)}{_conditions(draw, one)}.")
            events.append(f"{name}(X)")
    if draw(st.booleans()):
        lines += _cycle(draw, one)
    return "\n".join(lines)


def _trigger(draw: st.DrawFn, one: list[str], pair: list[str], events: list[str]) -> str:
    shape = draw(st.sampled_from(["event", "start", "end", "tie", "pair"]))
    if shape == "event":
        return f"happensAt({draw(st.sampled_from(events))}, T)"
    if shape == "tie":
        return draw(st.sampled_from(["happensAt(tie(X, Y), T)", "happensAt(tie(Y, X), T)", "happensAt(tie(X, X), T)", "happensAt(tie(X, a), T)"]))
    fluent = draw(st.sampled_from(one if shape != "pair" else pair))
    return f"happensAt({'end' if shape == 'end' else 'start'}({fluent}), T)"


def _conditions(draw: st.DrawFn, one: list[str]) -> str:
    found = ""
    for _ in range(draw(st.integers(0, 2))):
        fluent = draw(st.sampled_from(one))
        found += draw(
            st.sampled_from(
                [
                    f", holdsAt({fluent}, T)",
                    f", \\+ holdsAt({fluent}, T)",
                    ", \\+ happensAt(go(X), T)",
                    ", \\+ happensAt(tie(X, _), T)",
                    f", \\+ (happensAt(ev(X), T), holdsAt({fluent}, T))",
                    ", kind(X, Z), Z > 1",
                    ", kind(X, Z), W is Z * 2 - 1, W =< 3",
                    ", kind(X, Z), abs(T - 10) > Z",
                    ", X \\= b",
                ]
            )
        )
    return found


def _simple(draw: st.DrawFn, name: str, one: list[str], pair: list[str], events: list[str]) -> list[str]:
    lines = [f"initiatedAt({name}(X)=on, T) :- {_trigger(draw, one, pair, events)}{_conditions(draw, one)}."]
    for _ in range(draw(st.integers(0, 2))):
        value, more = draw(st.sampled_from([("on", ""), ("off", ""), ("high", ""), ("V", ", kind(X, V)"), ("V", ", kind(Y, V), Y \\= X")]))
        binds_y = "kind(Y" in more
        trigger = draw(st.sampled_from(["happensAt(tie(X, Y), T)", "happensAt(tie(Y, X), T)"])) if binds_y else _trigger(draw, one, pair, events)
        lines.append(f"initiatedAt({name}(X)={value}, T) :- {trigger}{_conditions(draw, one)}{more}.")
    for _ in range(draw(st.integers(0, 2))):
        head = draw(st.sampled_from([f"{name}(X)=on", f"{name}(X)=_", f"{name}(_)=on", f"{name}(X)=off"]))
        lines.append(f"terminatedAt({head}, T) :- {_trigger(draw, one, pair, events)}{_conditions(draw, one)}.")
    if draw(st.booleans()):
        lines.append(f"fi({name}(X)=on, {name}(X)=off, {draw(st.integers(1, 6))}).")
        if draw(st.booleans()):
            lines.append(f"p({name}(X)=on).")
    if draw(st.integers(0, 3)) == 0:
        lines.append(f"initially({name}(b)=on).")
    return lines


def _derived(draw: st.DrawFn, head: str, fluents: list[str], timeless: bool) -> str:
    operations = [
        "union_all([I1, I2, I3], I)",
        "intersect_all([I1, I2], I)",
        "relative_complement_all(I1, [I2, I3], I)",
        "intersect_all([I1, I2, I3], I)",
    ]
    if not timeless:
        relation = draw(st.sampled_from(["before", "meets", "starts", "finishes", "during", "overlaps", "equal"]))
        mode = draw(st.sampled_from(["source", "target", "union", "intersection", "relative_complement", "relative_complement_inverse"]))
        operations += [
            f"union_all([I1, I2], U), intDurGreater(U, {draw(st.integers(0, 6))}, I)",
            "complement_all([I2], C), intersect_all([I1, C], I)",
            f"allen({relation}, I1, I2, {mode}, I)",
            "intersect_all([I1, I2], J), \\+ I3=[], union_all([J, I3], I)",
        ]
    retrieved = ", ".join(f"holdsFor({fluent}, I{place + 1})" for place, fluent in enumerate(fluents))
    return f"holdsFor({head}=true, I) :- {retrieved}, {draw(st.sampled_from(operations))}."


def _pair(draw: st.DrawFn, name: str, one: list[str], pair: list[str]) -> str:
    first, second = draw(st.sampled_from(one)), draw(st.sampled_from(one)).replace("(X", "(Y")
    between = draw(st.sampled_from(pair))
    body = draw(
        st.sampled_from(
            [
                "intersect_all([I1, I2, I3], I)",
                "intersect_all([I1, I2], I)",
                "union_all([I1, I2], U), intersect_all([U, I3], I)",
                "relative_complement_all(I3, [I1, I2], I)",
                "X @< Y, intersect_all([I1, I2], I)",
            ]
        )
    )
    return f"holdsFor({name}(X, Y)=true, I) :- holdsFor({first}, I1), holdsFor({second}, I2), holdsFor({between}, I3), {body}."


def _cycle(draw: st.DrawFn, one: list[str]) -> list[str]:
    extra = _conditions(draw, one)
    return [
        f"initiatedAt(ping(X)=on, T) :- happensAt(ev(X), T), \\+ holdsAt(pong(X)=on, T){extra}.",
        "terminatedAt(ping(X)=on, T) :- happensAt(go(X), T), holdsAt(pong(X)=on, T).",
        "initiatedAt(pong(X)=on, T) :- happensAt(go(X), T), holdsAt(ping(X)=on, T).",
        "terminatedAt(pong(X)=on, T) :- happensAt(ev(X), T), \\+ holdsAt(ping(X)=on, T).",
    ]


@st.composite
def divided(draw: st.DrawFn) -> str:
    """Text of a program in which relations are made of themselves with other constants in one
    place: each uses those before it, in any order."""
    lines = []
    derived, simple, event = (draw(st.permutations(["1", "2", "far"])) for _ in range(3))
    for place, own in enumerate(derived):
        value = draw(st.sampled_from(["true", "true", "false"]))
        before = [f"lev(X, {one})={draw(st.sampled_from(['true', 'true', 'false']))}" for one in derived[:place]]
        before += [f"lev(X, {own})=true"] if value == "false" and place else []
        lines.append(
            _derived(draw, f"lev(X, {own})", [draw(st.sampled_from([*ONE, *before])) for _ in range(3)], True).replace(
                "=true, I)", f"={value}, I)", 1
            )
        )
        if value == "false" and place:
            lines.append(f"holdsFor(lev(X, {own})=true, I) :- holdsFor({before[0]}, I).")
    for place, own in enumerate(simple):
        before = [f"stage(X, {one})=on" for one in simple[:place]]
        trigger = draw(st.sampled_from(["ev(X)", "tie(X, _)", *[f"start({one})" for one in before], *[f"end({one})" for one in before]]))
        condition = draw(
            st.sampled_from(
                ["", f", holdsAt(lev(X, {own})=true, T)", ", \\+ holdsAt(lev(X, _)=true, T)", *[f", holdsAt({one}, T)" for one in before]]
            )
        )
        lines.append(f"initiatedAt(stage(X, {own})=on, T) :- happensAt({trigger}, T){condition}.")
    lines.append(f"terminatedAt(stage(X, {draw(st.sampled_from(['_', *simple]))})=on, T) :- happensAt(go(X), T).")
    if draw(st.booleans()):
        lines.append(f"fi(stage(X, N)=on, stage(X, N)=off, {draw(st.integers(1, 6))}).")
    for place, own in enumerate(event):
        before = [f"step(X, {one})" for one in event[:place]]
        trigger = draw(st.sampled_from(["ev(X)", f"start(stage(X, {own})=on)", *before]))
        absent = draw(st.sampled_from(["", ", \\+ happensAt(go(X), T)", *[f", \\+ happensAt({one}, T)" for one in before]]))
        lines.append(f"happensAt(step(X, {own}), T) :- happensAt({trigger}, T){absent}.")
    lines.append("initiatedAt(seen(X, N)=true, T) :- happensAt(step(X, N), T), \\+ holdsAt(stage(X, N)=on, T).")
    return "\n".join(draw(st.permutations(lines)))


def with_terms(text: str) -> str:
    """The same program with what rules define inside of terms: simple1(X) as kept(simple1(X)),
    pair2(X, Y) as rel(pair2(X), Y)."""
    text = re.sub(r"\b(pair\d)\((\w+), (\w+)\)", r"rel(\1(\2), \3)", text)
    return re.sub(r"\b((?:simple|derived|event)\d|ping|pong|stage|lev|step|seen)\(([^()]*)\)", r"kept(\1(\2))", text)


def in_terms(facts: Facts) -> Facts:
    """The facts of a program as those of the same program `with_terms`."""
    return {("rel" if name.startswith("pair") else "kept", (name, *arguments), value, s, e) for name, arguments, value, s, e in facts}


FACTS = "kind(a, 1). kind(b, 2). kind(c, 3).\n"


def compiled(text: str) -> Program:
    return compile_text(FACTS + text, inputs=INPUTS)


def by_oracle(text: str, stream: list[Row], dialect: str, inputs: Inputs = INPUTS) -> Facts:
    """The answer of a program's text as the oracle reads it."""
    world = PointByPoint(text, last=LAST, dialect=dialect)
    for name, arguments, t, end in stream:
        kind = inputs[name][0]
        if kind == "event":
            world.events.setdefault((name, arguments), set()).add(t)
        elif kind == "points":
            world.points.setdefault((name, arguments, "true"), set()).add(t)
        else:
            world.intervals.setdefault((name, arguments, "true"), []).append((t, end))
    made = {rule.name for rule in world.rules["event"]}
    answers = asserted(world.answer(), world.defined)
    return answers | {(name, arguments, "", t, t) for (name, arguments), times in world.happens.items() if name in made for t in times}


def asserted(ticks: Mapping[Key, set[int]], defined: Collection[str]) -> Facts:
    return {
        (name, arguments, value, s, None if e > LAST + 1 else e)
        for (name, arguments, value), held in ticks.items()
        if name in defined
        for s, e in runs(held)
    }


@dataclass
class ByEngine:
    """The window engine fed with rows by hand. `facts` is the sum of all changes so far."""

    program: Program
    settings: Settings
    restart: bool = False
    inputs: Inputs = field(default_factory=lambda: INPUTS)
    facts: Facts = field(default_factory=set)

    def __post_init__(self) -> None:
        outputs = tuple(sorted({base_name(name) for name, _ in self.program.fluents | self.program.events}))
        self.windows = Windows(Plan(replace(self.program, outputs=())), self.settings, outputs)
        self.state: WindowState = self.windows.initial()

    def feed(self, stream: list[Row], arrivals: list[int]) -> None:
        """One row after the other, as it arrives."""
        for row, arrived in zip(stream, arrivals, strict=True):
            self._take(row, arrived)
            for decision in self.windows.advance(self.state):
                self._sum(decision)
            if self.restart:
                self.state = load_state(dump_state([self.state]))[0]
        for decision in self.windows.conclude(self.state, LAST):
            self._sum(decision)

    def feed_one(self, row: Row, arrived: int) -> None:
        self._take(row, arrived)
        self.pass_to(arrived)

    def pass_to(self, clock: int) -> None:
        """The clock advances without a row."""
        self.windows.take(self.state, {}, NEVER, clock)
        for decision in self.windows.advance(self.state):
            self._sum(decision)

    def look_ahead(self, last: int) -> None:
        """The facts that hold if the input ends at `last`."""
        for decision in self.windows.conclude(self.state, last):
            self._sum(decision)

    def feed_at_once(self, stream: list[Row], arrivals: list[int]) -> None:
        for row, arrived in zip(stream, arrivals, strict=True):
            self._take(row, arrived)
        for decision in self.windows.conclude(self.state, LAST):
            self._sum(decision)

    def _take(self, row: Row, arrived: int) -> None:
        name, arguments, t, end = row
        codes = [np.array([self.state.symbols.code(argument)]) for argument in arguments]
        if self.inputs[name][0] != "event":
            codes.append(np.array([self.state.symbols.code("true")]))
        nowhere = np.array([np.nan])
        rows_ = InputRows(tuple(codes), np.array([t]), np.array([end]), np.array([arrived]), nowhere, nowhere)
        self.windows.take(self.state, {(name, len(arguments)): rows_}, t, arrived)

    def _sum(self, decision: WindowResult) -> None:
        for table in decision.answers.values():
            table.check()
        names = self.state.symbols.names
        for change in decision.changes:
            ends = change.s if change.e is None else change.e
            for i in range(len(change.s)):
                key = [names[column[i]] for column in change.keys]
                if change.e is None:
                    key.append("")
                fact = (change.name, tuple(key[:-1]), key[-1], int(change.s[i]), None if ends[i] == INF else int(ends[i]))
                if change.weight[i] > 0:
                    assert fact not in self.facts, f"stated twice: {fact}"
                    self.facts.add(fact)
                else:
                    self.facts.remove(fact)


def on_time(stream: list[Row], inputs: Inputs = INPUTS) -> list[int]:
    """The clock at each row's arrival: the greatest time so far."""
    clock, found = -1, []
    for name, _, t, end in stream:
        clock = max(clock, end if inputs[name][0] == "intervals" else t)
        found.append(clock)
    return found
