"""Classes held against a population table: by brute force, in releases, in verification, and where it is refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sqlanon import verify_release
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.methods.generalization.explore.explore_tradeoff import explore_tradeoff
from sqlanon.methods.generalization.lattice import node_checks
from sqlanon.methods.generalization.lattice.search import SearchOptions, solve
from sqlanon.models import models_of
from sqlanon.policy import Policy
from sqlanon.results.measures import ModelResult
from sqlanon.sql import Relation
from sqlanon.verification.release import verify_rows
from tests.lattice_support import build_problem, check_node
from tests.oracle.lattice import Case, Hierarchy, Node, Row, cases, minimal
from tests.random_cases import many
from tests.rules_support import apply
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.slow

ALGORITHMS = ("optimal", "incognito", "bottom-up", "samarati")


@dataclass(frozen=True)
class Mapped:
    """A case, the rows of its population beside its own, and a model of both; other models are the case's."""

    case: Case
    others: tuple[Row, ...]
    model: dict[str, Any]

    @property
    def population(self) -> list[Row]:
        return [row[:-1] for row in (*self.case.rows, *self.others)]

    def fits(self, node: Node) -> Counter[Row]:
        """Count the rows of the population by what they would show."""
        hierarchies = self.case.hierarchies
        return Counter(tuple(h.label(row[i], node[i]) for i, h in enumerate(hierarchies)) for row in self.population)

    def suppressed(self, node: Node) -> int:
        """Count the rows of classes that violate a model; all rows and more where somebody must not be left out."""
        fits, table, classes = self.fits(node), [row[-1] for row in self.case.rows], self.case.classes(node)
        beyond = len(table) + 1 if "minimum" in self.model else 0
        return beyond * len(fits.keys() - classes.keys()) + sum(
            len(rows)
            for shown, rows in classes.items()
            if self._violates(len(rows), fits[shown]) or self.case.violates([row[-1] for row in rows], table)
        )

    def _violates(self, rows: int, members: int) -> bool:
        if self.model["model"] == "k-map":
            return members < self.model["k"]
        least, most = (Fraction(str(self.model.get(key, 0))) for key in ("minimum", "maximum"))
        return not least <= Fraction(rows, members) <= most


MODELS: dict[str, st.SearchStrategy[dict[str, Any]]] = {
    "k-map": st.builds(lambda k: {"model": "k-map", "k": k}, st.integers(2, 5)),
    "delta-presence": st.builds(
        lambda share: {"model": "delta-presence", "maximum": share},
        st.sampled_from([0.2, 0.25, 0.3, 1 / 3, 0.5, 0.6, 2 / 3, 0.75]),
    ),
    "both bounds": st.builds(
        lambda least, most: {"model": "delta-presence", "minimum": least, "maximum": most},
        st.sampled_from([0.05, 0.1, 1 / 6, 0.2, 0.25, 0.3, 1 / 3]),
        st.sampled_from([1 / 3, 0.5, 0.6, 2 / 3, 0.75, 0.999]),
    ),
}


@st.composite
def mapped_cases(draw: st.DrawFn, name: str) -> Mapped:
    case = draw(cases([{"model": "k-anonymity", "k": 1}, {"model": "k-anonymity", "k": 2}], most_rows=12))
    suppression = 0.0 if name == "both bounds" else case.suppression
    case = Case(case.hierarchies, case.rows, case.models[:1], suppression, "omit")
    values = [st.sampled_from([None, *h.paths]) for h in case.hierarchies]
    others = draw(st.lists(st.tuples(*values, st.just(None)), max_size=30))
    return Mapped(case, tuple(others), draw(MODELS[name]))


@contextmanager
def tables_of(database: Database, mapped: Mapped) -> Iterator[tuple[str, dict[str, Any]]]:
    """The table of a case beside its population, and its policy without the algorithm."""
    table = database.create(mapped.case.columns, mapped.case.rows)
    columns = {name: type_ for name, type_ in mapped.case.columns.items() if name != "s"}
    population = database.create(columns, mapped.population)
    wanted = mapped.case.policy
    wanted["privacy"] = [*wanted["privacy"], mapped.model | {"population": population}]
    try:
        yield table, wanted
    finally:
        database.sql(f"DROP TABLE {table}")
        database.sql(f"DROP TABLE {population}")


