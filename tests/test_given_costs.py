"""t-closeness by given costs: the transport problem against another method, its bounds, its file, and runs with it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.engines.base import Engine
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.errors import PolicyError
from sqlanon.models import PrivacyModel
from sqlanon.models.closeness import GivenTCloseness
from sqlanon.models.costs import read_costs
from sqlanon.models.solver import settle
from sqlanon.models.transport import TransportProblem, least_costs
from sqlanon.policy import Policy
from sqlanon.sql import Relation, Statement
from sqlanon.verification.verify import verify_table
from tests.jobs_support import frozen
from tests.models_support import MANY, Classes, insert, load, measure, partitions, table_of
from tests.oracle import brute_force
from tests.random_cases import many
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow

FEW = settings(MANY, max_examples=many(5))
VALUES = [*range(-3, 13)]


def write_costs(file: Path, costs: dict[tuple[Any, Any], Any], separator: str = ";") -> Path:
    lines = (f"{one}{separator}{other}{separator}{cost}\n" for (one, other), cost in costs.items())
    file.write_text("".join(lines))
    return file


@st.composite
def some_costs(draw: st.DrawFn) -> dict[tuple[int, int], int]:
    """Costs of every kind: of a line, of a tree, of a metric, or of none."""
    kind = draw(st.sampled_from(["line", "tree", "any", "metric"]))
    seed = draw(st.randoms(use_true_random=False))
    pairs = list(itertools.combinations(VALUES, 2))
    if kind == "line":
        return {(one, other): abs(one - other) for one, other in pairs}
    if kind == "tree":
        return {pair: 3 - sum(pair[0] // width == pair[1] // width for width in (2, 6)) for pair in pairs}
    if kind == "metric":
        return {pair: seed.randint(50, 100) for pair in pairs}
    return {pair: seed.choice([0, 1, 7, 100]) for pair in pairs[1:]} | {pairs[0]: 100}


def whole(costs: dict[tuple[int, int], int]) -> dict[tuple[Any, Any], Fraction]:
    """The costs both ways, the greatest of which is 1; NULL is at 1 from all values."""
    most = max(costs.values())
    both = {(one, other): Fraction(cost, most) for pair, cost in costs.items() for one, other in (pair, pair[::-1])}
    both |= {(value, value): Fraction(0) for value in [*VALUES, None]}
    return both | {pair: Fraction(1) for value in VALUES for pair in ((value, None), (None, value))}


@FEW
@given(classes=partitions, costs=some_costs(), t=st.sampled_from([0.0, 0.1, 0.25, 0.5]), worst=st.booleans())
def test_every_class_is_judged_by_the_transport_problem(
    engine: Engine,
    tmp_path: Path,
    classes: Classes,
    costs: dict[tuple[int, int], int],
    t: float,
    worst: bool,
) -> None:
    """Unsolved, a class that the bounds leave open violates; solved, the verdicts are the definition's."""
    model = GivenTCloseness("s", t, str(write_costs(tmp_path / "costs.csv", costs)))
    groups = load(engine, classes)
    exact = {c: brute_force.transport_distance(part, table_of(classes), whole(costs)) for c, part in classes.items()}
    violating = {c: distance > Fraction(str(t)) * (1 + Fraction(1, 10**9)) for c, distance in exact.items()}
    assert all(violates >= violating[c] for c, (_, violates) in measure(engine, model, groups).items())

    def listing(one: PrivacyModel, of_worst: bool) -> Sequence[Sequence[Any]]:
        return list(engine.fetch(one.list_open(engine.render, groups, worst=of_worst)))

    (solved,) = settle([model], listing, worst=worst)
    found = measure(engine, solved, groups)
    assert {c: violates for c, (_, violates) in found.items()} == violating
    assert all(measured <= exact[c] + Fraction(1, 10**9) for c, (measured, _) in found.items())
    if worst:
        assert max(measured for measured, _ in found.values()) == pytest.approx(float(max(exact.values())), rel=1e-12)


@settings(max_examples=many(30), deadline=None)
@given(st.data())
def test_totals_of_transport_are_those_of_another_method(data: st.DataObject) -> None:
    """Also with costs of nine digits, and where doubles do not count the parcels of a large class and a large table."""
    size, most = data.draw(st.integers(1, 6)), data.draw(st.sampled_from([1, 3, 10**9]))
    units = [[0] * size for _ in range(size)]
    for one, other in itertools.combinations(range(size), 2):
        units[one][other] = units[other][one] = data.draw(st.integers(0, most))
    counts = st.lists(st.integers(0, data.draw(st.sampled_from([3, 10**9]))), min_size=size, max_size=size)
    supply, demand = (
        {place: n for place, n in enumerate(data.draw(counts.filter(any))) if n} for _ in ("class", "table")
    )
    costs = {(one, other): Fraction(units[one][other]) for one in range(size) for other in range(size)}
    problem = TransportProblem(supply, demand)
    expected = brute_force.transported(
        {place: Fraction(n, sum(supply.values())) for place, n in supply.items()},
        {place: Fraction(n, sum(demand.values())) for place, n in demand.items()},
        costs,
    )
    assert least_costs(units, [problem] * 3) == [expected * problem.parcels] * 3


