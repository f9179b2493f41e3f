"""Random programs from the language's grammar: every kind of clause, condition and construct.

A program is made from the lowest level up; later rules may read what earlier rules define. Some
programs are refused (an unsafe variable, a cycle): tests discard them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st

ALLEN = ("before", "meets", "starts", "finishes", "during", "overlaps", "equal")
MODES = ("source", "target", "union", "intersection", "relative_complement", "relative_complement_inverse")
KNOWLEDGE = """kind(a, 1). kind(b, 2). kind(c, 3). limit(a, 2). limit(b, 4). limit(b, 5). pal(a, b). pal(b, c).
low(X) :- kind(X, N), N < 2. low(c). friend(X, Y) :- pal(X, Y). friend(X, Y) :- pal(Y, X).
"""


@dataclass
class Fluent:
    name: str
    arity: int
    values: tuple[str, ...]
    simple: bool = False
    """The fluent's rules are initiatedAt and terminatedAt; else holdsFor, or it is an input."""


@dataclass
class _Writer:
    draw: st.DrawFn
    timeless: bool
    lines: list[str] = field(default_factory=list)
    counted: int = 0
    events: list[tuple[str, int]] = field(default_factory=lambda: [("ev", 1), ("go", 1), ("tie", 2)])
    fluents: list[Fluent] = field(default_factory=lambda: [Fluent("pt", 1, ("true",)), Fluent("iv", 1, ("true",)), Fluent("near", 2, ("true",))])

    def one(self, *choices: str) -> str:
        return self.draw(st.sampled_from(choices))

    def chance(self, in_: int = 2) -> bool:
        return self.draw(st.integers(1, in_)) == 1

    def arguments(self, arity: int, *names: str) -> str:
        return ", ".join(self.one(*names) for _ in range(arity))

    def head(self, name: str, arity: int) -> str:
        return f"{name}({', '.join(('X', 'Y')[:arity])})"

    def some(self, *names: str, fluents: list[Fluent] | None = None) -> str:
        fluent = self.draw(st.sampled_from(fluents or self.fluents))
        return f"{fluent.name}({self.arguments(fluent.arity, *names)})={self.draw(st.sampled_from(fluent.values))}"

    def event(self, *names: str) -> str:
        name, arity = self.draw(st.sampled_from(self.events))
        return f"{name}({self.arguments(arity, *names)})"

    # -- conditions --------------------------------------------------------------------------------

    def trigger(self, *names: str) -> str:
        simple = [one for one in self.fluents if one.simple]
        shape = self.one("event", "event", "edge", *(["initiated"] if simple else []))
        if shape == "event":
            return f"happensAt({self.event(*names)}, T)"
        if shape == "edge":
            return f"happensAt({self.one('start', 'end')}({self.some(*names)}), T)"
        return f"initiatedAt({self.some(*names, fluents=simple)}, T1, T, T2)"

    def condition(self) -> str:
        names = ("X", "Y", "X", "a", "_", "Z")
        return self.one(
            f"holdsAt({self.some(*names)}, T)",
            f"\\+ holdsAt({self.some(*names)}, T)",
            f"\\+ happensAt({self.event(*names)}, T)",
            f"\\+ happensAt({self.event(*names)}, T)",
            f"happensAt({self.event(*names)}, T)",
            f"\\+ (happensAt({self.event('X', '_')}, T), \\+ holdsAt({self.some('X')}, T))",
            f"(holdsAt({self.some('X')}, T) ; low(X))",
            f"(low(X) ; happensAt({self.event('X', 'Y')}, T))",
            self.count(f"holdsAt({self.some('W', 'X')}, T)", f"N {self.one('>', '=<', '=:=')} 1"),
            self.count("pal(X, W)", "N < 1"),
            "kind(X, Z), Z > 1",
            "kind(X, Z), V is Z * 2 - 1, V =< 3",
            "kind(Y, Z), abs(T - 10) > Z",
            "low(X)",
            "\\+ low(X)",
            "friend(X, Y)",
            "X \\= b",
            "X @< Y",
            "X = a",
        )

    def count(self, goal: str, comparison: str) -> str:
        self.counted += 1
        number = f"N{self.counted}"
        return f"findall(W, {goal}, L{self.counted}), length(L{self.counted}, {number}), {comparison.replace('N', number, 1)}"

    def body(self, *names: str) -> str:
        return ", ".join([self.trigger(*names), *(self.condition() for _ in range(self.draw(st.integers(0, 2))))])

    def point(self, kind: str, head: str, *names: str) -> None:
        body = self.body(*names)
        if kind != "happensAt" and self.chance(4):
            self.lines.append(f"{kind}({head}, T1, T, T2) :- {body}.")
        elif kind != "happensAt" and self.chance(5):
            self.lines.append(
                f"{kind[:-2].replace('initiated', 'initiates').replace('terminated', 'terminates')}({self.event('X')}, {head}, T) :- {body}."
            )
        else:
            self.lines.append(f"{kind}({head}, T) :- {body}.")

    # -- clauses -----------------------------------------------------------------------------------

    def simple(self, name: str) -> None:
        arity = self.draw(st.sampled_from([1, 1, 2]))
        head = self.head(name, arity)
        values = ["on", "off", "1"]
        own = Fluent(name, arity, tuple(values), simple=True)
        inside = self.chance(3)
        if inside:
            # A cycle: the fluent's own rules may read it.
            self.fluents.append(own)
        for value in ["on", *(self.one("on", "off", "1", "V") for _ in range(self.draw(st.integers(0, 2))))]:
            before = len(self.lines)
            self.point("initiatedAt", f"{head}={value}", "X", "Y", "X")
            if value == "V":
                self.lines[before] = self.lines[before].removesuffix(".") + ", kind(X, V)."
        for _ in range(self.draw(st.integers(0, 2))):
            target = self.one(f"{head}={self.one('on', 'off', '_')}", f"{name}({', '.join(['_'] * arity)})=on")
            self.point("terminatedAt", target, "X", "Y")
        if self.chance(3):
            self.grounding(name, arity, ["on", "off"] if self.chance() else ["on"])
        if self.chance():
            self.deadline(head, name, arity)
        if self.chance(4):
            self.lines.append(self.one(f"initially({name}({', '.join(['b'] * arity)})=on).", f"initially({head}=off) :- pal(X, Y)."))
        if not inside:
            self.fluents.append(own)

    def grounding(self, name: str, arity: int, values: list[str]) -> None:
        for value in values:
            body = (
                self.one("kind(X, _)", "low(X)", "kind(X, N), N > 1") if arity == 1 else self.one("friend(X, Y)", "kind(X, _), kind(Y, _), X \\= Y")
            )
            self.lines.append(f"grounding({self.head(name, arity)}={value}) :- {body}.")

    def deadline(self, head: str, name: str, arity: int) -> None:
        kind, after, delay = self.one("fi", "fi", "maxDuration", "maxDurationUE"), self.one("off", "1"), self.draw(st.integers(1, 6))
        condition = self.one("", "", f" :- limit(X, {delay})", "D", "DD")
        if condition in ("D", "DD"):
            self.lines.append(
                f"{kind}({head}=on, {head}={after}, D) :- limit(X, {'D' if condition == 'D' else 'E), D is E + 1'}{')' if condition == 'D' else ''}."
            )
        else:
            self.lines.append(f"{kind}({head}=on, {head}={after}, {delay}){'' if not condition or delay not in (2, 4, 5) else condition}.")
        if kind == "fi" and self.chance():
            self.lines.append(f"p({name}({', '.join(['_'] * arity)})=on).")

    def derived(self, name: str) -> None:
        mixed = [one for one in self.fluents if one.simple and self.chance(4)]
        if mixed:
            own, value = mixed[0], "other"
            head = self.head(own.name, own.arity)
        else:
            own = Fluent(name, self.draw(st.sampled_from([1, 1, 2])), ("true",))
            head, value = self.head(name, own.arity), "true"
        for _ in range(self.draw(st.integers(1, 2))):
            self.lines.append(f"holdsFor({head}={value}, I) :- {self.lists(own.arity)}.")
        if mixed:
            own.values = (*own.values, value)
        else:
            self.fluents.append(own)
            if self.chance(4):
                self.grounding(name, own.arity, ["true"])

    def lists(self, arity: int) -> str:
        names = ("X",) if arity == 1 else ("X", "Y", "X")
        parts = [f"holdsFor({self.some(*names)}, I{place})" for place in (1, 2, 3)]
        if arity == 2:
            parts[0] = "holdsFor(near(X, Y)=true, I1)"
        parts += [self.one("low(X)", "\\+ low(X)", "kind(X, N), N < 3", "X \\= b")] if self.chance(3) else []
        operations = [
            "union_all([I1, I2], I)" if arity == 1 else "union_all([I1], I)",
            "intersect_all([I1, I2, I3], I)",
            "relative_complement_all(I1, [I2, I3], I)",
            "union_all([I2, I3], U), intersect_all([I1, U], I)",
        ]
        if not self.timeless:
            flag = self.one("", "", "true, ", "false, ", "_, ")
            relation = f"allen({self.one(*ALLEN)}, I1, I2, {self.one(*MODES)}, {flag}"
            operations += [
                f"union_all([I1, I1], U), intDurGreater(U, {self.draw(st.integers(0, 6))}, I)",
                "complement_all([I2], C), intersect_all([I1, C], I)",
                "intersect_all([I1, I2], J), \\+ I3 = [], union_all([J, I1], I)",
                f"{self.one(*ALLEN)}(I1, I2, {self.one(*MODES[:4:3])}, I)",
                f"{relation}I)",
                f"{relation}J), union_all([I1, J], I)",
            ]
        return ", ".join([*parts, self.one(*operations)])

    def happening(self, name: str) -> None:
        arity = self.draw(st.sampled_from([1, 1, 2]))
        self.point("happensAt", self.head(name, arity), "X", "Y", "X")
        if self.chance(3):
            self.lines.append(f"grounding({self.head(name, arity)}) :- {'kind(X, _)' if arity == 1 else 'friend(X, Y)'}.")
        self.events.append((name, arity))


@st.composite
def generated(draw: st.DrawFn, *, timeless: bool = False) -> str:
    """Text of a program.

    `timeless`: only constructs with the same result in sliding windows and in one big window: no
    complement, duration, Allen relation or empty list.
    """
    writer = _Writer(draw, timeless)
    for number in range(draw(st.integers(1, 4))):
        kind = writer.one("simple", "simple", "derived", "event")
        {"simple": writer.simple, "derived": writer.derived, "event": writer.happening}[kind](f"{kind}{number}")
    return "\n".join(draw(st.permutations(writer.lines)))
