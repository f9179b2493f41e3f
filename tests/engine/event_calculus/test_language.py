"""The rule language: accepted programs, faults with their places, and texts that must not make
the parser slow or crash."""

from __future__ import annotations

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from engine.event_calculus.compiler import compile_text
from engine.event_calculus.parser import MAX_CHARACTERS, ProgramRefused, parse
from engine.event_calculus.plan import Plan
from engine.event_calculus.program import Program
from engine.event_calculus.shapes import base_name
from tests.engine.event_calculus.recordings import PROGRAMS
from tests.examples import examples

INPUTS = {"a": ("event", 1), "b": ("event", 1), "pair": ("event", 2), "w": ("points", 1), "speed": ("event", 2)}


def accepted(text: str) -> Program:
    return compile_text(text, inputs=INPUTS)


def refused(text: str) -> list[str]:
    with pytest.raises(ProgramRefused) as caught:
        accepted(text)
    return [str(problem) for problem in caught.value.problems]


def test_every_clause_of_rtec_is_read() -> None:
    program = accepted(
        """
        % declarations and rules as RTEC's users write them
        /* over
           lines */
        :- dynamic near/2.
        initially(f(x)=true).
        initiatedAt(f(X)=true, T) :- happensAt(a(X), T), \\+ happensAt(b(X), T), limit(L), L > 3 * 2 - 1.
        initiates(b(X), f(X)=false, T) :- holdsAt(w(X)=true, T).
        terminates(a(X), g(X)=_, T).
        initiatedAt(g(X)=V, T) :- happensAt(start(w(X)=V), T).
        terminatedAt(g(_)=true, T) :- happensAt(end(w(_)=true), T).
        happensAt(both(X), T) :- happensAt(a(X), T), happensAt(b(X), T).
        holdsFor(h(X)=true, I) :-
            holdsFor(f(X)=true, I1), \\+ I1=[], holdsFor(w(X)=true, I2), I2\\=[], !,
            union_all([I1, I2], U), intersect_all([U, I1], V), relative_complement_all(V, [I2], R), intDurGreater(R, 5, I).
        holdsFor(h(_)=true, []).
        holdsFor(m(X)=true, I) :- holdsFor(f(X)=true, I1), holdsFor(w(X)=true, I2), during(I1, I2, source, I).
        holdsFor(n(X)=true, I) :- holdsFor(f(X)=true, I1), holdsFor(w(X)=true, I2), allen(meets, I1, I2, union, true, I).
        fi(f(X)=true, f(X)=false, 10) :- grounding(f(X)=true).
        p(f(_)=true).
        grounding(f(X)=V) :- value(V).
        dynamicDomain(id(_)).
        value(true). value(false). limit(4). limit(-7.5).
        outputEntity(h(_)=true). index(h(X)=true, X). cachingOrder(f(_)=true). sDFluent(h(_)=true).
        needsGrounding(_, _, _) :- fail.
        buildFromPoints(_) :- fail.
        """
    )
    assert len(program.point_rules) == 6
    assert len(program.interval_rules) == 3
    assert program.deadlines[0].extends
    assert [output.name for output in program.outputs] == ["h"]


def test_background_rules_and_alternatives_are_expanded() -> None:
    program = accepted(
        """
        kind(x, tug). kind(y, pilot).
        special(V) :- kind(V, tug).
        special(V) :- kind(V, pilot), \\+ odd(V).
        odd(V) :- kind(V, K), K = pilot, V = z.
        initiatedAt(f(X)=true, T) :- happensAt(a(X), T), (special(X) ; X = q), \\+ special(X).
        """
    )
    assert len(program.point_rules) == 3


TERMS = "initiatedAt(pow(vote(X, Y))=true, T) :- happensAt(pair(X, Y), T).\n"