LONE = Hierarchy({"a": ("*",), "b": ("*",)})
MERGED_IN_THE_POPULATION = Mapped(
    Case((LONE,), ((None, None),) * 3, ({"model": "k-anonymity", "k": 1},)),
    ((None, None), ("a", None)),
    {"model": "k-map", "k": 5},
)
"""A level that merges no groups of the source, and those of the population: it alone satisfies the model."""


EVERYBODY_HAS_A_CLASS = Mapped(
    Case(
        (Hierarchy(dict.fromkeys("abcdefgh", ("*",))),),
        tuple((one, None) for one in "abcdefgh"),
        ({"model": "k-anonymity", "k": 1},),
    ),
    tuple((one, None) for one in "abcdefgh") * 2,
    {"model": "delta-presence", "minimum": 1 / 3, "maximum": 0.4},
)
"""Classes of which each part of those that are counted has some, and all together the population's."""


@pytest.mark.either_engine
@pytest.mark.parametrize("model", MODELS)
def test_searches_find_what_brute_force_finds(database: Database, model: str) -> None:
    @settings(max_examples=many(16), deadline=None, suppress_health_check=list(HealthCheck))
    @given(mapped_cases(model), st.sampled_from(ALGORITHMS), st.booleans())
    @example(MERGED_IN_THE_POPULATION, "optimal", False)
    @example(EVERYBODY_HAS_A_CLASS, "optimal", True)
    def test(mapped: Mapped, name: str, in_parts: bool) -> None:
        with pytest.MonkeyPatch.context() as patch:
            if in_parts:
                patch.setattr(node_checks, "BUCKET_TUPLES", 1)
                patch.setattr(node_checks, "_FEW_CLASSES", 1)
            compare(mapped, name)

    def compare(mapped: Mapped, name: str) -> None:
        case = mapped.case
        satisfying = {node for node in case.nodes if mapped.suppressed(node) <= case.budget}
        with tables_of(database, mapped) as (table, wanted):
            algorithm = {"name": name, "quality": "height"}
            policy = database.policy(table, case.attributes, algorithm=algorithm, **wanted)
            try:
                with build_problem(policy) as problem:
                    for node in case.nodes:
                        assert (check_node(problem.sets, node).suppressed <= case.budget) == (node in satisfying)
                    findings = solve(problem, policy, SearchOptions())
            except ProtectionError:
                assert not satisfying
                return
        if name in ("incognito", "bottom-up"):
            assert set(findings.minimal) == minimal(satisfying)
        least = min(map(sum, satisfying), default=None)
        if name in ("optimal", "samarati"):
            assert (None if findings.chosen is None else sum(findings.chosen)) == least
        if findings.chosen is not None:
            assert findings.suppressed == mapped.suppressed(findings.chosen)

    test()


# --- runs

COLUMNS = {"age": "INTEGER", "zip": "VARCHAR(5)", "born": "DATE", "s": "VARCHAR(9)"}
ATTRIBUTES: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 30]}},
    "zip": {"role": "quasi-identifier", "hierarchy": {"mask": "right", "length": 5}},
    "born": {"role": "quasi-identifier", "hierarchy": {"date": ["month", "year"]}},
    "s": "sensitive",
}
PEOPLE = [
    (None if n % 17 == 0 else 20 + n * 7 % 60, f"{53000 + n * 3 % 40}", f"19{60 + n % 3}-0{1 + n % 9}-11", "abc"[n % 3])
    for n in range(400)
]


def mapped_policy(database: Database, model: str = "k-map", *, every: int = 8, **more: Any) -> tuple[str, str, Policy]:
    """A sample of the people, all of them as its population, and a policy."""
    table, population = database.create(COLUMNS, PEOPLE[::every]), database.create(COLUMNS, PEOPLE)
    asked: dict[str, Any] = {"k-map": {"k": 6}, "delta-presence": {"maximum": 0.3}}
    asked["both bounds"] = {"model": "delta-presence", "minimum": 0.05, "maximum": 0.3}
    privacy = [{"model": model, "population": population} | asked[model]]
    wanted: dict[str, Any] = {"algorithm": {"name": "optimal"}, "privacy": privacy}
    wanted["suppression"] = 0 if model == "both bounds" else 0.1
    return table, population, database.policy(table, ATTRIBUTES, **(wanted | more))


