"""Each condition that lets a search conclude without looking is broken once, on tables where the condition matters.

A search passes over generalizations because of properties that are claimed of models, verdicts and bounds. Ordinary
random tables hardly ever show that such a claim is wrong: the strategies of `tests.oracle.lattice` draw tables that do.
Every mutant must be caught on them; the program as it is must pass.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.strategies import SearchStrategy, just

from sqlanon.errors import ProtectionError, VerificationError
from tests.oracle import thresholds
from tests.oracle.lattice import (
    Case,
    Hierarchy,
    cascading_cases,
    cases,
    gapped_cases,
    judged_cases,
    overruled_cases,
    pick_models,
    prefers_higher,
    shifting_cases,
)
from tests.oracle.mutants import mutated
from tests.oracle.searches import (
    check_all,
    check_best_first,
    check_bounds,
    check_chart,
    check_floors,
    check_optimal,
    check_samarati,
    check_tree,
)
from tests.postgres_server import find_binaries
from tests.random_cases import many
from tests.run_support import Database, duckdb_url, open_database

pytestmark = pytest.mark.slow

MOST, DRAWN = 60, 4  # tables on which a mutant must have been caught; of which so many come from one seed


@pytest.fixture(scope="module")
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    """A database of the engine that small tables cost least: what is broken here is the same for every engine."""
    with contextlib.ExitStack() as stack:
        if find_binaries() is None:
            url = duckdb_url(tmp_path_factory.mktemp("mutants") / "test.duckdb")
        else:
            server = request.getfixturevalue("postgres_server")
            url = server.url(stack.enter_context(server.temporary()))
        yield stack.enter_context(open_database(url))


@dataclass(frozen=True)
class Mutant:
    """A condition that is broken: a text of the program, the text in its place, and the check that must fail.

    seed: the first of those that tables are drawn by, one that gives a table on which it shows.
    """

    place: str
    old: str
    new: str
    check: Callable[[Database, Any], None]
    cases: SearchStrategy[Any]
    seed: int = 1

    @property
    def name(self) -> str:
        return f"{self.place.partition('.')[2]}-{self.check.__name__.removeprefix('check_')}"


TASK = "sqlanon.encoding.frequency.task:LatticeTask"
SETS = "sqlanon.encoding.frequency.frequency_sets:FrequencySets"
BASE = "sqlanon.models.base:PrivacyModel"
DIVERSITY = "sqlanon.models.diversity"
CLOSENESS = "sqlanon.models.closeness"
OPTIMAL = "sqlanon.methods.generalization.lattice.optimal:_OptimalSearch"
BOXES = "sqlanon.methods.generalization.lattice.best_first:BestFirst"
QUALITY = "sqlanon.methods.generalization.lattice.quality.class_quality"
GROWTH = "sqlanon.algorithms.tree.growth"
COUNTS_NULL = "counts_null=self.counts_null"
DIVERSE = {
    "DistinctLDiversity": "distinct-l-diversity",
    "EntropyLDiversity": "entropy-l-diversity",
    "RecursiveLDiversity": "recursive-l-diversity",
}
PREDICTIVE = "not self.completes and self.unions_stay"

PLAIN = cases(pick_models("k-anonymity"), budgets=[0.1, 0.25])
DISTINCT = cases(pick_models("distinct-l-diversity"), budgets=[0.0, 0.25])
OVERRULED = overruled_cases(pick_models("entropy-l-diversity", "recursive-l-diversity", "equal", "kl"))
HIGHER = cases(pick_models("k-anonymity"), budgets=[0.1, 0.25, 0.5]).filter(prefers_higher)
ABOVE = just(  # one of 50 drawn tables that suppress more above: of the others the scores don't tell
    Case(
        (
            Hierarchy({"a": ("g10", "*"), "b": ("g10", "*")}),
            Hierarchy({leaf: (f"g1{'01112'['abcde'.index(leaf)]}", "g20", "*") for leaf in "abcde"}),
            Hierarchy({leaf: (f"g1{'0122'['abcd'.index(leaf)]}", "*") for leaf in "abcd"}),
        ),
        (
            ("a", "d", "a", 1),
            (None, "a", "a", 1),
            ("a", None, "a", 2),
            ("a", "b", "c", 1),
            ("b", "c", None, 4),
            ("b", "e", None, 1),
            ("b", "a", "d", 1),
            ("a", "b", "d", 1),
            ("b", "c", None, 1),
            ("b", "b", "b", 1),
            ("a", "a", "c", 2),
            (None, None, None, 1),
            ("b", "a", "a", 1),
        ),
        ({"model": "k-anonymity", "k": 2},),
        0.5,
        "star",
        {},
    )
)
TREES = thresholds.cases()
SMALL = thresholds.cases("k-anonymity")
ENTROPY = overruled_cases(pick_models("entropy-l-diversity"))
EARTH = overruled_cases(pick_models("ordered", "hierarchical"))
EQUAL = overruled_cases(pick_models("equal"))

MUTANTS = (
    # properties of models, and what tasks conclude from them
    Mutant(f"{TASK}.predictive", PREDICTIVE, "True", check_all, shifting_cases()),
    Mutant(f"{TASK}.predictive", PREDICTIVE, "True", check_chart, shifting_cases()),
    Mutant(f"{TASK}.predictive", "not self.completes and ", "", check_all, judged_cases(), seed=2),
    Mutant(f"{TASK}.predictive", "not self.completes and ", "", check_chart, judged_cases(), seed=2),
    Mutant(f"{TASK}.least_rows", "not self.completes and ", "", check_samarati, judged_cases(), seed=4),
    Mutant(f"{SETS}.create_failing", "self.task.completes and", "False and", check_all, judged_cases(), seed=2),
    Mutant(f"{BASE}.closed_under_union", "False", "True", check_all, shifting_cases()),
    Mutant(f"{CLOSENESS}:TCloseness.monotone_under_suppression", "False", "True", check_all, cascading_cases()),
    Mutant(f"{TASK}.moves", "self.shifts or self.completes", "False", check_all, cascading_cases()),
    Mutant(f"{TASK}.moves", "self.shifts or self.completes", "False", check_optimal, cascading_cases()),
    Mutant(f"{TASK}.fewest_rows", "max(", "1 + max(", check_all, PLAIN),
    Mutant(f"{DIVERSITY}:_LDiversity.least_rows", "(self.l)", "(self.l) + 1", check_optimal, DISTINCT, seed=3),
    # NULLs of sensitive attributes, which add no diversity
    *(
        Mutant(
            f"{DIVERSITY}:{model}.measure", COUNTS_NULL, "counts_null=True", check_all, cases(pick_models(name)), seed=2
        )
        for model, name in DIVERSE.items()
    ),
    *(
        Mutant(
            f"{DIVERSITY}:{model}.measure_prefixes",
            COUNTS_NULL,
            "counts_null=True",
            check_tree,
            thresholds.cases(name),
            seed=9 if model == "RecursiveLDiversity" else 2,
        )
        for model, name in DIVERSE.items()
    ),
    # floors: rows that every more specific generalization must suppress
    Mutant(
        f"{BASE}.min_suppressed",
        "Markup(1 if self.monotone_under_generalization else 0)",
        'macro("models.all_rows")',
        check_floors,
        overruled_cases(pick_models("entropy-l-diversity")),
    ),
    Mutant(
        f"{DIVERSITY}:RecursiveLDiversity.min_suppressed",
        "models.lost_rows",
        "models.all_rows",
        check_floors,
        overruled_cases(pick_models("recursive-l-diversity")),
    ),
    Mutant(
        f"{CLOSENESS}:TCloseness.min_suppressed",
        'macro("models.share_beyond", self.greatest)',
        'macro("models.all_rows")',
        check_floors,
        overruled_cases(pick_models("ordered", "hierarchical")),
    ),
    Mutant(
        f"{CLOSENESS}:EqualTCloseness.min_suppressed",
        'macro("models.lack_beyond", self.greatest)',
        'macro("models.all_rows")',
        check_floors,
        overruled_cases(pick_models("equal")),
    ),
    Mutant(
        f"{CLOSENESS}:KlTCloseness.min_suppressed",
        "PrivacyModel.min_suppressed(self)",
        'Markup("x.n")',
        check_floors,
        overruled_cases(pick_models("kl")),
    ),
    Mutant(f"{SETS}.count_failing", "int(floor)", "int(suppressed)", check_floors, OVERRULED),
    # what searches conclude from verdicts
    Mutant(
        "sqlanon.methods.generalization.lattice.node_status:NodeStatusMap.learn",
        "verdict.floor > self._sets.task.budget",
        "True",
        check_chart,
        OVERRULED,
    ),
    Mutant(
        "sqlanon.methods.generalization.lattice.walk:Walk._check",
        ".verdict.floor > budget",
        ".verdict.suppressed > budget",
        check_all,
        OVERRULED,
    ),
    Mutant(
        "sqlanon.methods.generalization.lattice.simple_searches:_some_is_admissible",
        "count.verdict.floor",
        "count.verdict.suppressed",
        check_samarati,
        gapped_cases(),
    ),
    Mutant(
        "sqlanon.methods.generalization.lattice.incognito:IncognitoSearch._is_known",
        "level == self._heights[place]",
        "level <= self._heights[place]",
        check_all,
        PLAIN,
        seed=2,
    ),
    Mutant(f"{OPTIMAL}._learn_below", "if verdict.floor >", "if verdict.suppressed >", check_optimal, OVERRULED),
    Mutant(
        f"{OPTIMAL}._learn_below",
        "np.maximum(suppressed, verdict.floor",
        "np.maximum(suppressed, 2 * verdict.suppressed",
        check_optimal,
        OVERRULED,
    ),
    Mutant(f"{OPTIMAL}._accept", "self.problem.sets.task.budget == 0", "True", check_bounds, ABOVE),
    Mutant(f"{OPTIMAL}._is_promising", "(bounds <= score + slack) & preferred", "False", check_optimal, PLAIN, seed=12),
    Mutant(f"{OPTIMAL}._is_promising", "bounds < score - slack", "bounds < 0.5 * score", check_optimal, HIGHER, seed=2),
    Mutant(
        "sqlanon.methods.generalization.lattice.optimal:settle",
        "sets.task.moves",
        "False",
        check_optimal,
        cascading_cases(),
    ),
    Mutant(f"{BOXES}._split", "verdict.floor))", "verdict.suppressed))", check_best_first, OVERRULED, seed=12),
    Mutant(f"{BOXES}._learn", "if verdict.floor >", "if verdict.suppressed >", check_best_first, OVERRULED),
    Mutant(f"{BOXES}._is_promising", "bound < score - slack", "bound < 0.5 * score", check_best_first, HIGHER),
    # bounds of scores
    Mutant(
        "sqlanon.methods.generalization.lattice.quality.loss:LossQuality.bounds",
        "self._aggregated(covered)",
        "3 * self._aggregated(covered)",
        check_optimal,
        HIGHER,
    ),
    Mutant(
        f"{QUALITY}:Discernibility.bounds",
        "squares + self._suppression(suppressed)",
        "squares + rows * suppressed",
        check_bounds,
        PLAIN,
    ),
    Mutant(f"{QUALITY}:AverageClassSize.bounds", "self.sets.base.tuples)", "1)", check_bounds, PLAIN),
    Mutant(
        "sqlanon.methods.generalization.lattice.quality.entropy:Entropy.bounds",
        "curve.least(suppressed[there])",
        "curve.cost(suppressed[there])",
        check_bounds,
        PLAIN,
    ),
    Mutant(
        "sqlanon.methods.generalization.lattice.quality.class_quality:Divergence.bounds",
        "own + least_loss - slack",
        "own + self._correlation",
        check_bounds,
        PLAIN,
        seed=2,
    ),
    # splits of partition trees
    Mutant("sqlanon.algorithms.tree.partitioning:build_task", "2 * max(", "3 * max(", check_tree, TREES, seed=4),
    Mutant(f"{GROWTH}:record_allowable", "max(model.least_rows", "2 * max(model.least_rows", check_tree, SMALL),
    Mutant(
        "sqlanon.algorithms.tree.thresholds:_ThresholdSearch.__init__",
        "max(model.least_rows",
        "3 * max(model.least_rows",
        check_tree,
        TREES,
        seed=4,
    ),
    Mutant(f"{GROWTH}:searchable", "return bool(", "return False and bool(", check_tree, TREES),
    Mutant(
        f"{DIVERSITY}:EntropyLDiversity.measure_prefixes",
        "self.least - error",
        "self.least + 0.3",
        check_tree,
        thresholds.cases("entropy-l-diversity"),
        seed=3,
    ),
    Mutant(
        f"{CLOSENESS}:OrderedTCloseness.implies_violation",
        'macro("models.stays_beyond", self.greatest * (1 + RUNNING_TOLERANCE))',
        'Markup("refuting.measure * refuting.n > {} * open_sides.n").format(self.greatest * (1 + RUNNING_TOLERANCE))',
        check_tree,
        thresholds.cases("ordered"),
    ),
)


def settings_of(examples: int) -> settings:
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
    )


def require_drawn_to_pass(
    database: Database, check: Callable[[Database, Any], None], drawn: SearchStrategy[Any], examples: int, first: int
) -> None:
    """Check so many drawn cases; a case that no table can satisfy is none."""

    @seed(first)
    @settings_of(examples)
    @given(drawn)
    def attempt(case: Any) -> None:
        with contextlib.suppress(ProtectionError):
            check(database, case)

    attempt()


def search(database: Database, mutant: Mutant) -> None:
    """Check the tables on which the mutant must have been caught, some from each seed."""
    for seed_of_turn in range(mutant.seed, mutant.seed + MOST // DRAWN):
        require_drawn_to_pass(database, mutant.check, mutant.cases, DRAWN, seed_of_turn)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_broken_condition_is_caught(database: Database, mutant: Mutant) -> None:
    with mutated(mutant.place, mutant.old, mutant.new), pytest.raises((AssertionError, VerificationError)):
        search(database, mutant)


@pytest.mark.parametrize(
    "check", [check_all, check_chart, check_samarati, check_optimal, check_best_first, check_floors]
)
@pytest.mark.parametrize("drawn", [shifting_cases(), cascading_cases()], ids=["shifting", "cascading"])
def test_the_program_as_it_is_passes(
    database: Database, check: Callable[[Database, Any], None], drawn: SearchStrategy[Any]
) -> None:
    require_drawn_to_pass(database, check, drawn, 3, 1)


@pytest.mark.parametrize("check", [check_all, check_chart, check_samarati, check_floors])
def test_starred_rows_that_are_judged_are_completed(database: Database, check: Callable[[Database, Any], None]) -> None:
    require_drawn_to_pass(database, check, judged_cases(), many(5), 1)