@pytest.mark.parametrize(
    ("text", "place", "words"),
    [
        ("initiatedAt(f(X)=true, T) :- happensAt(aa(X), T).", "line 1, column 40", "unknown event 'aa'; did you mean 'a'?"),
        ("initiatedAt(f(X)=true, T) :- happensAt(a(X), T),\n  holdsAt(ww(X)=true, T).", "line 2, column 11", "did you mean 'w'?"),
        ("initiatedAt(f(X)=true, T) :- hapensAt(a(X), T).", "line 1, column 30", "unknown condition 'hapensAt'; did you mean 'happensAt'?"),
        ("initiatedAt(f(X)=true, T) :- happensAt(a(X), T), holdAt(w(X)=true, T).", "line 1, column 50", "did you mean 'holdsAt'?"),
        ("holdsFor(f(X)=true, I) :- holdsFor(w(X)=true, J), union_al([J], I).", "line 1, column 51", "did you mean 'union_all'?"),
        ("initiatedAT(f(X)=true, T) :- happensAt(a(X), T).", "line 1, column 1", "unknown kind of rule 'initiatedAT'; did you mean 'initiatedAt'?"),
        ("initiatedAt(f(X)=true, T) :- happensAt(a(X, Y), T).", "line 1, column 40", "event a takes 1 arguments, not 2"),
        ("initiatedAt(f(X, Y)=true, T) :- happensAt(a(X), T).", "line 1, column 18", "no condition binds Y"),
        ("initiatedAt(f(X)=true, T) :- happensAt(a(X), T), Z > 3.", "line 1, column 50", "no condition binds Z"),
        ("initiatedAt(f(X)=true, T) :- holdsAt(w(X)=true, T).", "line 1, column 1", "an event that fixes the time"),
        ("initiatedAt(f(X), T) :- happensAt(a(X), T).", "line 1, column 13", "a fluent with its value"),
        ("initiatedAt(f(X)=true, T) :- happensAt(a(X), T), shell(X).", "line 1, column 50", "unknown fact 'shell'"),
        ("initiatedAt(f(X)=true, T) :- happensAt(speed(X, S), T), S > system(1).", "line 1, column 61", "unknown arithmetic 'system'"),
        ("holdsFor(f(X)=true, I) :- holdsFor(w(X)=true, J), union_all([K], I).", "line 1, column 51", "the list K is used before"),
        ("holdsFor(f(X)=true, I) :- holdsFor(w(X)=true, J), complement_all([J], I).", "line 1, column 1", "declare grounding"),
        (
            "holdsFor(f(X)=true, I) :- holdsFor(g(X)=true, I). holdsFor(g(X)=true, I) :- holdsFor(f(X)=true, I).",
            "column 27",
            "cycle through a statically",
        ),
        ("initiatedAt(f(X)=true, T) :- happensAt(start(f(X)=true), T).", "column 30", "cycle through start or end"),
        ("happensAt(e(X), T) :- happensAt(d(X), T). happensAt(d(X), T) :- happensAt(e(X), T).", "line 1", "cause each other at the same time"),
        ("initiatedAt(w(X)=true, T) :- happensAt(a(X), T).", "line 1, column 1", "w is an input"),
        ("holdsFor(f(X)=true, I) :- holdsFor(w(X)=true, J), during(J, J, sideways, I).", "column 51", "unknown output mode 'sideways'"),
        (":- use_module(library(process)).", "line 1", "directives are not run"),
        ("f(X) :- f(X). initiatedAt(g(X)=true, T) :- happensAt(a(X), T), f(X).", "line 1", "cannot recurse"),
        ("fi(w(X)=true, w(X)=false, 0).", "line 1, column 1", "positive whole number"),
        ("fi(w(X)=true, w(X)=false, 1e999).", "line 1, column 1", "below 2^60, not inf"),
        ("fi(w(X)=true, w(X)=false, 1e19).", "line 1, column 1", "below 2^60, not 1e+19"),
        ("spatial(near(X, Y)=true, proximity(coord, 5, 0.5)).", "line 1, column 26", "below 2^60, not 0.5"),
        ("spatial(near(X, Y)=true, proximity(coord, 5, 2.7)).", "line 1, column 26", "below 2^60, not 2.7"),
        ("spatial(at(X)=true, inside(coord, port, 1e300)).", "line 1, column 21", "below 2^60, not 1e300"),
        ("spatial(near(X, Y)=true, distance(coord, 5)).", "line 1", "unknown event that gives positions"),
        (
            "initiatedAt(f(X)=true, T) :- happensAt(a(X), T)\nterminatedAt(f(X)=true, T) :- happensAt(b(X), T).",
            "line 2, column 1",
            "the '.' at the end",
        ),
        ("initiatedAt(f(X)=true, T) :- happensAt(a(X), T)", "line 1, column 48", "ends inside a clause"),
        ("initially(f(X)=true).", "line 1, column 13", "no condition binds X; use it in a fact or declare grounding"),
        ("initially(f(X)=true) :- k(X), Y > 3. k(a).", "line 1, column 31", "no condition binds Y"),
        ("initially(f(X)=true) :- k(X), \\+ holdsAt(w(X)=true, T). k(a).", "line 1, column 34", "facts, comparisons and arithmetic, without a time"),
        (TERMS + "terminatedAt(pow(X)=true, T) :- happensAt(a(X), T).", "line 2, column 18", "X would stand for a whole term"),
        (TERMS + "initiatedAt(g(X)=true, T) :- happensAt(a(X), T), holdsAt(pow(_)=true, T).", "line 2, column 62", "as in pow(vote(_, _))"),
        (
            TERMS + "initiatedAt(g(X)=true, T) :- happensAt(start(pow(votes(X, X))=true), T).",
            "line 2, column 46",
            "did you mean 'pow(vote(_, _))'?",
        ),
        ("holdsFor(pow(close(_C, M))=true, I) :- holdsFor(w(M)=true, I).", "line 1, column 1", "declare grounding(pow(close(_C, M))=true) :-"),
        ("initiatedAt(f(X)=v(X), T) :- happensAt(a(X), T).", "line 1, column 18", "the value of a fluent must be"),
        ("initiatedAt(f(g(X + 1))=true, T) :- happensAt(a(X), T).", "line 1, column 17", "an argument of g must be"),
        ("initiatedAt('f(g(_))'(X)=true, T) :- happensAt(a(X), T).", "line 1, column 13", "choose another name"),
        (
            "initiatedAt(f(g(X), X)=true, T) :- happensAt(a(X), T).\ninitiatedAt(f(g(X, X))=true, T) :- happensAt(a(X), T).",
            "line 2, column 1",
            "would read alike",
        ),
        (
            "holdsFor(f(X, 1)=true, I) :- holdsFor(f(X, 2)=true, I).\nholdsFor(f(X, 2)=true, I) :- holdsFor(f(X, _)=true, I).",
            "column 30",
            "cycle through a statically",
        ),
        ("happensAt(e(X, 1), T) :- happensAt(e(X, 2), T). happensAt(e(X, 2), T) :- happensAt(e(X, 1.0), T).", "line 1", "cause each other"),
        ("initiatedAt(f(X, 1)=on, T) :- happensAt(start(f(X, N)=on), T), N > 1.", "line 1, column 31", "cycle through start or end"),
        (
            "initiatedAt(f(X)=on, T) :- happensAt(a(X), T). fi(f(X)=on, f(X)=off, 3). p(f(x)=on).",
            "line 1, column 48",
            "is only about some groundings of f(X)=on",
        ),
        ("fi(f(X)=on, f(X)=V, 3).", "line 1, column 18", "values of fi are constants"),
        ("initiatedAt(f(X=true, T) :- happensAt(a(X), T).", "line 1", "expected"),
    ],
)
def test_faults_name_their_place(text: str, place: str, words: str) -> None:
    problems = refused(text)
    assert any(place in problem and words in problem for problem in problems), problems


