"""Programs in the manner of RTEC's own examples (a toy, voting, e-commerce, activities in a street,
city transport) run as they are written."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.event_calculus.compiler import compile_text
from engine.event_calculus.state import Settings
from tests.engine.event_calculus.worlds import LAST, ByEngine, Inputs, Row, by_oracle, on_time
from tests.examples import examples

PEOPLE, PLACES, MOTIONS, VOTES = ("ann", "bob"), ("home", "pub"), ("m1", "m2"), ("aye", "nay")

TOY = """
initially(location(X)=home) :- person(X), \\+ traveller(X).
initiatedAt(rich(X)=true, T) :- happensAt(win_lottery(X), T).
terminatedAt(rich(X)=true, T) :- happensAt(lose_wallet(X), T).
initiatedAt(location(X)=Y, T) :- happensAt(go_to(X, Y), T).
holdsFor(happy(X)=true, I) :- holdsFor(rich(X)=true, I1), holdsFor(location(X)=pub, I2), union_all([I1, I2], I).
grounding(win_lottery(Person)) :- person(Person).
grounding(go_to(Person, Place)) :- person(Person), place(Place).
grounding(location(Person)=Place) :- person(Person), place(Place).
grounding(rich(Person)=true) :- person(Person).
grounding(happy(Person)=true) :- person(Person).
index(go_to(_, Place), Place).
person(ann). person(bob). traveller(bob). place(home). place(pub).
"""

VOTING = """
:- discontiguous initiatedAt/2.
inputEntity(propose(_, _)). inputEntity(second(_, _)). outputEntity(pow(vote(_, _))=true). outputEntity(per(close_ballot(_, _))=true).
outputEntity(obl(declare(_, _, carried))=true). outputEntity(sanctioned(_)=true). outputEntity(status(_)=voting). outputEntity(voted(_, _)=aye).
index(pow(vote(V, _))=true, V). cachingOrder(status(_)=null). sDFluent(pow(_)=true).
initially(status(_M)=null).
fi(status(M)=proposed, status(M)=null, 10).
fi(status(M)=voting, status(M)=voted, 6).
initiatedAt(status(M)=proposed, T) :- happensAt(propose(_P, M), T), holdsAt(status(M)=null, T).
initiatedAt(status(M)=voting, T) :- happensAt(second(_S, M), T), holdsAt(status(M)=proposed, T).
initiatedAt(status(M)=voted, T) :- happensAt(close_ballot(C, M), T), role_of(C, chair), holdsAt(status(M)=voting, T).
initiatedAt(status(M)=null, T) :- happensAt(declare(C, M, _), T), role_of(C, chair), holdsAt(status(M)=voted, T).
initiatedAt(voted(V, M)=Vote, T) :- happensAt(vote(V, M, Vote), T), holdsAt(status(M)=voting, T).
initiatedAt(voted(_V, M)=null, T) :- happensAt(start(status(M)=null), T).
holdsFor(pow(propose(_P, M))=true, I) :- holdsFor(status(M)=null, I).
holdsFor(pow(vote(_V, M))=true, I) :- holdsFor(status(M)=voting, I).
initiatedAt(per(close_ballot(_C, M))=true, T) :- happensAt(end(aux(M)=true), T), holdsAt(status(M)=voting, T).
initiatedAt(per(close_ballot(_C, M))=false, T) :- happensAt(start(status(M)=voted), T).
fi(aux(M)=true, aux(M)=false, 3).
initiatedAt(aux(M)=true, T) :- happensAt(start(status(M)=voting), T).
happensAt(outcome(M, carried), T) :-
    happensAt(start(status(M)=voted), T),
    findall(V, holdsAt(voted(V, M)=aye, T), Ayes), length(Ayes, A), findall(V, holdsAt(voted(V, M)=nay, T), Nays), length(Nays, N), A >= N.
initiatedAt(obl(declare(_C, M, carried))=true, T) :- happensAt(outcome(M, carried), T).
terminatedAt(obl(declare(_C, M, carried))=true, T) :- happensAt(end(status(M)=voted), T), \\+ happensAt(declare(_, M, nay), T).
fi(sanctioned(C)=true, sanctioned(C)=false, 4).
p(sanctioned(_)=true).
initiatedAt(sanctioned(C)=true, T) :- happensAt(close_ballot(C, M), T), \\+ holdsAt(per(close_ballot(C, M))=true, T).
initiatedAt(sanctioned(C)=true, T) :- happensAt(end(status(M)=voted), T), holdsAt(obl(declare(C, M, carried))=true, T).
initiatedAt(sanctioned(C)=true, T) :-
    happensAt(end(status(M)=voted), T), \\+ happensAt(declare(C, M, nay), T), \\+ holdsAt(obl(declare(C, M, carried))=true, T).
