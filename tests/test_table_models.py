"""Models that judge a release as a whole: by brute force, by every search that takes them, and as refused elsewhere."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.catalog import Catalog
from sqlanon.encoding.frequency.lattice import is_above
from sqlanon.encoding.frequency.task import ClassesOfSize, LatticeTask, Verdict
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.jobs.dbt.project import project_files
from sqlanon.jobs.freezing import Freezing
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from sqlanon.models import AverageRisk, DistinctLDiversity, EntropyLDiversity, PopulationUniques, models_of
from sqlanon.models.table_model import SmallestClasses, leave_out_for_all
from sqlanon.models.uniqueness.estimating import estimate_uniqueness
from sqlanon.policy import Policy
from sqlanon.results.measures import ModelResult
from sqlanon.sql import Relation
from sqlanon.verification.release import verify_rows
from tests.jobs_support import frozen
from tests.lattice_support import build_problem, check_node, table_of
from tests.oracle.lattice import MODELS, TABLE_MODELS, Case, cases, minimal, violates_as_a_whole, zayatz_share
from tests.random_cases import many
from tests.rules_support import apply
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow

ALGORITHMS = ("optimal", "incognito", "bottom-up", "samarati")
SIZES = st.lists(st.integers(1, 6), min_size=1, max_size=7)
RISKS = st.sampled_from([1, 0.7, 0.5, 0.34, 1 / 3, 0.3, 0.25, 0.2, 0.12])


QUICK = settings(deadline=None, max_examples=200)


# --- the rule by itself


@QUICK
@given(SIZES, RISKS)
def test_the_smallest_classes_are_the_fewest_rows_to_leave_out(sizes: list[int], risk: float) -> None:
    wanted = {"model": "average-risk", "risk": risk}
    subsets = itertools.chain.from_iterable(itertools.combinations(sizes, count) for count in range(len(sizes) + 1))
    fewest = sum(sizes) - max(sum(kept) for kept in subsets if not violates_as_a_whole(wanted, kept))
    model, counted = AverageRisk(risk), Counter(sizes)
    left = model.leave_out(counted).taken_from(counted)
    assert sum(sizes) - sum(size * classes for size, classes in left.items()) == fewest
    assert model.is_satisfied_by(left)


@QUICK
@given(SIZES, RISKS)
def test_figures_and_verdicts_agree(sizes: list[int], risk: float) -> None:
    model, counted = AverageRisk(risk), Counter(sizes)
    assert model.figure(counted) == len(sizes) / sum(sizes)
    violates = violates_as_a_whole({"model": "average-risk", "risk": risk}, sizes)
    assert model.is_satisfied_by(counted) is not violates
    assert model.is_met_by(model.figure(counted), sum(sizes)) in (None, not violates)
    assert (model.leave_out(counted) == SmallestClasses()) is not violates


@QUICK
@given(SIZES, RISKS, RISKS)
def test_the_stricter_of_two_models_says_what_is_left_out(sizes: list[int], one: float, other: float) -> None:
    models, counted = [AverageRisk(one), AverageRisk(other)], Counter(sizes)
    out = leave_out_for_all(models, counted)
    assert out.taken_from(counted) == min(models, key=lambda m: m.risk).leave_out(counted).taken_from(counted)


@QUICK
@given(SIZES, RISKS, st.data())
def test_what_suffices_does_where_classes_are_merged(sizes: list[int], risk: float, data: st.DataObject) -> None:
    model, places = AverageRisk(risk), data.draw(st.lists(st.integers(0, 2), min_size=len(sizes), max_size=len(sizes)))
    merged = Counter(Counter(dict(zip(range(3), map(sum, _parts(sizes, places)), strict=True))).values())
    del merged[0]
    assert _rows_out(model, merged) <= _rows_out(model, Counter(sizes))


def _parts(sizes: list[int], places: list[int]) -> list[list[int]]:
    return [[size for size, at in zip(sizes, places, strict=True) if at == place] for place in range(3)]


def _rows_out(model: AverageRisk, sizes: Counter[int]) -> int:
    left = model.leave_out(sizes).taken_from(sizes)
    return sum(size * (classes - left.get(size, 0)) for size, classes in sizes.items())


def test_classes_that_violate_another_model_are_left_out_first() -> None:
    task = LatticeTask((DistinctLDiversity("s", 2), AverageRisk(0.43)), (), 9, 3)
    sizes = [ClassesOfSize(1, 3, 2, 2), ClassesOfSize(2, 1, 0, 0), ClassesOfSize(4, 1, 0, 0)]
    assert task.verdict_of(sizes) == Verdict(2, 2)


def test_a_floor_is_no_more_than_what_any_division_must_suppress() -> None:
    """A class that violates diversity may have parts that do not; those that are left out for the risk have to go."""
    task = LatticeTask((EntropyLDiversity("s", 2), AverageRisk(0.5)), (), 8, 8)
    sizes = [ClassesOfSize(1, 2, 0, 0), ClassesOfSize(2, 1, 0, 0), ClassesOfSize(4, 1, 1, 1)]
    assert task.verdict_of(sizes) == Verdict(6, 1)
    assert task.verdict_of([ClassesOfSize(1, 4, 0, 0), ClassesOfSize(4, 1, 1, 1)]) == Verdict(8, 2)


@QUICK
@given(SIZES, st.sampled_from([0.5, 0.25, 0.1]), st.sampled_from([0, 0.001, 0.01, 0.02, 0.05, 0.2]))
def test_population_uniques_are_those_of_the_estimate(sizes: list[int], fraction: float, share: float) -> None:
    model, counted = PopulationUniques(share, fraction, "zayatz"), Counter(sizes)
    assert model.figure(counted) == pytest.approx(zayatz_share(sizes, fraction), abs=1e-12)
    left, alone = model.leave_out(counted).taken_from(counted), sizes.count(1)
    assert model.is_satisfied_by(left)
    uniques = alone - left.get(1, 0)
    assert {**left, 1: alone} == {**counted, 1: alone}
    fewer = Counter(sizes)
    fewer[1] -= max(0, uniques - 1)
    assert uniques == 0 or not model.is_satisfied_by(+fewer)


def test_nothing_is_satisfied_by_a_model_that_can_not_be_fitted() -> None:
    """Of classes of one row alone Pitman's likelihood has no maximum; the rule then trusts Zayatz's estimate."""
    sizes = {1: 9}
    assert PopulationUniques(0.9, 0.05, "pitman").figure(sizes) == math.inf
    assert not PopulationUniques(0.9, 0.05, "pitman").is_satisfied_by(sizes)
    assert PopulationUniques(0.9, 0.05).figure(sizes) == PopulationUniques(0.9, 0.05, "zayatz").figure(sizes)
    known = PopulationUniques(0.2, 1.0, "pitman")
    assert known.figure({1: 2, 3: 2}) == 0.25
    assert known.leave_out({1: 2, 3: 2}) == SmallestClasses(1, 1)
    assert known.attainable(math.inf) == "no share: no model can be fitted"


# --- the searches


def whole_cases() -> st.SearchStrategy[Case]:
    """Cases with a model of whole tables, alone or beside one of classes."""
    beside = st.lists(st.sampled_from(MODELS), max_size=1)
    models = st.tuples(st.sampled_from(TABLE_MODELS), beside).map(lambda both: (both[0], *both[1]))
    return st.builds(lambda case, chosen: replace(case, models=chosen), cases(), models)


def for_whole_cases(database: Database, test: Any) -> None:
    quick = settings(
        max_examples=many(24 if database.engine == "duckdb" else 12),
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    quick(given(whole_cases(), st.data())(test))()


@pytest.mark.either_engine
def test_every_generalization_is_judged_as_by_brute_force(database: Database) -> None:
    def test(case: Case, _: st.DataObject) -> None:
        with table_of(database, case) as table:
            policy = database.policy(table, case.attributes, algorithm={"name": "optimal"}, **case.policy)
            try:
                with build_problem(policy) as problem:
                    nodes = case.nodes
                    verdicts = {node: check_node(problem.sets, node) for node in nodes}
                    for node, verdict in verdicts.items():
                        out = len(case.suppressed_rows(node))
                        assert (verdict.suppressed > case.budget) == (out > case.budget)
                        assert out > case.budget or verdict.suppressed == out
                        for other in nodes:
                            below = len(case.suppressed_rows(other))
                            assert not is_above(node, other) or below > case.budget or verdict.floor <= below
            except ProtectionError:
                assert case.suppressed_rows(case.nodes[-1])

    for_whole_cases(database, test)


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ALGORITHMS)
def test_searches_find_what_brute_force_finds(database: Database, name: str) -> None:
    def test(case: Case, data: st.DataObject) -> None:
        quality = data.draw(st.sampled_from(["height", "aecs", "discernibility"]))
        satisfying = case.satisfying()
        with table_of(database, case) as table:
            algorithm = {"name": name, "quality": quality}
            policy = database.policy(table, case.attributes, algorithm=algorithm, **case.policy)
            try:
                with build_problem(policy) as problem:
                    findings = solve(problem, policy, SearchOptions())
            except ProtectionError:
                assert not case.budget
                assert case.suppressed_rows(case.nodes[-1])
                return
        if name == "optimal":
            assert (findings.chosen in satisfying) if satisfying else findings.chosen is None
            if quality == "height":
                assert findings.chosen == case.best(lambda node: float(sum(node)))
        elif name == "samarati":
            least = min(map(sum, satisfying), default=None)
            assert (None if findings.chosen is None else sum(findings.chosen)) == least
        else:
            assert set(findings.minimal) == minimal(satisfying)
        if findings.chosen is not None:
            assert findings.suppressed == len(case.suppressed_rows(findings.chosen))

    for_whole_cases(database, test)


# --- runs

ATTRIBUTES: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 30]}},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}},
    "s": "sensitive",
}
COLUMNS = {"age": "INTEGER", "zip": "VARCHAR(5)", "s": "VARCHAR(9)"}
ROWS = [(20 + n * n % 60, f"{53000 + n % 11}", "abc"[n % 3]) for n in range(120)]


def result_of(results: tuple[ModelResult, ...], model: str = "average-risk") -> ModelResult:
    return next(one for one in results if one.model == model)


def verified(policy: Policy) -> tuple[ModelResult, ...]:
    """Verify the published table, in a session that may be beside another one."""
    with connect(policy.source.url or "") as engine:
        relation = Relation(policy.release.table or "")
        return verify_rows(engine, relation, ["age", "zip"], models_of(policy), policy, {}, None).models


@pytest.mark.parametrize("name", [*ALGORITHMS, "datafly"])
def test_a_release_has_no_more_risk_than_asked(database: Database, name: str) -> None:
    table = database.create(COLUMNS, ROWS)
    privacy = [{"model": "k-anonymity", "k": 2}, {"model": "average-risk", "risk": 0.2}]
    policy = database.policy(table, ATTRIBUTES, privacy=privacy, suppression=0.1, algorithm={"name": name})
    run = anonymize(policy)
    shown = Counter(database.sql(f"SELECT age, zip FROM {table}_r"))
    assert len(shown) / shown.total() <= 0.2
    assert min(shown.values()) >= 2
    judged = result_of(run.models)
    assert judged.satisfied
    assert judged.worst == pytest.approx(len(shown) / shown.total())
    assert result_of(verified(policy)) == judged


@pytest.mark.parametrize("estimator", ["dankar", "snb"])
def test_a_release_lets_no_more_be_unique_than_asked(database: Database, estimator: str) -> None:
    table = database.create(COLUMNS, ROWS)
    asked = {"model": "population-uniqueness", "share": 0.004, "sample_of": 0.05, "estimator": estimator}
    policy = database.policy(table, ATTRIBUTES, privacy=[asked], suppression=0.05, algorithm={"name": "optimal"})
    run = anonymize(policy)
    counted = Counter(Counter(database.sql(f"SELECT age, zip FROM {table}_r")).values())
    uniqueness = estimate_uniqueness(sorted(counted.items()), 0.05)
    share = getattr(uniqueness, estimator).share
    assert share <= 0.004
    judged = result_of(run.models, "population-uniqueness")
    assert judged.worst == pytest.approx(share)
    assert result_of(verified(policy), "population-uniqueness") == judged


@pytest.mark.either_engine
def test_a_release_that_was_changed_is_told(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(
        table, ATTRIBUTES, privacy=[{"model": "average-risk", "risk": 0.2}], algorithm={"name": "optimal"}
    )
    anonymize(policy)
    assert result_of(verified(policy)).satisfied
    database.sql(f"UPDATE {table}_r SET zip = CONCAT(zip, s)")
    database.sql(f"INSERT INTO {table}_r VALUES ('x', '1', 'a'), ('x', '2', 'a'), ('x', '3', 'a'), ('x', '4', 'a')")
    database.sql(f"DELETE FROM {table}_r WHERE age <> 'x'")
    assert result_of(verified(policy)) == ModelResult("average-risk", {"risk": 0.2}, False, 1.0, 4, 4)


@pytest.mark.either_engine
def test_suppressed_rows_that_are_shown_unprotected_are_not_judged(database: Database) -> None:
    table = database.create(COLUMNS, [*ROWS, (90, "99999", "a")])
    policy = database.policy(
        table,
        ATTRIBUTES,
        privacy=[{"model": "k-anonymity", "k": 2}, {"model": "average-risk", "risk": 0.2}],
        suppression=0.1,
        suppressed={"star": "unprotected"},
        algorithm={"name": "optimal"},
    )
    run = anonymize(policy)
    shown = Counter(database.sql(f"SELECT age, zip FROM {table}_r"))
    starred = shown.pop(("*", "*"))
    assert starred
    assert result_of(run.models).worst == pytest.approx(len(shown) / shown.total())


@pytest.mark.either_engine
def test_new_rows_are_held_to_the_model(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    privacy = [{"model": "average-risk", "risk": 0.2}]
    run = anonymize(database.policy(table, ATTRIBUTES, privacy=privacy, algorithm={"name": "optimal"})).run
    newer = database.create(COLUMNS, [(20 + n, f"5300{n % 10}", "a") for n in range(5)] * 2 + ROWS[:60])
    with pytest.raises(ProtectionError, match="rows are in classes that violate a model"):
        apply(database, run, newer, f"{newer}_e", "error")
    apply(database, run, newer, f"{newer}_r")
    shown = Counter(database.sql(f"SELECT age, zip FROM {newer}_r"))
    assert 0 < len(shown) / shown.total() <= 0.2
    assert shown.total() < 70


@pytest.mark.either_engine
def test_jobs_and_dbt_are_refused(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    privacy = [{"model": "average-risk", "risk": 0.2}]
    run = anonymize(database.policy(table, ATTRIBUTES, privacy=privacy, algorithm={"name": "optimal"})).run
    with pytest.raises(PolicyError, match="a job judges classes one by one, and average-risk a release as a whole"):
        frozen(database, run)
    dbt = pytest.raises(PolicyError, match="a dbt project judges classes one by one, and average-risk")
    with connect(database.url) as engine, Catalog.open(engine) as catalog, dbt:
        project_files(engine, catalog, catalog.run(run), Freezing(name="recoded"))


@pytest.mark.either_engine
@pytest.mark.parametrize(
    "algorithm",
    [
        "mondrian",
        "rothko-t",
        "rothko-s",
        "top-down",
        "microaggregation",
        "r-gather",
        "local-suppression",
        "cell-generalization",
    ],
)
def test_searches_that_decide_class_by_class_are_refused(database: Database, algorithm: str) -> None:
    table = database.create(COLUMNS, ROWS[:20])
    policy = database.policy(
        table, ATTRIBUTES, privacy=[{"model": "average-risk", "risk": 0.2}], algorithm={"name": algorithm}
    )
    with pytest.raises(PolicyError) as refused:
        anonymize(policy)
    sentence = (
        f"privacy[0] (average-risk): it judges a release as a whole, and {algorithm} decides class by class; choose"
        " incognito, samarati, bottom-up, optimal or datafly."
    )
    assert sentence in refused.value.problems


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"remainder": "recode", "suppression": 0.1}, "leave remainder out"),
        ({"suppressed": "star", "suppression": 0.1}, "write suppressed: omit"),
    ],
)
def test_what_the_sizes_of_classes_do_not_decide_is_refused(
    database: Database, more: dict[str, Any], said: str
) -> None:
    table = database.create(COLUMNS, ROWS[:20])
    privacy = [{"model": "average-risk", "risk": 0.2}]
    policy = database.policy(table, ATTRIBUTES, privacy=privacy, algorithm={"name": "optimal"}, **more)
    with pytest.raises(PolicyError, match=said):
        anonymize(policy)


@pytest.mark.either_engine
def test_a_refusal_says_what_risk_could_be_had(database: Database) -> None:
    table = database.create(COLUMNS, ROWS[:5])
    privacy = [{"model": "average-risk", "risk": 0.1}]
    with pytest.raises(ProtectionError, match=r"Attainable: risk: 0\.2\."):
        anonymize(database.policy(table, ATTRIBUTES, privacy=privacy, algorithm={"name": "optimal"}))