def test_all_faults_come_together() -> None:
    assert len(refused("initiatedAt(f(X)=true, T) :- happensAt(aa(X), T).\ninitiatedAt(g(X)=true, T) :- happensAt(bb(X), T).")) == 2


def test_terms_are_relations_of_their_own() -> None:
    program = accepted(
        TERMS
        + """terminatedAt(pow(vote(_, 'St. John'))=true, T) :- happensAt(a(_), T).
        holdsFor(obl(act(X, pay(Y)), 5)=true, I) :- holdsFor(pow(vote(X, Y))=true, I).
        initiatedAt(cost(X)=C, T) :- happensAt(a(X), T), cost(item(X), C), cheap(item(X)).
        cost(item(x), 3). cost(item(y), 4). cheap(item(X)) :- cost(item(X), C), C < 4. cheap(other(_)).
        outputEntity(pow(vote(_, _))=true). outputEntity(obl(act(_, pay(_)), _)=true). index(pow(vote(X, _))=true, X). inputEntity(pair(_, _)).
        grounding(pow(vote(X, Y))=true) :- voter(X), voter(Y). voter(x)."""
    )
    assert program.fluents == {("pow(vote(_, _))", 2), ("obl(act(_, pay(_)), _)", 3), ("cost", 1)}
    assert program.facts["cost(item(_), _)", 2]
    assert [base_name(output.name) for output in program.outputs] == ["pow", "obl"]


@pytest.mark.parametrize("name", ["f(_", "f(_)", "f(g(_)). a", "f(g(_),_)", "f(g(_) :- x", "(_", "'f(_", "f(g(1), _)"])
def test_names_of_rows_that_look_like_terms_are_names(name: str) -> None:
    text = f"initiatedAt(seen(X)=true, T) :- happensAt('{name.replace(chr(39), chr(39) * 2)}'(X), T)."
    program = compile_text(text, inputs={name: ("event", 1)})
    assert base_name(name) == name and program.inputs[name, 1] == "event"