def verified(policy: Policy) -> ModelResult:
    with connect(policy.source.url or "") as engine:
        relation = Relation(policy.release.table or "")
        return verify_rows(engine, relation, ["age", "zip", "born"], models_of(policy), policy, {}, None).models[0]


@pytest.mark.parametrize("name", ["optimal", "datafly"])
def test_every_released_class_fits_k_rows_of_the_population(database: Database, name: str) -> None:
    table, population, policy = mapped_policy(database, algorithm={"name": name})
    run = anonymize(policy)
    (judged,) = run.models
    assert judged.satisfied
    assert judged.worst is not None
    assert judged.worst >= 6
    sizes = Counter(database.sql(f"SELECT age, zip, born FROM {table}_r"))
    assert min(sizes.values()) < 6  # which k-anonymity would not let pass
    assert verified(policy) == judged
    database.sql(f"DELETE FROM {population} WHERE s <> 'a'")
    later = verified(policy)
    assert not later.satisfied
    assert later.violating_rows > 0
    database.sql(f"DROP TABLE {population}")
    with pytest.raises(PolicyError, match="There is no table"):
        verified(policy)


def test_of_the_members_that_fit_a_released_class_no_greater_share_is_released(database: Database) -> None:
    table, population, policy = mapped_policy(database, "delta-presence")
    run = anonymize(policy)
    (judged,) = run.models
    assert judged.satisfied
    assert judged.worst is not None
    assert judged.worst <= 0.3
    (model,) = models_of(policy)
    assert f"Of the rows of {population} that fit a class, no more than 30% are in the release" in model.sentence
    assert verified(policy) == judged
    database.sql(f"INSERT INTO {table}_r SELECT * FROM {table}_r")
    database.sql(f"INSERT INTO {table}_r SELECT * FROM {table}_r")
    tampered = verified(policy)
    assert not tampered.satisfied
    assert tampered.worst == pytest.approx(4 * judged.worst)


def test_all_members_fit_a_class_and_no_lesser_share_of_them_is_released(database: Database) -> None:
    table, population, policy = mapped_policy(database, "both bounds")
    run = anonymize(policy)
    (judged,) = run.models
    assert judged.satisfied
    assert judged.worst is not None
    assert 0.05 <= judged.worst <= 0.3
    (model,) = models_of(policy)
    assert "5% to 30% are in the release, and each of its rows fits one" in model.sentence
    assert verified(policy) == judged
    database.sql(f"INSERT INTO {population} VALUES (29, '99999', '1975-01-01', 'a')")
    alone = verified(policy)
    assert (alone.satisfied, alone.worst, alone.violations, alone.violating_rows) == (False, 0, 1, 0)
    database.sql(f"DELETE FROM {population} WHERE zip = '99999'")
    (shown,) = database.sql(f"SELECT age, zip, born FROM {table}_r LIMIT 1")
    conditions = " AND ".join(f"{name} = '{label}'" for name, label in zip(("age", "zip", "born"), shown, strict=True))
    database.sql(f"DELETE FROM {table}_r WHERE {conditions}")
    assert not verified(policy).satisfied


@pytest.mark.either_engine
@pytest.mark.parametrize("name", ["optimal", "incognito"])
def test_members_without_a_class_count_beside_models_of_whole_releases(database: Database, name: str) -> None:
    """Levels at which somebody of the population fits no class are none to release, however the table is judged."""
    table, population, _ = mapped_policy(database, "both bounds")
    bounds = {"model": "delta-presence", "minimum": 0.001, "maximum": 0.999, "population": population}
    risk = {"model": "average-risk", "risk": 0.999}
    judged, both = (
        database.policy(table, ATTRIBUTES, privacy=models, algorithm={"name": name})
        for models in ([risk], [risk, bounds])
    )
    anonymize(judged)
    assert [model.satisfied for model in verify_release(both).models] == [True, False]
    with build_problem(both) as problem:
        assert check_node(problem.sets, problem.lattice.bottom).suppressed > len(PEOPLE[::8])
    anonymize(both, replace=True)
    assert verify_release(both).satisfied


