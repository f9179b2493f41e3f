"""Reads the keys of a constraint query's document into variables and bounds of a graph."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from engine.constraint_queries.constraints import Comparison, ConstraintSpecification, DistanceLimit, Variable, VariablePair
from engine.constraint_queries.graph import ConstraintGraph, DistanceBound, TimeBound, time_bounds
from engine.constraint_queries.sums import FIRST, NAMED, Factor, NoSum, Sum, SumComparison, constant_of, parts_of, time_difference
from engine.context import Context
from engine.model.conditions import FLIPPED, OPERATORS, Condition, Conditions
from engine.model.faults import unknown_name
from engine.model.feed import ColumnType, Crs
from engine.model.messages import Message, message_of
from engine.model.region import Region

MAX_VARIABLES = 32
MAX_CONSTRAINTS = 2_000
REPORTS = ("all", "first")
EXPIRATIONS = ("tight", "loose", "domains")
HALF_ROUND = 20_003_932.0
"""Metres: the greatest distance of two points on the ellipsoid."""
MOST_EXACT = 2.0**53
"""Greater differences of times may not be exact as doubles."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")


def read(document: Mapping[str, Any], context: Context) -> tuple[ConstraintSpecification, ConstraintGraph] | None:
    """The specification of a document, and its graph before closure; not yet checked for
    satisfiability. Null after a fault."""
    reader = _Reader(document, context)
    found = reader.specification()
    graph = ConstraintGraph(tuple(reader.names), tuple(reader.times), tuple(reader.greatest), tuple(reader.least))
    return None if found is None else (found, graph)