WRONG = {
    "a;b\n": "has 2 fields in line 1",
    "a;b;c;1\n": "has 4 fields in line 1",
    "a;b;-1\n": "line 1 that is below 0",
    "a;b;nan\n": "not finite",
    "a;b;x\n": "line 1 that is no number",
    "a;b;1\n\nb;a;2\n": "another cost in line 3 than in a line before",
    "a;a;1\na;b;1\n": "a cost from itself in line 1",
    "a;b;1\nb;c;1\n": "lacks 1 of the pairs of its 3 values",
    "a;b;0\n": "has no cost above 0",
    "": "has no cost above 0",
    "a;b;1e40\n": "too long",
    '"' + 40_000 * "a;b;1\n": "is not well-formed",
    "a;b;1\na;c;0.00000000001\nb;c;1\n": "more than 9 digits",
    'a;"b;1\n': "fields",
}


@pytest.mark.parametrize("text", WRONG)
def test_what_is_wrong_with_a_file_of_costs_is_said(tmp_path: Path, text: str) -> None:
    file = tmp_path / "costs.csv"
    file.write_text(text)
    with pytest.raises(PolicyError, match=WRONG[text]):
        read_costs(str(file))


def test_costs_are_in_the_greatest_unit_and_read_again_when_they_change(tmp_path: Path) -> None:
    """Whatever divides a line, in either direction, with the diagonal or without it."""
    file = tmp_path / "costs.csv"
    file.write_text("a,b,0.5\nb,a,0.50\na,c,1.5\nc,b,1\na,a,0\n")
    costs = read_costs(str(file))
    assert costs.values == ("a", "b", "c")
    assert costs.units == ((0, 1, 3, 3), (1, 0, 2, 3), (3, 2, 0, 3), (3, 3, 3, 0))
    assert costs.is_metric
    file.write_text("a\tb\t1\n")
    assert read_costs(str(file)).values == ("a", "b")
    with pytest.raises(PolicyError, match="can't be read"):
        read_costs(str(tmp_path / "other.csv"))


QUASI: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
    "sex": {"role": "quasi-identifier", "hierarchy": "suppress"},
}
COLUMNS = {"age": "INTEGER", "sex": "VARCHAR(1)", "ill": "VARCHAR(1)", "id": "INTEGER"}
GROUPS = {"a": "x", "b": "x", "c": "x", "d": "y", "e": "y", "f": "z"}
FIXED = {
    "equal": dict.fromkeys(itertools.combinations(GROUPS, 2), 7),
    "hierarchical": {
        (one, other): 1 if GROUPS[one] == GROUPS[other] else 2 for one, other in itertools.combinations(GROUPS, 2)
    },
}
SEARCHES: dict[str, dict[str, Any]] = {
    "mondrian": {"algorithm": {"name": "mondrian"}},
    "regions of labels": {"algorithm": {"name": "mondrian"}, "ranges": "cuts"},
    "rothko-t": {"algorithm": {"name": "rothko-t"}},
    "incognito": {"algorithm": {"name": "incognito"}},
    "samarati": {"algorithm": {"name": "samarati"}, "suppression": 0.3},
    "optimal": {"algorithm": {"name": "optimal"}, "suppression": 0.3},
    "starred": {"algorithm": {"name": "optimal"}, "suppression": 0.5, "suppressed": "star"},
    "remainder": {"algorithm": {"name": "optimal"}, "suppression": 0.3, "remainder": "recode"},
    "datafly": {"algorithm": {"name": "datafly"}, "suppression": 0.3},
    "top-down": {"algorithm": {"name": "top-down"}},
    "clusters": {"algorithm": {"name": "microaggregation"}},
}