@pytest.mark.either_engine
def test_stored_rules_and_explorations_refuse_a_minimum_by_name(database: Database) -> None:
    table, _, policy = mapped_policy(database, "both bounds")
    made = anonymize(policy)
    with pytest.raises(PolicyError, match=r"with a minimum of delta-presence .* a run of the new rows"):
        apply(database, made.run, table, f"{table}_again", "error")
    with pytest.raises(PolicyError, match=r"with a minimum of delta-presence .* see `sqlanon lattice`"):
        explore_tradeoff(policy)


@pytest.mark.either_engine
def test_bounds_that_no_release_can_meet_are_refused(database: Database) -> None:
    _, population, policy = mapped_policy(database, "both bounds")
    database.sql(f"INSERT INTO {population} SELECT * FROM {population}")
    database.sql(f"INSERT INTO {population} SELECT * FROM {population}")
    with pytest.raises(ProtectionError, match="nobody of the population may be left out, so no suppression would do"):
        anonymize(policy)


def test_a_population_and_a_hierarchy_of_values_are_looked_at_together(database: Database) -> None:
    """By the search, by the check of the staged release, and by that of the published one."""
    table, population, known = mapped_policy(database)
    groups = {"role": "sensitive", "hierarchy": {"mapping": {"a": ["x", "*"], "b": ["x", "*"], "c": ["y", "*"]}}}
    closeness = {"model": "t-closeness", "attribute": "s", "distance": "hierarchical", "t": 0.25}
    privacy = [*(model.model_dump() for model in known.privacy), closeness]
    wanted: dict[str, Any] = {"algorithm": {"name": "optimal"}, "privacy": privacy, "suppression": 0.1}
    policy = database.policy(table, ATTRIBUTES | {"s": groups}, **wanted)
    first, second = anonymize(policy).models
    assert first.satisfied
    assert first.worst is not None
    assert first.worst >= 6
    assert second.satisfied
    assert verify_release(policy).models == (first, second)
    anonymize(known, replace=True)
    assert [model.satisfied for model in verify_release(policy).models] == [True, False]
    database.sql(f"DELETE FROM {population} WHERE s <> 'a'")
    assert [model.satisfied for model in verify_release(policy).models] == [False, False]


@pytest.mark.parametrize(("model", "worst"), [("k-map", 0.0), ("delta-presence", None)])
def test_a_label_that_nobody_in_the_population_has_is_a_violation(
    database: Database, model: str, worst: float | None
) -> None:
    table, _, policy = mapped_policy(database, model)
    anonymize(policy)
    database.sql(f"UPDATE {table}_r SET zip = 'x' || zip")
    changed = verified(policy)
    assert (changed.satisfied, changed.worst) == (False, worst)


@pytest.mark.either_engine
@pytest.mark.parametrize("model", MODELS)
def test_a_population_that_lacks_people_is_refused(database: Database, model: str) -> None:
    _, population, policy = mapped_policy(database, model)
    database.sql(f"DELETE FROM {population} WHERE age = 76")
    missing = sum(row[0] == 76 for row in PEOPLE[::8])
    assert missing
    with pytest.raises(PolicyError, match=rf"lacks {missing} of 50 rows of the source"):
        anonymize(policy)


@pytest.mark.either_engine
def test_values_that_the_hierarchy_lacks_are_refused(database: Database) -> None:
    taxonomy = {"role": "quasi-identifier", "hierarchy": {"mapping": {v: ["*"] for v in "abc"}}}
    table, population = (
        database.create({"q": "VARCHAR(9)"}, [("a",)] * 4),
        database.create({"q": "VARCHAR(9)"}, [("d",)]),
    )
    database.sql(f"INSERT INTO {population} VALUES ('a'), ('a'), ('a'), ('a')")
    privacy = [{"model": "k-map", "k": 2, "population": population}]
    with pytest.raises(PolicyError, match="Hierarchy of column 'q'"):
        anonymize(database.policy(table, {"q": taxonomy}, privacy=privacy, algorithm={"name": "optimal"}))