grounding(status(M)=V) :- motion(M), stage(V).
grounding(aux(M)=V) :- motion(M), truth(V).
grounding(voted(V, M)=null) :- role_of(V, voter), motion(M).
grounding(voted(V, M)=Vote) :- role_of(V, voter), motion(M), ballot(Vote).
grounding(pow(propose(P, M))=true) :- person(P), motion(M).
grounding(pow(vote(V, M))=true) :- role_of(V, voter), motion(M).
grounding(per(close_ballot(C, M))=V) :- role_of(C, chair), motion(M), truth(V).
grounding(obl(declare(C, M, carried))=true) :- role_of(C, chair), motion(M).
grounding(sanctioned(C)=V) :- role_of(C, chair), truth(V).
person(ann). person(bob). role_of(ann, chair). role_of(ann, voter). role_of(bob, voter). motion(m1). motion(m2).
stage(null). stage(proposed). stage(voting). stage(voted). truth(true). truth(false). ballot(aye). ballot(nay).
"""

COMMERCE = """
initially(suspended(Ag, Role)=false) :- role_of(Ag, Role), \\+ honest(Ag).
initiatedAt(quote(Merch, Cons)=true, T) :- happensAt(present_quote(Merch, Cons), T).
terminatedAt(quote(Merch, Cons)=true, T) :- happensAt(accept_quote(Cons, Merch), T).
fi(quote(Merch, Cons)=true, quote(Merch, Cons)=false, 5).
p(quote(_Merch, _Cons)=true).
initiatedAt(contract(Merch, Cons)=true, T) :-
    happensAt(accept_quote(Cons, Merch), T), holdsAt(quote(Merch, Cons)=true, T),
    \\+ holdsAt(suspended(Merch, merchant)=true, T), \\+ holdsAt(suspended(Cons, consumer)=true, T).
holdsFor(pow(accept_quote(Cons, Merch))=true, I) :-
    holdsFor(quote(Merch, Cons)=true, I1), holdsFor(suspended(Cons, consumer)=true, I2), holdsFor(suspended(Merch, merchant)=true, I3),
    relative_complement_all(I1, [I2, I3], I).
initiatedAt(per(present_quote(Merch, Cons))=false, T) :- happensAt(present_quote(Merch, Cons), T).
initiatedAt(per(present_quote(Merch, Cons))=true, T) :- happensAt(request_quote(Cons, Merch), T).
fi(per(present_quote(Merch, Cons))=false, per(present_quote(Merch, Cons))=true, 8).
p(per(present_quote(_Merch, _Cons))=false).
/***************** what a contract obliges to, and what ends with it *****************/
fi(contract(Merch, Cons)=true, contract(Merch, Cons)=false, D) :- patience(Merch, D).
initiatedAt(obl(send_EPO(Cons, iServer))=true, T1, T, T2) :- initiatedAt(contract(_Merch, Cons)=true, T1, T, T2).
terminatedAt(obl(send_EPO(Cons, iServer))=true, T) :- happensAt(send_EPO(Cons, iServer, Price), T), price(Price), meets(Price, 5).
initiatedAt(obl(send_EPO(Cons, iServer))=false, T1, T, T2) :- initiatedAt(contract(_Merch, Cons)=false, T1, T, T2).
initiatedAt(suspended(Cons, consumer)=true, T1, T, T2) :-
    initiatedAt(contract(_Merch, Cons)=false, T1, T, T2), holdsAt(obl(send_EPO(Cons, iServer))=true, T).
initiatedAt(obl(send_goods(Merch, iServer))=true, T) :- happensAt(start(contract(Merch, _)=true), T).
initiatedAt(suspended(Merch, merchant)=true, T) :-
    happensAt(present_quote(Merch, Cons), T), holdsAt(per(present_quote(Merch, Cons))=false, T).