def some_rows(rows: int) -> list[tuple[Any, ...]]:
    """Rows whose value depends on the rest a little."""
    return [(n * 7 % 61, "mf"[n % 2], "aabcdefb"[(n * n + n // 9) % 8] if n % 13 else None, n) for n in range(rows)]


@pytest.mark.either_engine
@pytest.mark.parametrize("distance", FIXED)
@pytest.mark.parametrize("search", SEARCHES)
def test_costs_of_a_known_distance_give_its_release(
    database: Database, tmp_path: Path, search: str, distance: str
) -> None:
    """Costs that are all the same are the equal distance, those of a hierarchy the hierarchical one."""
    file = write_costs(tmp_path / "costs.csv", FIXED[distance])
    table = database.create(COLUMNS, some_rows(150))
    hierarchy = {"hierarchy": {"mapping": {value: [group, "*"] for value, group in GROUPS.items()}}}
    quasi = QUASI if search != "clusters" else {"age": "quasi-identifier", "sex": "insensitive"}
    found = []
    for asked in (distance, {"csv": str(file)}):
        ill = {"role": "sensitive", **(hierarchy if asked == "hierarchical" else {})}
        model = {"model": "t-closeness", "attribute": "ill", "distance": asked, "t": 0.2}
        policy = database.policy(
            table,
            quasi | {"ill": ill, "id": "insensitive"},
            privacy=[{"model": "k-anonymity", "k": 4}, model],
            **SEARCHES[search],
        )
        outcome = anonymize(policy, replace=True).as_json()
        released = database.sql(f"SELECT * FROM {table}_r ORDER BY id")
        found.append((released, outcome["models"][1]["worst"], outcome["release"]["classes"]))
    assert found[0] == found[1]
    assert found[0][2] > 1


def test_a_table_is_verified_by_costs_and_its_worst_distance_is_exact(engine: Engine, tmp_path: Path) -> None:
    """A class beyond t is found, in whatever way it was made; NULL is as far from all values as can be."""
    costs = {("a", "b"): 1, ("a", "c"): 2, ("b", "c"): 2}
    file = write_costs(tmp_path / "costs.csv", costs, ",")
    classes = {1: "aaab", 2: "abcc", 3: "bbcN", 4: "aabc"}
    rows = [(c, None if value == "N" else value) for c, held in classes.items() for value in held]
    engine.execute(Statement("test", "CREATE TABLE given (q INTEGER, s VARCHAR(1))"))
    insert(engine, "given", ["q", "s"], rows)
    held = {(one, other): Fraction(cost, 2) for pair, cost in costs.items() for one, other in (pair, pair[::-1])}
    held |= {(one, other): Fraction(one != other) for one in "abcN" for other in "abcN" if "N" in (one, other)}
    held |= {(value, value): Fraction(0) for value in "abc"}
    table = "".join(classes.values())
    exact = sorted(float(brute_force.transport_distance(part, table, held)) for part in classes.values())
    for t, violations in ((exact[-1], 0), (exact[-2], 1), (0.0, 4)):
        verified = verify_table(engine, Relation("given"), ["q"], [GivenTCloseness("s", t, str(file))])
        (result,) = verified.models
        assert (result.violations, result.satisfied) == (violations, not violations)
        assert result.worst == pytest.approx(exact[-1])


@pytest.mark.either_engine
def test_what_costs_do_not_go_with_is_refused_before_any_work(database: Database, tmp_path: Path) -> None:
    """A value that the file lacks, samples, a missing file; a way over others that is cheaper is a warning."""
    file = write_costs(tmp_path / "costs.csv", dict.fromkeys(itertools.combinations("abcdef", 2), 1) | {("a", "b"): 5})
    table = database.create(COLUMNS, some_rows(40))
    roles = {"age": "quasi-identifier", "sex": "insensitive", "ill": "sensitive", "id": "insensitive"}

    def asking(name: Path, algorithm: str = "mondrian") -> Policy:
        model = {"model": "t-closeness", "attribute": "ill", "distance": {"csv": str(name)}, "t": 0.5}
        return database.policy(
            table, roles, privacy=[{"model": "k-anonymity", "k": 2}, model], algorithm={"name": algorithm}
        )

    outcome = anonymize(asking(file), replace=True)
    assert any(
        "costs of 1 of the pairs are above those of a way over other values" in text for text in outcome.warnings
    )
    with pytest.raises(PolicyError, match="rothko-s judges classes by samples, and the model has no test on samples"):
        anonymize(asking(file, "rothko-s"))
    with pytest.raises(PolicyError, match=r"other.csv' can't be read"):
        anonymize(asking(tmp_path / "other.csv"))
    few = write_costs(tmp_path / "few.csv", dict.fromkeys(itertools.combinations("abcd", 2), 1))
    with pytest.raises(PolicyError, match=r"few.csv' lacks 2 of the values of 'ill'; give each pair of values a line"):
        anonymize(asking(few))
    if database.engine == "postgres":  # whose procedures have none; the program carries jobs out elsewhere
        with pytest.raises(PolicyError, match="no solver to measure t-closeness"):
            frozen(database, outcome.run)


def test_engines_that_settle_no_models_are_named() -> None:
    assert "not measured on Spark" in SparkSQL.settles_models.lacking


@pytest.mark.either_engine
def test_a_class_that_bounds_leave_open_violates_until_it_is_solved(engine: Engine, tmp_path: Path) -> None:
    """Half of all rows must move, which no single value tells: each is too frequent by a quarter."""
    pairs = itertools.combinations(range(4), 2)
    model = GivenTCloseness("s", 0.3, str(write_costs(tmp_path / "costs.csv", dict.fromkeys(pairs, 1))))
    groups = load(engine, {0: [0, 1], 1: [2, 3]})
    open_classes = list(engine.fetch(model.list_open(engine.render, groups)))
    assert len(open_classes) == 2
    assert measure(engine, model, groups) == {0: (0.5, True), 1: (0.5, True)}
    assert measure(engine, model.solve(open_classes), groups) == {0: (0.5, True), 1: (0.5, True)}
