"""Every clause and every argument of a program has an effect on some answer, or is refused,
or is reported as ignored."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache

import pytest

from engine.event_calculus.compiler import compile_text
from engine.event_calculus.empty_domains import empty_domains
from engine.event_calculus.parser import ProgramRefused, clause_texts
from engine.event_calculus.program import EVENT, INTERVALS
from engine.event_calculus.specification import notices_of
from engine.event_calculus.state import Settings
from engine.event_calculus.syntax import Indicator
from engine.model.feed import Crs, Feed, TimeUnit
from tests.engine.event_calculus.test_rtec_programs import PROGRAMS, Given
from tests.engine.event_calculus.worlds import LAST, ByEngine, Facts, Inputs, Row, on_time

ARGUMENT = re.compile(r"(?<![A-Za-z0-9_'])(?:[A-Z_][A-Za-z0-9_]*|[a-z][A-Za-z0-9_]*(?![A-Za-z0-9_(])|\d+)(?![A-Za-z0-9_]|/\d)")
"""A variable, a name that has no arguments, or a number."""
WORDS = {"mod", "rem", "is", "dynamic", "discontiguous"}
EVERY = 40
"""One in this many changes is tested (a run over all takes minutes)."""
SAID_TWICE = {
    # The groundings of the lists that the rule reads exclude the same. An entity that disappears is
    # not a person at the next tick, so no greeting with it begins.
    "street": ("grounding(greeting(A, B)=true)", "\\+ happensAt(disappear(A), T), \\+ happensAt(disappear(B), T)"),
    "toy": ("grounding(happy(Person)=true)",),
}
"""Clauses that may be in a program without changing any answer, with the reason."""
STORIES: dict[str, list[Row]] = {
    # A consumer asks for a quote while he still has to pay, is suspended, and accepts another quote
    # all the same: no contract.
    "commerce": [
        (event, people, t, t + 1)
        for t, (event, people) in enumerate(
            [
                ("present_quote", ("ann", "bob")), ("accept_quote", ("bob", "ann")), ("present_quote", ("bob", "bob")),
                ("request_quote", ("bob", "ann")), ("accept_quote", ("bob", "bob")),
            ],
            start=1,
        )
    ],
}  # fmt: skip
"""Streams with events that random streams rarely have."""
UNKNOWN = ("zed",)
"""Names that are in rows and in no declaration."""
Outcome = tuple[frozenset[str], tuple[frozenset[object], ...]]


def streams(given: Given, number: int, rows: int, unknown: tuple[str, ...] = ()) -> list[list[Row]]:
    chance = random.Random(7)
    found = []
    for _ in range(number):
        stream: set[Row] = set()
        for _ in range(rows):
            name = chance.choice(sorted(given))
            kind, domains = given[name]
            t = chance.randrange(LAST)
            end = chance.randint(t + 1, LAST) if kind == "intervals" else t + 1
            stream.add((name, tuple(chance.choice((*domain, *domain, *unknown)) for domain in domains), t, end))
        found.append(sorted(stream, key=lambda row: (row[3] if given[row[0]][0] == "intervals" else row[2], row)))
    return found


def outcome(text: str, inputs: Inputs, histories: list[list[Row]]) -> Outcome:
    """Faults and notices (without their places, because these move), and the
    answers over each stream."""
    try:
        program = compile_text(text, inputs=inputs)
    except ProgramRefused as refused:
        return frozenset(problem.message for problem in refused.problems), ()
    answers: list[Facts] = []
    for stream in histories:
        engine = ByEngine(program, Settings(window=LAST + 30, step=LAST + 30, origin=LAST), inputs=inputs)
        engine.feed_at_once(stream, on_time(stream, inputs))
        answers.append(engine.facts)
    outputs = frozenset(f"output {output.name}{tuple(map(str, output.terms))}" for output in program.outputs)
    return outputs | {notice.message for notice in program.notices}, tuple(map(frozenset, answers))


def changed(text: str) -> Iterator[tuple[str, str]]:
    """Variants of the program, without each clause and with each argument changed, each with a
    description of the change."""
    lines = text.split("\n")
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line) + 1)
    for place, clause in clause_texts(text).items():
        begin = starts[place.line - 1] + place.column - 1
        while text[begin : begin + len(clause)] != clause:
            begin -= 1
        yield f"without {clause}", text[:begin] + text[begin + len(clause) :]
        for argument in ARGUMENT.finditer(clause):
            word = argument[0]
            if word in WORDS:
                continue
            other = str(int(word) + 3) if word.isdigit() else "zzz"
            at = begin + argument.start()
            yield f"{clause[: argument.start()]}>>{word}<<{clause[argument.end() :]}", text[:at] + other + text[at + len(word) :]


@cache
def plain(name: str) -> str:
    """A program without comments."""
    return re.sub(r"%[^\n]*|/\*.*?\*/", "", PROGRAMS[name][0], flags=re.DOTALL)


@pytest.mark.parametrize("name", sorted(PROGRAMS))
def test_each_clause_and_each_argument_counts(name: str) -> None:
    text, given = plain(name), PROGRAMS[name][1]
    inputs: Inputs = {event: (kind, len(domains)) for event, (kind, domains) in given.items()}
    histories = [*streams(given, 3, 12, UNKNOWN), *streams(given, 2, 12), *streams(given, 2, 60), *streams(given, 1, 120)]
    histories += [STORIES[name]] if name in STORIES else []
    whole = outcome(text, inputs, histories)
    assert whole[1], whole[0]
    some = [change for place, change in enumerate(changed(text)) if place % EVERY == 0]
    findings = [what for what, other in some if outcome(other, inputs, histories) == whole]
    assert [what for what in findings if not any(said in what.replace(">>", "").replace("<<", "") for said in SAID_TWICE.get(name, ()))] == []


TICKS = Feed("ticks", Crs.PLANAR, TimeUnit.TICKS)


@pytest.mark.parametrize("text", ["", "% to be written", "grounding(q(A)) :- person(A).\nperson(ann)."])
def test_a_program_that_can_answer_nothing_says_so(text: str) -> None:
    expected = ["no answers: the program defines no fluent and no event"]
    assert notices_of({"program": text}, TICKS)[-1:] == expected
    assert notices_of({"program": text, "outputs": ["q"]}, TICKS)[-1:] != expected
    assert notices_of({"program": f"{text}\ninitiatedAt(f(A)=true, T) :- happensAt(q(A), T)."}, TICKS)[-1:] != expected


OVER_A_DOMAIN = """initiatedAt(s(X)=true, T) :- happensAt(arrives(X), T).
holdsFor(away(X)=true, I) :- holdsFor(s(X)=true, I0), complement_all([I0], I).
grounding(away(X)=true) :- id(X).
dynamicDomain(id(_)).
"""


def empty(more: str = "") -> list[Indicator]:
    return empty_domains(compile_text(OVER_A_DOMAIN + more, inputs={"arrives": (EVENT, 1)}))


def test_a_domain_that_nothing_fills_is_reported() -> None:
    s_too = "grounding(s(X)=true) :- id(X).\n"
    assert empty() == empty(s_too) == [("id", 1)]
    assert empty("grounding(arrives(X)) :- id(X).") == []
    assert empty(s_too + "grounding(s(X)=true) :- known(X).\nknown(a).") == []
    assert empty(s_too + "initially(s(a)=true).") == []
    document = {"program": OVER_A_DOMAIN, "inputs": {"arrives": {"args": ["entity"]}}}
    assert any("fills the domain id/1" in notice for notice in notices_of(document, TICKS))


BUSY = "initiatedAt(busy(X)=true, T) :- happensAt(a(X), T).\n"


def own_notices(text: str) -> list[str]:
    return [str(one) for one in compile_text(BUSY + text, inputs={"a": (EVENT, 1), "input": (INTERVALS, 1)}).notices]


@pytest.mark.parametrize(
    ("text", "notices"),
    [
        ("terminatedAt(busi(X)=true, T) :- happensAt(a(X), T).", ["line 2, column 1: ignored: terminatedAt(busi(X)=true); no rule initiates it"]),
        ("terminatedAt(busi(X)=_, T) :- happensAt(a(X), T).", ["line 2, column 1: ignored: terminatedAt(busi(X)=_); no rule initiates it"]),
        ("terminatedAt(busy(_)=yes, T) :- happensAt(a(_), T).", ["line 2, column 1: ignored: terminatedAt(busy(_)=yes); no rule initiates it"]),
        ("happensAt(o(X), T) :- happensAt(a(X), T), \\+ holdsAt(busy(X)=no, T).", ["line 2, column 54: busy is never no; rules give it true"]),
        ("happensAt(o(X), T) :- happensAt(end(busy(X)=no), T).", ["line 2, column 37: busy is never no; rules give it true"]),
        ("holdsFor(o(X)=true, I) :- holdsFor(busy(X)=no, J), union_all([J], I).", ["line 2, column 36: busy is never no; rules give it true"]),
        ("fi(busy(X)=tru, busy(X)=true, 5).", ["line 2, column 1: busy is never tru; rules give it true"]),
        (
            "fi(busy(X)=tru, busy(X)=later, 5). fi(busy(X)=later, busy(X)=true, 5).",
            ["line 2, column 1: busy is never tru; rules give it later, true"],
        ),
        (
            "fi(busy(X)=no, busy(X)=true, 5). happensAt(o(X), T) :- happensAt(a(X), T), holdsAt(busy(X)=no, T).",
            ["line 2, column 1: busy is never no; rules give it true", "line 2, column 84: busy is never no; rules give it true"],
        ),
        ("terminatedAt(busy(X)=true, T) :- happensAt(a(X), T).", []),
        ("initially(busy(ann)=yes). terminatedAt(busy(X)=yes, T) :- happensAt(a(X), T).", []),
        ("terminatedAt(busy(X)=later, T) :- happensAt(a(X), T). fi(busy(X)=true, busy(X)=later, 5).", []),
        ("initiatedAt(o(X)=V, T) :- happensAt(a(X), T), kind(X, V). kind(ann, no). terminatedAt(o(X)=no, T) :- happensAt(a(X), T).", []),
        ("happensAt(o(X), T) :- happensAt(a(X), T), holdsAt(input(X)=yes, T).", []),
        ("holdsFor(o(X)=yes, I) :- holdsFor(busy(X)=true, J), union_all([J], I). holdsFor(p(X)=true, I) :- holdsFor(o(X)=yes, I).", []),
    ],
)
def test_what_no_rule_gives_is_reported_where_it_is_ended_or_read(text: str, notices: list[str]) -> None:
    assert own_notices(text) == notices


@pytest.mark.parametrize("line_end", ["\r", "\r\n", "\n"])
def test_a_comment_ends_with_its_line_whatever_ends_lines(line_end: str) -> None:
    with pytest.raises(ProgramRefused, match="nonsense"):
        compile_text(line_end.join(["% note", BUSY.strip(), "terminatedAt(busy(X)=true, T) :- nonsense."]), inputs={"a": (EVENT, 1)})


@pytest.mark.parametrize("sign", ["\x85", "\u2028", "\u2029"])
def test_a_line_end_that_only_some_editors_show_is_refused_in_a_comment(sign: str) -> None:
    with pytest.raises(ProgramRefused, match=r"line 1, column 3: unexpected character .*; use an ordinary space or a new line"):
        compile_text(f"% {sign}{BUSY}", inputs={"a": (EVENT, 1)})


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("größe(a).", "line 2, column 3: unexpected character 'ö'; names with other letters than a to z are written in quotes: 'größe'"),
        ("/* open", "line 2, column 1: this comment has no end: '*/' is missing"),
        ("size(a)\u00a0.", r"line 2, column 8: unexpected character '\xa0'; use an ordinary space or a new line instead"),
    ],
)
def test_characters_that_are_not_of_the_language_are_refused_with_the_remedy(text: str, fault: str) -> None:
    with pytest.raises(ProgramRefused) as refused:
        compile_text(BUSY + text, inputs={"a": (EVENT, 1)})
    assert str(refused.value) == fault