def test_constants_divide_a_relation_only_where_it_is_made_of_itself() -> None:
    levels = [
        f"holdsFor(close(X, {n})=true, I) :- holdsFor({before}=true, I)." for n, before in ((24, "w(X)"), (30, "close(X, 24)"), (34, "close(X, 30)"))
    ]
    apart = Plan(accepted("\n".join(levels)))
    assert [node.part for node in apart.nodes] == ["(_, 24)=true", "(_, 30)=true", "(_, 34)=true"]
    assert sorted(apart.levels.values()) == [1, 2, 3]
    whole = Plan(accepted("\n".join(text.replace("close(X, 24)=true, I).", "w(X)=true, I).") for text in levels[:2])))
    assert [node.part for node in whole.nodes] == ["true"]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"initiatedAt(f(X, c{n})=on, T) :- happensAt(start(f(X, c{n + 1})=on), T), holdsAt(f(X, _)=on, T)." for n in range(900)),
        "\n".join(f"holdsFor(f(X, c{n})=on, I) :- holdsFor(f(X, c{(n + 1) % 1_900})=on, I)." for n in range(1_900)),
        "(" * 100_000,
        "f(" * 5_000 + ")" * 5_000 + ".",
        "a :- " + "\\+ " * 20_000 + "b.",
        "a(X) :- X is " + "1 + " * 20_000 + "1.",
        "a(X) :- X is " + "- " * 20_000 + "1.",
        "/*" * 50_000,
        "'" * 99_999,
        "f('" + "\\'" * 200_000,
        "a." * 100_000,
        "x(" + ",".join(["1"] * 50_000) + ").",
        "p0(X) :- " + ", ".join(["p1(X)"] * 50) + ". " + " ".join(f"p{n}(X) :- " + ", ".join([f"p{n + 1}(X)"] * 50) + "." for n in range(1, 12))
        + " initiatedAt(f(X)=true, T) :- happensAt(a(X), T), p0(X).",
        "initiatedAt(f(X)=true, T) :- happensAt(a(X), T), " + ", ".join(["(X = a ; X = b)"] * 30) + ".",
        "%" * (MAX_CHARACTERS + 1),
    ],
)  # fmt: skip
def test_hostile_texts_are_refused_quickly(text: str) -> None:
    started = time.process_time()
    refused(text)
    assert time.process_time() - started < 5


PIECES = [
    "initiatedAt(",
    "f(X)=true",
    ", T)",
    " :- ",
    "happensAt(",
    "a(X)",
    ")",
    ".",
    "\n",
    "\\+ ",
    "(",
    "[",
    "]",
    ";",
    "X",
    "_",
    "1.5",
    "'q",
    "%",
    "/*",
    "=",
    "is",
    "!",
    "-",
    "holdsFor(",
]


@settings(max_examples=examples(150), deadline=2_000)
@given(
    st.one_of(
        st.text(max_size=200), st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.binary(max_size=100).map(lambda b: b.decode("latin-1"))
    )
)
@example("\x00")
@example("é.")
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        accepted(text)
    except ProgramRefused as refusal:
        assert refusal.problems
        assert all(problem.location.line >= 1 and problem.location.column >= 1 for problem in refusal.problems)


@settings(max_examples=examples(75), deadline=5_000)
@given(st.data())
def test_damaged_programs_are_read_or_refused(data: st.DataObject) -> None:
    """A real program with a piece cut out, doubled or replaced."""
    text = (PROGRAMS / "caviar" / "activities.prolog").read_text()[:4_000]
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 40)))
    piece = data.draw(st.sampled_from(["", text[start:end] * 2, ")", "(", ".", "\\+", "holdsAt(", "X"]))
    try:
        compile_text(text[:start] + piece + text[end:], inputs={"coord": ("event", 1)})
    except ProgramRefused as refusal:
        assert refusal.problems


def test_comments_and_quotes_are_not_rules() -> None:
    clauses = parse("% a(b).\n/* c(d). */ e('f(g).').")
    assert [str(clause.head) for clause in clauses] == ["e(f(g).)"]


@pytest.mark.parametrize(
    ("written", "name"),
    [("'St. John''s'", "St. John's"), (r"'St. John\'s'", "St. John's"), ("''", ""), (r"'a\\'", "a\\"), (r"'C:\data'", r"C:\data")],
)
def test_quoted_names_may_hold_quotes(written: str, name: str) -> None:
    clauses = parse(f"port({written}). {written}(x).")
    assert [str(clause.head) for clause in clauses] == [f"port({name})", f"{name}(x)"]


def test_quotes_within_names_hide_no_depth() -> None:
    deep = "(" * 70 + "x" + ")" * 70
    with pytest.raises(ProgramRefused, match="nested deeper"):
        parse(rf"f('\''). g({deep}).")
    assert parse(rf"f('\'{'(' * 70}').")


def test_negation_may_be_written_as_a_term() -> None:
    text = "initiatedAt(f(X)=true, T) :- happensAt(a(X), T), {}."
    assert parse(text.format("not(happensAt(b(X), T))")) == parse(text.format("not happensAt(b(X), T)"))
    assert accepted(text.format("not(happensAt(b(X), T))")).point_rules
    assert accepted(text.format("notable(X)") + " notable(x).").point_rules


def test_a_file_may_begin_with_a_byte_order_mark() -> None:
    assert [str(clause.head) for clause in parse("\ufefff(x).")] == ["f(x)"]