initiatedAt(suspended(Cons, consumer)=true, T) :- happensAt(request_quote(Cons, _), T), holdsAt(obl(send_EPO(Cons, iServer))=true, T).
fi(suspended(Ag, merchant)=true, suspended(Ag, merchant)=false, 3).
fi(suspended(Ag, consumer)=true, suspended(Ag, consumer)=false, 6).
p(suspended(_, merchant)=true).
grounding(suspended(Ag, Role)=V) :- role_of(Ag, Role), truth(V).
role_of(ann, merchant). role_of(ann, consumer). role_of(bob, consumer). role_of(bob, merchant). honest(bob).
truth(true). truth(false). price(5). price(6). meets(5, 5). meets(6, 5). patience(ann, 4). patience(bob, 6).
"""

STREET = """
holdsFor(close(A, B, 24)=true, I) :- holdsFor(distance(A, B, 24)=true, I).
holdsFor(close(A, B, 25)=true, I) :- holdsFor(close(A, B, 24)=true, I1), holdsFor(distance(A, B, 25)=true, I2), union_all([I1, I2], I).
holdsFor(close(A, B, 30)=true, I) :- holdsFor(close(A, B, 25)=true, I1), holdsFor(distance(A, B, 30)=true, I2), union_all([I1, I2], I).
holdsFor(close(A, B, 34)=true, I) :- holdsFor(close(A, B, 30)=true, I1), holdsFor(distance(A, B, 34)=true, I2), union_all([I1, I2], I).
holdsFor(close(A, B, 34)=false, I) :- holdsFor(close(A, B, 34)=true, I1), complement_all([I1], I).
holdsFor(closeSymmetric(A, B, 30)=true, I) :- holdsFor(close(A, B, 30)=true, I1), holdsFor(close(B, A, 30)=true, I2), union_all([I1, I2], I).
initially(person(P)=false) :- id(P).
initiatedAt(person(P)=true, T) :- happensAt(start(walking(P)=true), T), \\+ happensAt(disappear(P), T).
initiatedAt(person(P)=false, T) :- happensAt(disappear(P), T).
holdsFor(greeting(A, B)=true, I) :-
    holdsFor(walking(A)=true, I1), holdsFor(person(B)=true, I2), \\+ I2=[], !, holdsFor(close(A, B, 25)=true, I3), intersect_all([I1, I2, I3], I).
holdsFor(greeting(_, _)=true, []).
initiatedAt(meeting(A, B)=true, T) :- happensAt(start(greeting(A, B)=true), T), \\+ happensAt(disappear(A), T), \\+ happensAt(disappear(B), T).
terminatedAt(meeting(A, B)=true, T) :- happensAt(start(close(A, B, 34)=false), T).
holdsFor(moving(A, B)=true, I) :-
    holdsFor(walking(A)=true, I1), holdsFor(walking(B)=true, I2), holdsFor(closeSymmetric(A, B, 30)=true, I3), intersect_all([I1, I2, I3], I).
grounding(close(A, B, N)=V) :- id(A), id(B), A \\= B, threshold(N), truth(V).
grounding(greeting(A, B)=true) :- id(A), id(B), A \\= B.
buildFromPoints(walking(_)=true). collectIntervals(distance(_, _, _)=true).
id(ann). id(bob). threshold(24). threshold(25). threshold(30). threshold(34). truth(true). truth(false).
"""

TRANSPORT = """
initially(punctuality(_, _)=punctual).
initially(noise_level(Id, Type)=low) :- vehicle(Id, Type), Type \\= tram.
initiatedAt(punctuality(Id, Type)=punctual, T) :- happensAt(stop_enter(Id, Type, scheduled), T).
terminatedAt(punctuality(Id, Type)=punctual, T) :- happensAt(stop_enter(Id, Type, late), T).
% ---------------------------------------------------------------------- one value is simple, the other statically determined
holdsFor(punctuality(Id, Type)=non_punctual, I) :- holdsFor(punctuality(Id, Type)=punctual, P), complement_all([P], I).
happensAt(punctuality_change(Id, Type, non_punctual), T) :- happensAt(end(punctuality(Id, Type)=punctual), T).
happensAt(punctuality_change(Id, Type, punctual), T) :- happensAt(start(punctuality(Id, Type)=punctual), T).
initiates(noise_level_change(Id, Type, Value), noise_level(Id, Type)=Value, _T).
holdsFor(driving_style(Id, Type)=unsafe, I) :-
    holdsFor(sharp_turn(Id, Type)=true, I1), holdsFor(speeding(Id, Type)=true, I2), intersect_all([I1, I2], I).
holdsFor(driving_style(Id, Type)=uncomfortable, I) :-
    holdsFor(sharp_turn(Id, Type)=true, I1), holdsFor(driving_style(Id, Type)=unsafe, I2), relative_complement_all(I1, [I2], I).
holdsFor(driving_quality(Id, Type)=high, I) :-
    holdsFor(punctuality(Id, Type)=punctual, I1), holdsFor(driving_style(Id, Type)=unsafe, I2), holdsFor(driving_style(Id, Type)=uncomfortable, I3),
    relative_complement_all(I1, [I2, I3], I).