class _Reader:
    """Reads one document."""

    def __init__(self, document: Mapping[str, Any], context: Context) -> None:
        self.document, self.context = document, context
        self.names: list[str] = []
        self.where: list[list[Condition]] = []
        self.own: list[list[Comparison]] = []
        self.regions: list[list[Region]] = []
        self.times: list[TimeBound] = []
        self.least: list[DistanceBound] = []
        self.greatest: list[DistanceBound] = []
        self.comparisons: dict[tuple[int, int], list[Comparison]] = {}
        self.sums: list[SumComparison] = []

    def specification(self) -> ConstraintSpecification | None:
        before = len(self.context.faults)
        where = self.context.at("where").where(self.document.get("where", []))
        self.read_variables(self.document.get("variables"), self.context.at("variables"))
        here = self.context.at("constraints")
        for k, item in enumerate(here.items(self.document.get("constraints", []), most=MAX_CONSTRAINTS, what=Message("constraints"))):
            self.read_constraint(k, item, here.at(k))
        symmetric = self.read_symmetric(self.document.get("symmetric", []), self.context.at("symmetric"))
        report = self.context.at("report").choice(self.document.get("report", "all"), REPORTS)
        expiration = self.context.at("expiration").choice(self.document.get("expiration", "tight"), EXPIRATIONS)
        if len(self.context.faults) > before or report is None or expiration is None:
            return None
        return ConstraintSpecification(
            self.document.get("name", ""), where, self.variables(), self.pairs(), symmetric, report, expiration, _distinct(self.sums)
        )

    # -- variables ---------------------------------------------------------------------------------

    def read_variables(self, value: Any, context: Context) -> None:
        if not isinstance(value, Mapping) or not value:
            if "variables" in self.document:
                context.fault(Message('must be an object from variable to filter, for example {"V1": {"where": [["temp", ">", 30]]}}'))
            return
        if len(value) > MAX_VARIABLES:
            context.fault(Message("must have at most {most} variables, not {count}", most=MAX_VARIABLES, count=len(value)))
        for name, entry in value.items():
            here = context.at(name)
            if not isinstance(name, str) or not _NAME.fullmatch(name):
                here.fault(Message("{name} is not the name of a variable: letters, digits and _, not beginning with a digit", name=repr(name)))
            given = here.object(entry, optional=("where",))
            self.names.append(name)
            self.where.append(list(here.at("where").where(given.get("where", [])).items))
            self.own.append([])
            self.regions.append([])

    def variables(self) -> tuple[Variable, ...]:
        """The variables; each has its filters without repetitions, in the order of the document."""
        return tuple(
            Variable(name, Conditions(_distinct(where)), _distinct(own), _distinct(regions))
            for name, where, own, regions in zip(self.names, self.where, self.own, self.regions, strict=True)
        )

    def position(self, name: Any, context: Context) -> int | None:
        if not isinstance(name, str) or name not in self.names:
            context.fault(unknown_name(name, self.names, what=Message("variable")))
            return None
        return self.names.index(name)

    def positions(self, value: Any, context: Context, *, least: int) -> list[int]:
        """Different variables by position; empty after a fault."""
        given = context.items(value, least=least, most=MAX_VARIABLES, what=Message("names of variables"))
        found = [self.position(name, context.at(i)) for i, name in enumerate(given)]
        for i, one in enumerate(found):
            if one is not None and one in found[:i]:
                context.at(i).fault(Message("variable {name} is named twice; variables take different events", name=repr(self.names[one])))
                return []
        return [] if None in found else [one for one in found if one is not None]

    # -- constraints -------------------------------------------------------------------------------

    def read_constraint(self, k: int, item: Any, context: Context) -> None:
        given = context.object(item, required=("between",), optional=("dt", "distance", "inside", "compare"))
        if not isinstance(item, Mapping) or "between" not in given:
            return
        between = self.positions(given["between"], context.at("between"), least=1)
        if not set(given) - {"between"}:
            context.fault(Message("constrains nothing: give at least one of the keys 'dt', 'distance', 'inside' and 'compare'"))
        # A short form for k mutually close events: every pair of the variables, in the
        # order in which they are named.
        pairs = [(one, other) for i, one in enumerate(between) for other in between[i + 1 :]]
        for key in ("dt", "distance"):
            if key in given and between and not pairs:
                context.at(key).fault(Message("needs at least two variables in 'between'"))
        if "dt" in given:
            self.read_times(k, given["dt"], pairs, context.at("dt"))
        if "distance" in given:
            self.read_distance(k, given["distance"], pairs, context.at("distance"))
        if "inside" in given:
            region = context.at("inside").region(given["inside"])
            for one in between if region is not None else ():
                assert region is not None
                self.regions[one].append(region)
        if "compare" in given:
            here = context.at("compare")
            for i, comparison in enumerate(here.items(given["compare"], least=1, what=Message("comparisons [left, op, right]"))):
                self.read_comparison(k, comparison, between, here.at(i))

    def read_times(self, k: int, value: Any, pairs: Sequence[tuple[int, int]], context: Context) -> None:
        bounds = context.items(value, least=2, most=2, what=Message("spans of time [lo, hi], null = unbounded"))
        if not bounds:
            return
        before = len(context.faults)
        low, high = (None if one is None else context.at(i).duration(one, least=-math.inf) for i, one in enumerate(bounds))
        if len(context.faults) > before:
            return
        if low is not None and high is not None and low > high:
            context.fault(Message("[{low}, {high}] holds nothing: the first number must not be greater than the second", low=low, high=high))
            return
        for one, other in pairs:
            self.times += time_bounds(one, other, low, high, k)

    def read_distance(self, k: int, value: Any, pairs: Sequence[tuple[int, int]], context: Context) -> None:
        given = context.object(value, optional=("max", "min", "open"))
        before = len(context.faults)
        open_ends = context.at("open").boolean(given["open"]) if "open" in given else False
        most = context.at("max").number(given["max"], least=0) if "max" in given else None
        least = context.at("min").number(given["min"], least=0) if "min" in given else None
        if len(context.faults) > before:
            return
        if most is None and least is None:
            context.fault(Message("needs 'max' or 'min'"))
        elif most is not None and (most < (least or 0) or (open_ends and most <= (least or 0))):
            low, high = ("more than", "less than") if open_ends else ("at least", "at most")
            context.fault(Message("no distance is {low} {least} and {high} {most}", low=low, least=f"{least or 0:g}", high=high, most=f"{most:g}"))
        elif least is not None and context.feed.crs is Crs.GEOGRAPHIC and least > HALF_ROUND:
            context.at("min").fault(Message("no two places on Earth are more than {most} metres apart", most=f"{HALF_ROUND:.0f}"))
        for one, other in pairs:
            first, second = min(one, other), max(one, other)
            if most is not None:
                self.greatest.append(DistanceBound(first, second, float(most), open_ends, k))
            if least is not None:
                self.least.append(DistanceBound(first, second, float(least), open_ends, k))

    # -- comparisons -------------------------------------------------------------------------------

    def read_comparison(self, k: int, value: Any, between: Sequence[int], context: Context) -> None:
        parts = context.items(value, least=3, most=3, what=Message("parts: left, op, right"))
        if not parts:
            return
        before = len(context.faults)
        op = context.at(1).choice(parts[1], OPERATORS)
        if any(self.is_sum(parts[i], parts[2 - i]) for i in (0, 2)):
            self.read_sums(k, parts, op, between, context)
            return
        left, right = self.operand(parts[0], context.at(0)), self.operand(parts[2], context.at(2))
        if len(context.faults) > before or op is None:
            return
        for i, side in ((0, left), (2, right)):
            if side is not None and between and side[0] not in between:
                context.at(i).fault(Message("variable {name} is not named in 'between'", name=repr(self.names[side[0]])))
                return
        if left is not None and right is not None:
            self.two_columns(left, op, right, context)
        elif left is None and right is None:
            context.fault(Message('compares no variable: write a column as "variable.column"'))
        elif left is not None:
            self.with_constant(left, op, parts[2], context.at(2), context)
        elif op == "in":
            context.at(2).fault(Message("the right side of 'in' is a list of constants"))
        elif right is not None:
            self.with_constant(right, FLIPPED[op], parts[0], context.at(0), context)

    def is_sum(self, value: Any, other: Any) -> bool:
        """Whether a side contains the name of a variable's column and something more.

        A column that the feed does not have is a fault of the sum, unless `other` is a column of
        text: then the side is a constant.
        """
        if not isinstance(value, str) or NAMED.fullmatch(value.strip()) is not None:
            return False
        columns = [column for name, column in NAMED.findall(value) if name in self.names]
        return any(column in self.context.feed.types for column in columns) or (bool(columns) and not self.is_text(other))

    def is_text(self, value: Any) -> bool:
        found = NAMED.fullmatch(value.strip()) if isinstance(value, str) else None
        return found is not None and found[1] in self.names and self.context.feed.types.get(found[2]) is ColumnType.STRING

    def read_sums(self, k: int, parts: Sequence[Any], op: str | None, between: Sequence[int], context: Context) -> None:
        before = len(context.faults)
        if op == "in":
            context.at(1).fault(Message("a sum is compared with =, !=, <, <=, > or >="))
        left, right = self.sum_of(parts[0], context.at(0)), self.sum_of(parts[2], context.at(2))
        for i, side in ((0, left), (2, right)):
            for one in side:
                if between and one.variable >= 0 and one.variable not in between:
                    context.at(i).fault(Message("variable {name} is not named in 'between'", name=repr(self.names[one.variable])))
        if len(context.faults) > before or op is None:
            return
        comparison = SumComparison(left, op, right)
        self.sums.append(comparison)
        difference = time_difference(comparison)
        if difference is not None:
            self.read_difference(k, *difference)

    def read_difference(self, k: int, start: int, end: int, op: str, bound: float) -> None:
        """Adds a difference of times to the graph as a bound; times are whole numbers."""
        if op == "!=" or abs(bound) >= MOST_EXACT:
            return
        low, high = math.ceil(bound), math.floor(bound)
        if op in ("<", ">"):
            low, high = math.floor(bound) + 1, math.ceil(bound) - 1
        if op == "=" and low != high:
            return
        self.times += time_bounds(start, end, low if op in (">", ">=", "=") else None, high if op in ("<", "<=", "=") else None, k)

    def sum_of(self, value: Any, context: Context) -> Sum:
        """The sum of a text or a number; empty after a fault."""
        if not isinstance(value, str):
            constant = context.number(value)
            return () if constant is None else (Factor(FIRST, constant=float(constant)),)
        try:
            found = [self.factor(op, operand, context) for op, operand in parts_of(value)]
        except NoSum as fault:
            context.fault(message_of(fault))
            return ()
        return () if None in found else tuple(one for one in found if one is not None)

    def factor(self, op: str, operand: str, context: Context) -> Factor | None:
        name, dot, column = operand.partition(".")
        if not dot or not (name[:1].isalpha() or name[:1] == "_"):
            return Factor(op, constant=constant_of(operand))
        if name not in self.names:
            context.fault(unknown_name(name, self.names, what=Message("variable")))
            return None
        if context.column(column, kinds=(ColumnType.INT, ColumnType.FLOAT)) is None:
            return None
        return Factor(op, self.names.index(name), column)

    def operand(self, value: Any, context: Context) -> tuple[int, str] | None:
        """Position and column of `variable.column`; null for a constant."""
        if not isinstance(value, str) or "." not in value:
            return None
        name, _, column = value.partition(".")
        types = self.context.feed.types
        if name not in self.names:
            if column in types and _NAME.fullmatch(name):
                context.fault(unknown_name(name, self.names, what=Message("variable")))
            return None
        if column not in types:
            if _NAME.fullmatch(column):
                context.fault(unknown_name(column, types, what=Message("column")))
            return None
        return self.names.index(name), column

    def with_constant(self, side: tuple[int, str], op: str, value: Any, at_value: Context, context: Context) -> None:
        # Read like a condition of `where`; its pointer is moved from the condition's
        # third part to the constant.
        trial = Context(context.feed, context.regions)
        condition = trial.condition([side[1], op, value])
        for fault in trial.faults:
            steps = fault.pointer.split("/")[1:]
            place = at_value.at(*steps[1:]) if steps[:1] == ["2"] else context.at(*steps)
            place.fault(fault.message)
        if condition is not None:
            self.where[side[0]].append(condition)

    def two_columns(self, left: tuple[int, str], op: str, right: tuple[int, str], context: Context) -> None:
        types = context.feed.types
        kinds = {types[left[1]], types[right[1]]}
        if op == "in":
            context.at(2).fault(Message("the right side of 'in' is a list of constants"))
        elif len(kinds) > 1 and not kinds <= {ColumnType.INT, ColumnType.FLOAT}:
            context.fault(Message("a column of type {type} cannot be compared with one of type {other}", type=types[left[1]], other=types[right[1]]))
        elif ColumnType.BOOL in kinds and op not in ("=", "!="):
            context.at(1).fault(Message("columns of type bool have no order: use = or !="))
        elif left[0] == right[0]:
            self.own[left[0]].append(Comparison(left[1], op, right[1]))
        else:
            comparison = Comparison(left[1], op, right[1])
            key = (left[0], right[0]) if left[0] < right[0] else (right[0], left[0])
            self.comparisons.setdefault(key, []).append(comparison if left[0] < right[0] else comparison.flipped)

    # -- the whole ---------------------------------------------------------------------------------

    def read_symmetric(self, value: Any, context: Context) -> tuple[tuple[int, ...], ...]:
        groups: list[tuple[int, ...]] = []
        for i, item in enumerate(context.items(value, what=Message("groups of variables"))):
            group = tuple(sorted(self.positions(item, context.at(i), least=2)))
            for other in groups:
                if set(group) & set(other):
                    shared = self.names[min(set(group) & set(other))]
                    context.at(i).fault(Message("variable {shared} is in two groups; join them into one", shared=repr(shared)))
            groups.append(group)
        return tuple(sorted(groups))

    def pairs(self) -> tuple[VariablePair, ...]:
        keys = {(min(one.start, one.end), max(one.start, one.end)) for one in self.times} | set(self.comparisons)
        keys |= {(one.first, one.second) for one in (*self.least, *self.greatest)}
        return tuple(self.pair(*key) for key in sorted(keys))

    def pair(self, first: int, second: int) -> VariablePair:
        """All constraints between two variables as one Pair."""
        after = [one.upper for one in self.times if (one.start, one.end) == (first, second)]
        before = [-one.upper for one in self.times if (one.start, one.end) == (second, first)]
        least = [(one.value, one.open) for one in self.least if (one.first, one.second) == (first, second)]
        greatest = [(one.value, not one.open) for one in self.greatest if (one.first, one.second) == (first, second)]
        low, high = max(least, default=None), min(greatest, default=None)
        return VariablePair(
            first,
            second,
            max(before, default=None),
            min(after, default=None),
            None if low is None else DistanceLimit(*low),
            None if high is None else DistanceLimit(high[0], not high[1]),
            _distinct(self.comparisons.get((first, second), [])),
        )


def _distinct(items: Sequence[Any]) -> tuple[Any, ...]:
    found: list[Any] = []
    for item in items:
        if item not in found:
            found.append(item)
    return tuple(found)
