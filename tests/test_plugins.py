"""Parts that installed packages add: the package of examples/plugin, built, installed, used, and gone again."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from sqlanon.algorithms import describe_algorithms
from sqlanon.algorithms.lattice.optimal import optimal
from sqlanon.algorithms.lattice.quality.qualities import QUALITIES, describe_qualities
from sqlanon.algorithms.lattice.quality.quality import Quality
from sqlanon.errors import PolicyError, ProtectionError, VerificationError
from sqlanon.hierarchies import build
from sqlanon.models import describe_models
from sqlanon.policy import WEIGHTED, Optimal, Policy
from sqlanon.policy.loading import build_policy, parse_stored
from sqlanon.policy.schema import policy_schema
from sqlanon.policy.writer import policy_text
from sqlanon.report.queries import run_report
from sqlanon.results.facts import LatticeFacts
from sqlanon.sql import Statement
from sqlanon.support import plugins
from tests.lattice_support import build_problem
from tests.oracle.lattice import Case, Node, cases
from tests.random_cases import for_random, random_cases
from tests.run_support import Database, Row, anonymize

EXAMPLE = Path(__file__).parents[1] / "examples" / "plugin"
COLUMNS = {"age": "INTEGER", "job": "VARCHAR(9)", "s": "VARCHAR(9)"}
ROLES: dict[str, Any] = {
    "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
    "job": {"role": "quasi-identifier", "hierarchy": "suppress"},
    "s": "sensitive",
}
ROWS: list[Row] = [(20 + i * 7 % 30, "abc"[i % 3], [None, *"xy?z"][i * i % 7]) for i in range(60)]
K2 = {"model": "k-anonymity", "k": 2}
DEASSOCIATION = {"model": "deassociation", "attribute": "s", "alpha": 0.5}
TREES_AND_LATTICES = ["mondrian", "optimal", "incognito", "top-down"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory that the example is installed in, as pip installs what was built from its sources."""
    pytest.importorskip("hatchling", reason="the build backend is not installed")
    directory = tmp_path_factory.mktemp("site")
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(directory)]
    command = [sys.executable, "-m", "pip", "install", *options, str(EXAMPLE)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture
def example(installed: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The example as an installed package of this process, which it is no more afterwards."""
    monkeypatch.syspath_prepend(installed)
    plugins.find_plugins.cache_clear()
    yield
    plugins.find_plugins.cache_clear()


def policy_with(*models: dict[str, Any], **more: Any) -> Policy:
    return build_policy(
        {
            "source": {"url": "duckdb:///x.duckdb", "table": "t"},
            "release": {"table": "r"},
            "attributes": {"age": {"role": "quasi-identifier"}, "s": {"role": "sensitive"}},
            "privacy": list(models),
            **more,
        }
    )


def commonest(rows: list[Row]) -> Fraction:
    """The greatest part of a class that has one value, NULLs as the commonest one, over all classes of a release."""
    classes: dict[Row, Counter[str | None]] = defaultdict(Counter)
    for *shown, value in rows:
        classes[tuple(shown)][value] += 1
    return max(Fraction(max([*_known(c), 0]) + c[None], c.total()) for c in classes.values())


def _known(counts: Counter[str | None]) -> list[int]:
    return [count for value, count in counts.items() if value is not None]


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("algorithm", TREES_AND_LATTICES)
@pytest.mark.either_engine
def test_a_model_of_a_package_is_searched_and_verified(database: Database, algorithm: str) -> None:
    table = database.create(COLUMNS, ROWS)
    wanted = {"privacy": [K2, DEASSOCIATION], "algorithm": {"name": algorithm}}
    rows = database.release(table, ROLES, **wanted)
    assert len(rows) == len(ROWS)
    assert commonest(rows) <= Fraction(1, 2)
    plain = database.release(table, ROLES, **wanted | {"privacy": [K2]})
    assert commonest(plain) > Fraction(1, 2)  # so it was the model that made the difference


SORTED_RUNS = {"name": "sorted-runs"}
PLAIN: dict[str, Any] = {"age": "quasi-identifier", "job": "quasi-identifier", "s": "sensitive"}


@pytest.mark.usefixtures("example")
def test_an_algorithm_of_a_package_is_searched_verified_and_reported(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, PLAIN, privacy=[{"model": "k-anonymity", "k": 7}], algorithm=SORTED_RUNS)
    run = anonymize(policy).run
    rows = database.sql(f"SELECT * FROM {table}_r")
    sizes = Counter((age, job) for age, job, _ in rows).values()
    assert (len(rows), min(sizes), len(sizes)) == (60, 7, 8)
    assert "The table was sorted, and rows that were neighbours became a class." in run_report(run, policy=policy)


SORTED_CASES = st.tuples(
    st.lists(
        st.tuples(st.none() | st.integers(0, 30), st.sampled_from([*"ab", None]), st.sampled_from([*"xyz", None])),
        min_size=5,
    ),
    st.integers(1, 5),
    st.integers(1, 3),
)


@pytest.mark.usefixtures("example")
@for_random(SORTED_CASES, {"duckdb": 12, "postgres": 6})
def test_its_classes_satisfy_the_models_and_hold_their_rows(
    database: Database, case: tuple[list[Row], int, int]
) -> None:
    rows, k, l = case  # noqa: E741
    privacy = [{"model": "k-anonymity", "k": k}, {"model": "distinct-l-diversity", "attribute": "s", "l": l}]
    released = database.release_once(COLUMNS, rows, PLAIN, privacy=privacy, algorithm=SORTED_RUNS)
    assert (released is None) == (len({value for *_, value in rows} - {None}) < l)
    if released is not None:
        classes = defaultdict(list)
        for *shown, value in released:
            classes[tuple(shown)].append(value)
        assert min(len(values) for values in classes.values()) >= k
        assert min(len(set(values) - {None}) for values in classes.values()) >= l
        assert Counter(value for *_, value in released) == Counter(value for *_, value in rows)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        ({"growth": 1}, "algorithm.growth must be a whole number of at least 2"),
        ({"size": 4}, "algorithm: unknown key 'size'; choose from 'name', 'growth'|algorithm.size: unknown key 'size'"),
    ],
)
def test_wrong_parameters_of_an_algorithm_are_named(parameters: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        policy_with(K2, algorithm={**SORTED_RUNS, **parameters})


def test_without_the_package_its_algorithm_is_unknown() -> None:
    with pytest.raises(PolicyError, match="'sorted-runs' is unknown; choose from 'mondrian'"):
        policy_with(K2, algorithm=SORTED_RUNS)


WIDEST = {"name": "optimal", "quality": "widest"}


def widest(case: Case, node: Node, weights: list[float]) -> float:
    """The greatest share of its labels that a column lost, by brute force; suppressed rows lost all of them."""
    counts = [
        [len({hierarchy.label(row[place], level) for row in case.rows}) for level in range(hierarchy.height + 1)]
        for place, hierarchy in enumerate(case.hierarchies)
    ]
    kept = max(
        weight * (count[0] - count[level]) / max(count[0] - 1, 1)
        for count, level, weight in zip(counts, node, weights, strict=False)
    )
    return kept + len(case.suppressed_rows(node)) / len(case.rows) * (max(weights) - kept)


def unbounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the example's quality model know nothing of what it did not score."""
    from sqlanon_example.widest import Widest  # type: ignore[import-not-found]

    measure = Widest.bounds
    monkeypatch.setattr(
        Widest,
        "score",
        lambda self, node, suppressed: float(measure(self, np.array([node]), np.array([float(suppressed)]))[0]),
    )
    monkeypatch.setattr(Widest, "bounds", Quality.bounds)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("knows_bounds", [True, False])
@pytest.mark.parametrize("held", [10**9, 1])
@pytest.mark.either_engine
def test_the_best_by_a_quality_model_of_a_package_is_found(
    database: Database, monkeypatch: pytest.MonkeyPatch, knows_bounds: bool, held: int
) -> None:
    monkeypatch.setattr("sqlanon.algorithms.lattice.optimal.LARGEST_HELD", held)
    if not knows_bounds:
        unbounded(monkeypatch)

    several = cases([{"model": "k-anonymity", "k": 2}], budgets=[0, 0.25]).filter(
        lambda case: len(case.satisfying()) > 2
    )

    @random_cases({"duckdb": 10, "postgres": 3}[database.engine], several, st.booleans())
    def check(case: Case, weighted: bool) -> None:
        weights = [2.0 if weighted and not place else 1.0 for place in range(len(case.names))]
        algorithm = {**WIDEST, "weights": {case.names[0]: 2}} if weighted else WIDEST
        table = database.create(case.columns, case.rows)
        try:
            with build_problem(database.policy(table, case.attributes, algorithm=algorithm, **case.policy)) as problem:
                chosen = optimal(problem, Optimal(**algorithm)).chosen
        except ProtectionError:
            chosen = None
        finally:
            database.sql(f"DROP TABLE {table}")
        assert chosen == case.best(lambda node: widest(case, node, weights))

    check()


@pytest.mark.usefixtures("example")
def test_a_quality_model_of_a_package_chooses_the_release(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, privacy=[{"model": "k-anonymity", "k": 3}], algorithm=WIDEST)
    facts = anonymize(policy).algorithm.facts
    assert isinstance(facts, LatticeFacts)
    assert (facts.quality, facts.proven) == ("widest", True)
    assert facts.levels == {"age": 2, "job": 0}


MAGNITUDE = {"role": "quasi-identifier", "hierarchy": {"magnitude": {"base": 10}}}
NUMBERS: dict[str, Any] = {"n": MAGNITUDE, "s": "insensitive"}
NUMBER_COLUMNS = {"n": "BIGINT", "s": "INTEGER"}


def magnitude(number: int | None, level: int) -> str:
    """The label of a number at a level, by its digits."""
    if level == 3 or number is None:
        return "NULL" if number is None and level < 3 else "*"
    if level == 0 or number == 0:
        return str(number)
    if level == 2:
        return "positive" if number > 0 else "negative"
    low = 10 ** (len(str(abs(number))) - 1)
    return f"{low}-{low * 10 - 1}" if number > 0 else f"-{low * 10 - 1}--{low}"


NUMBER_CASES = st.tuples(
    st.lists(st.none() | st.integers(-1200, 1200) | st.integers(-(2**63), 2**63 - 1), min_size=2, max_size=20),
    st.sampled_from([0, 0, 0.3]),
    st.sampled_from(["optimal", "optimal", "mondrian", "top-down"]),
)


@pytest.mark.usefixtures("example")
@for_random(NUMBER_CASES, {"duckdb": 9, "postgres": 4})
def test_labels_of_a_hierarchy_of_a_package_are_those_of_the_values(
    database: Database, case: tuple[list[int | None], float, str]
) -> None:
    numbers, suppression, name = case
    rows: list[Row] = list(zip(numbers, range(len(numbers)), strict=True))
    algorithm: dict[str, Any] = {"name": name}
    share = {"suppression": suppression} if name == "optimal" else {}
    released = database.release_once(NUMBER_COLUMNS, rows, NUMBERS, algorithm=algorithm, **share)
    assert released is not None
    assert len(released) >= len(rows) * (1 - suppression)
    sizes = Counter(label for label, _ in released)
    assert min(sizes.values(), default=2) >= 2
    for label, place in released:
        assert label in {magnitude(numbers[place], level) for level in range(4)}
    if name == "optimal" and not suppression:
        levels = [Counter(magnitude(number, level) for number in numbers) for level in range(4)]
        best = next(level for level, counts in enumerate(levels) if min(counts.values()) >= 2)
        assert sizes == levels[best]


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("label", ["magnitude", "base", "one"])
def test_wrong_hierarchies_of_a_package_are_named(label: str) -> None:
    given, problem = {
        "magnitude": ({"magnitude": 10}, "hierarchy"),
        "base": ({"magnitude": {"base": 1}}, "base must be a whole number of at least 2"),
        "one": ({"magnitude": {}, "intervals": [5]}, "must hold exactly one of .*, magnitude"),
    }[label]
    with pytest.raises(PolicyError, match=problem):
        policy_with(K2, attributes={"age": {"role": "quasi-identifier", "hierarchy": given}, "s": "sensitive"})


def test_without_the_package_its_hierarchy_is_unknown() -> None:
    with pytest.raises(PolicyError, match="unknown key 'magnitude'"):
        policy_with(K2, attributes={"age": MAGNITUDE})


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(("label", "problem"), [("NULL", "magnitude gives 1 values no line"), ("'x'", "do not nest")])
def test_bad_labels_of_a_package_are_refused(
    database: Database, monkeypatch: pytest.MonkeyPatch, label: str, problem: str
) -> None:
    from sqlanon_example.magnitude import Magnitude

    own = Magnitude.labels

    def bad(self: Any, render: Any, column: Any, values: Any) -> Statement:
        text = own(self, render, column, values).text
        cases = "CASE WHEN value IN (5, -7) THEN {} ELSE {} END"
        first = "CASE WHEN value = 5 THEN NULL ELSE l1 END" if label == "NULL" else cases.format(label, "l1")
        return Statement("bad", f"SELECT value, {first} AS l1, l2 FROM ({text}) AS own")

    monkeypatch.setattr(Magnitude, "labels", bad)
    table = database.create(NUMBER_COLUMNS, [(5, 1), (-7, 2), (50, 3)])
    with pytest.raises(PolicyError, match=problem):
        database.release(table, NUMBERS, algorithm={"name": "optimal"})


@pytest.mark.usefixtures("example")
def test_tampered_labels_of_a_package_are_refused(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two labels change places in the dimension table, as soon as it is built."""
    table = database.create(NUMBER_COLUMNS, [(number, number) for number in (11, 12, 13, 140, 150, 160)])
    own = build._build

    def tampered(task: Any) -> Any:
        built = own(task)
        swapped = "CASE l1 WHEN '10-99' THEN '100-999' ELSE '10-99' END"
        task.engine.execute(Statement("tamper", f"UPDATE {built.stored} SET l1 = {swapped}"))
        return built

    monkeypatch.setattr(build, "_build", tampered)
    with pytest.raises(VerificationError):
        database.release(table, NUMBERS, algorithm={"name": "optimal"})
    assert not database.leftovers()


@pytest.mark.usefixtures("example")
def test_a_hierarchy_of_a_package_survives_its_text_and_is_reported(database: Database) -> None:
    table = database.create(NUMBER_COLUMNS, [(number, number) for number in (11, 12, -13, -14)])
    policy = database.policy(table, NUMBERS, algorithm={"name": "optimal"})
    assert parse_stored(policy_text(policy)).attributes == policy.attributes
    assert "groups of magnitude" in run_report(anonymize(policy).run, policy=policy)


def test_own_quality_models_say_whether_they_use_weights() -> None:
    assert {name for name, kind in QUALITIES.items() if kind.uses_weights} == set(WEIGHTED)


@pytest.mark.parametrize("quality", ["widest", "los", 3])
def test_without_the_package_its_quality_model_is_unknown(quality: Any) -> None:
    with pytest.raises(PolicyError, match=r"algorithm.quality(: '.*' is unknown; | must be one of ).*'loss'"):
        policy_with(K2, algorithm={**WIDEST, "quality": quality})


CASES = st.tuples(
    st.lists(st.tuples(st.integers(0, 30), st.sampled_from("ab"), st.sampled_from([*"xyz", None])), min_size=2),
    st.sampled_from([0.3, 0.5, 0.75, 1.0]),
)


@pytest.mark.usefixtures("example")
@for_random(CASES, {"duckdb": 12, "postgres": 6})
def test_no_value_is_too_common_in_any_class(database: Database, case: tuple[list[Row], float]) -> None:
    rows, alpha = case
    most = Fraction(str(alpha))
    released = database.release_once(COLUMNS, rows, ROLES, privacy=[{**DEASSOCIATION, "alpha": alpha}])
    assert (released is None) == (commonest([("", "", row[2]) for row in rows]) > most)
    assert released is None or commonest(released) <= most


@pytest.mark.usefixtures("example")
def test_no_release_can_meet_it(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(ProtectionError, match=r"deassociation .* Attainable: alpha: 0.4"):
        database.release(table, ROLES, privacy=[{**DEASSOCIATION, "alpha": 0.2}])


@pytest.mark.usefixtures("example")
def test_the_report_has_the_sentence_of_the_model(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, ROLES, privacy=[K2, DEASSOCIATION])
    run = anonymize(policy).run
    assert "In every class at most 50% of the rows share a value of “s”. NULL adds no diversity." in run_report(
        run, policy=policy
    )


def test_a_stored_policy_whose_package_is_gone_says_so(installed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.syspath_prepend(installed)
        plugins.find_plugins.cache_clear()
        text = policy_text(policy_with(K2, algorithm=SORTED_RUNS))
    plugins.find_plugins.cache_clear()
    with pytest.raises(PolicyError, match="'sorted-runs' is unknown") as raised:
        parse_stored(text)
    assert raised.value.__notes__ == [
        "The policy is a stored one: is a package that added to it not installed any more?"
    ]


def test_the_report_of_a_run_whose_package_is_gone(
    database: Database, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = database.create(COLUMNS, ROWS)
    with monkeypatch.context() as patch:
        patch.syspath_prepend(installed)
        plugins.find_plugins.cache_clear()
        policy = database.policy(table, ROLES, privacy=[K2, DEASSOCIATION])
        run = anonymize(policy).run
    plugins.find_plugins.cache_clear()
    assert "The model deassociation, which no installed package explains." in run_report(run, url=database.url)


@pytest.mark.usefixtures("example")
def test_it_is_listed_with_its_package() -> None:
    added = [
        one for one in (*describe_models(), *describe_algorithms(), *describe_qualities()) if one.package != "sqlanon"
    ]
    assert [(one.name, one.parameters, one.package) for one in added] == [
        ("deassociation", ["attribute", "alpha"], "sqlanon-example 0.1"),
        ("sorted-runs", ["growth"], "sqlanon-example 0.1"),
        ("widest", [], "sqlanon-example 0.1"),
    ]


def test_without_the_package_its_model_is_unknown() -> None:
    with pytest.raises(PolicyError, match="'deassociation' is unknown; choose from 'k-anonymity'"):
        policy_with(DEASSOCIATION)


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ({"alpha": 0}, r"privacy\[0\].alpha must be a number greater than 0"),
        ({"alpha": "much"}, r"privacy\[0\].alpha must be a number greater than 0"),
        ({"beta": 1}, r"privacy\[0\].beta: unknown key 'beta'; choose from 'model', 'attribute', 'alpha'"),
        ({"attribute": "age"}, r"privacy\[0\].attribute: 'age' has role quasi-identifier"),
    ],
)
def test_wrong_parameters_are_named(model: dict[str, Any], problem: str) -> None:
    with pytest.raises(PolicyError, match=problem):
        policy_with({**DEASSOCIATION, **model})


@pytest.mark.usefixtures("example")
def test_a_missing_parameter_is_named() -> None:
    with pytest.raises(PolicyError, match=r"privacy\[0\]: alpha is missing; deassociation needs it"):
        policy_with({"model": "deassociation", "attribute": "s"})


@pytest.mark.usefixtures("example")
def test_a_policy_with_it_survives_its_text() -> None:
    policy = policy_with(K2, DEASSOCIATION, algorithm={**SORTED_RUNS, "growth": 3})
    stored = parse_stored(policy_text(policy))
    assert (stored.privacy, stored.algorithm) == (policy.privacy, policy.algorithm)


@pytest.mark.usefixtures("example")
def test_samples_refuse_a_model_without_a_test(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    with pytest.raises(PolicyError, match="no test on samples; use rothko-t"):
        database.release(table, ROLES, privacy=[DEASSOCIATION], algorithm={"name": "rothko-s"})


@pytest.mark.usefixtures("example")
def test_the_schema_knows_it() -> None:
    schema = policy_schema()
    assert schema["properties"]["privacy"]["items"]["discriminator"]["mapping"]["deassociation"]
    assert schema["properties"]["algorithm"]["discriminator"]["mapping"]["sorted-runs"]
    assert schema["$defs"]["Hierarchy"]["properties"]["magnitude"]["properties"]["base"]["minimum"] == 2
    assert "widest" in schema["$defs"]["Optimal"]["properties"]["quality"]["enum"]


def test_a_package_that_does_not_load_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken.py").write_text("import no_such_module\n")
    _declare(tmp_path, "broken", "deassociation = broken:Model")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.find_plugins.cache_clear()
    with pytest.raises(PolicyError, match=r"'deassociation' of the package broken 1.0 can't be loaded: ModuleNotFound"):
        policy_with(DEASSOCIATION)
    plugins.find_plugins.cache_clear()


def test_two_packages_with_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for package in ("first", "second"):
        _declare(tmp_path, package, f"deassociation = {package}:Model")
    monkeypatch.syspath_prepend(tmp_path)
    plugins.find_plugins.cache_clear()
    with pytest.raises(PolicyError, match=r"Two installed packages add 'deassociation' .*first 1.0 and second 1.0"):
        policy_with(DEASSOCIATION)
    plugins.find_plugins.cache_clear()


def test_the_programs_own_models_need_no_look_at_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", None)  # calling it would fail
    plugins.find_plugins.cache_clear()
    assert policy_with(K2).privacy[0].model == "k-anonymity"


def _declare(directory: Path, package: str, entry: str) -> None:
    """Write the metadata of an installed package with one privacy model."""
    metadata = directory / f"{package}-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(f"[sqlanon.guarantees]\n{entry}\n")