holdsFor(driving_quality(Id, Type)=low, I) :-
    holdsFor(driving_quality(Id, Type)=high, I1), complement_all([I1], I).
grounding(punctuality(Id, Type)=V) :- vehicle(Id, Type), punctual(V).
grounding(noise_level(Id, Type)=V) :- vehicle(Id, Type), level(V).
grounding(driving_style(Id, Type)=unsafe) :- vehicle(Id, Type).
grounding(driving_style(Id, Type)=uncomfortable) :- vehicle(Id, Type).
grounding(driving_quality(Id, Type)=V) :- vehicle(Id, Type), quality(V).
vehicle(ann, tram). vehicle(bob, bus). punctual(punctual). punctual(non_punctual). level(low). level(loud). quality(high). quality(low).
"""

Given = dict[str, tuple[str, tuple[tuple[str, ...], ...]]]
VEHICLES = (PEOPLE, ("tram", "bus"))
PROGRAMS: dict[str, tuple[str, Given]] = {
    "toy": (TOY, {"win_lottery": ("event", (PEOPLE,)), "lose_wallet": ("event", (PEOPLE,)), "go_to": ("event", (PEOPLE, PLACES))}),
    "voting": (
        VOTING,
        {
            **dict.fromkeys(("propose", "second", "close_ballot"), ("event", (PEOPLE, MOTIONS))),
            **dict.fromkeys(("vote", "declare"), ("event", (PEOPLE, MOTIONS, VOTES))),
        },
    ),
    "commerce": (
        COMMERCE,
        {
            **dict.fromkeys(("present_quote", "accept_quote", "request_quote"), ("event", (PEOPLE, PEOPLE))),
            "send_EPO": ("event", (PEOPLE, ("iServer",), ("5", "6"))),
        },
    ),
    "street": (
        STREET,
        {
            "disappear": ("event", (PEOPLE,)),
            "walking": ("points", (PEOPLE,)),
            "distance": ("intervals", (PEOPLE, PEOPLE, ("24", "25", "30", "34"))),
        },
    ),
    "transport": (
        TRANSPORT,
        {
            "stop_enter": ("event", (*VEHICLES, ("scheduled", "late"))),
            "noise_level_change": ("event", (*VEHICLES, ("low", "loud"))),
            "sharp_turn": ("intervals", VEHICLES),
            "speeding": ("intervals", VEHICLES),
        },
    ),
}


@st.composite
def streams(draw: st.DrawFn, given_: Given) -> list[Row]:
    found = set()
    for _ in range(draw(st.integers(1, 30))):
        name = draw(st.sampled_from(sorted(given_)))
        kind, domains = given_[name]
        t = draw(st.integers(0, LAST - 1))
        end = draw(st.integers(t + 1, LAST)) if kind == "intervals" else t + 1
        found.add((name, tuple(draw(st.sampled_from(domain)) for domain in domains), t, end))
    return sorted(found, key=lambda row: (row[3] if given_[row[0]][0] == "intervals" else row[2], row))


@pytest.mark.parametrize("name", sorted(PROGRAMS))
@settings(max_examples=examples(12), deadline=None)
@given(data=st.data())
def test_a_program_of_rtec_is_the_oracle(name: str, data: st.DataObject) -> None:
    text, given_ = PROGRAMS[name]
    inputs: Inputs = {event: (kind, len(domains)) for event, (kind, domains) in given_.items()}
    stream = data.draw(streams(given_))
    engine = ByEngine(compile_text(text, inputs=inputs), Settings(window=LAST + 30, step=LAST + 30, origin=LAST), inputs=inputs)
    engine.feed_at_once(stream, on_time(stream, inputs))
    assert engine.facts == by_oracle(text, stream, "rtec", inputs)


def test_facts_of_terms_are_reported_with_the_name_of_the_term() -> None:
    inputs: Inputs = {"second": ("event", 2), "propose": ("event", 2), "close_ballot": ("event", 2), "vote": ("event", 3), "declare": ("event", 3)}
    engine = ByEngine(compile_text(VOTING, inputs=inputs), Settings(window=60, step=60, origin=20), inputs=inputs)
    stream: list[Row] = [("propose", ("bob", "m1"), 1, 2), ("second", ("ann", "m1"), 3, 4), ("vote", ("bob", "m1", "aye"), 5, 6)]
    engine.feed_at_once(stream, on_time(stream, inputs))
    assert ("pow", ("vote", "bob", "m1"), "true", 4, 10) in engine.facts
    assert ("per", ("close_ballot", "ann", "m1"), "true", 7, 10) in engine.facts
    assert ("obl", ("declare", "ann", "m1", "carried"), "true", 10, None) in engine.facts