@pytest.mark.either_engine
def test_masks_have_the_length_of_both_tables(database: Database) -> None:
    """The longest value of one table would give levels that the labels of the other don't have."""
    table = database.create({"q": "VARCHAR(9)"}, [("a",), ("b",)])
    population = database.create({"q": "VARCHAR(9)"}, [("a",), ("b",), ("cc",), ("d",), ("e",)])
    asked: dict[str, Any] = {
        "privacy": [{"model": "k-map", "k": 3, "population": population}],
        "algorithm": {"name": "optimal"},
    }
    mask = {"mask": "right"}
    with pytest.raises(PolicyError, match=r"attributes\.q is masked .* \(length: 5\)"):
        anonymize(database.policy(table, {"q": {"role": "quasi-identifier", "hierarchy": mask}}, **asked))
    policy = database.policy(table, {"q": {"role": "quasi-identifier", "hierarchy": mask | {"length": 2}}}, **asked)
    assert anonymize(policy).published
    assert verify_release(policy).satisfied


CITIES = {"Berlin": ["Berlin", "*"], "Potsdam": ["Berlin", "*"], "Spandau": ["Berlin", "*"]}
NUMBERS = {"1": ["2", "*"], "2": ["2", "*"], "3": ["1", "*"]}


@pytest.mark.either_engine
@pytest.mark.parametrize("mapping", [CITIES, NUMBERS], ids=["a group named after a value", "two meanings"])
def test_labels_of_two_meanings_are_refused(database: Database, mapping: dict[str, list[str]]) -> None:
    """Labels of a release would be taken for values of which there are more, or fewer."""
    attributes = {"q": {"role": "quasi-identifier", "hierarchy": {"mapping": mapping}}}
    rows = [(value,) for value in mapping] * 2
    table, population = database.create({"q": "VARCHAR(9)"}, rows), database.create({"q": "VARCHAR(9)"}, rows * 5)
    limits = {"name": "optimal", "limits": {"q": [1, 1]}}
    for algorithm in ({"name": "optimal"}, limits):
        privacy = [{"model": "k-map", "k": 3, "population": population}]
        with pytest.raises(PolicyError, match=r"attributes\.q: a label of its hierarchy stands for other values"):
            anonymize(database.policy(table, attributes, privacy=privacy, algorithm=algorithm))
    made = database.policy(table, attributes, privacy=[{"model": "k-anonymity", "k": 2}], algorithm=limits)
    anonymize(made)
    asked = database.policy(table, attributes, privacy=privacy, algorithm=limits, release=made.release.model_dump())
    with pytest.raises(PolicyError, match="stands for other values"):
        verify_release(asked)


BOTH = {"model": "delta-presence", "minimum": 0.1, "maximum": 0.3, "population": "nowhere"}


@pytest.mark.either_engine
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"algorithm": {"name": "mondrian"}}, "which mondrian does not; choose incognito, samarati"),
        ({"suppressed": "star"}, "write suppressed: omit"),
        ({"privacy": [BOTH], "suppression": 0.1}, "write suppression: 0, or leave minimum out"),
        ({"privacy": [BOTH | {"minimum": 0.4}]}, "no share is at least 0.4 and at most 0.3; lower one"),
        ({"remainder": "recode"}, "leave remainder out"),
        ({"attributes": ATTRIBUTES | {"age": ATTRIBUTES["age"] | {"show": "bounds"}}}, "not shown by a label"),
        ({"attributes": ATTRIBUTES | {"age": ATTRIBUTES["age"] | {"top": 60}}}, "has a limit"),
        ({"privacy": [{"model": "k-map", "k": 2, "population": "nowhere"}]}, "there is no table nowhere"),
        (
            {"privacy": [{"model": "delta-presence", "maximum": 0.3, "population": "nowhere"}]},
            "there is no table nowhere",
        ),
    ],
)
def test_what_a_population_does_not_decide_is_refused(database: Database, more: dict[str, Any], said: str) -> None:
    _, _, policy = mapped_policy(database)
    given = {"privacy": [m.model_dump() for m in policy.privacy], "algorithm": {"name": "optimal"}} | more
    attributes = given.pop("attributes", ATTRIBUTES)
    with pytest.raises(PolicyError, match=said):
        anonymize(database.policy(policy.source.table or "", attributes, **given))
