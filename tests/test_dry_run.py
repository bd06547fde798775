"""Statements that a dry run renders: the dialect's grammar knows every one."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
import sqlglot
from sqlglot import exp

from sqlanon.errors import PolicyError
from sqlanon.methods.generalization.policy import Quality
from sqlanon.policy.loading import build_policy
from sqlanon.runs.dry_run import DryRun, run_dry
from sqlanon.runs.dry_run.given_columns import columns_of_query
from tests.drawn_policies import drawn_policy, write_costs
from tests.random_cases import many, seed
from tests.run_support import OPTIONS, Database, anonymize, open_database

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import frozen_releases

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]

COLUMNS = {
    "age": "INTEGER",
    "big": "BIGINT",
    "income": "DECIMAL(10,2)",
    "weight": "DOUBLE PRECISION",
    "small": "REAL",
    "born": "DATE",
    "seen": "TIMESTAMP",
    "zoned": "TIMESTAMPTZ",
    "woken": "TIME",
    "zip": "VARCHAR(5)",
    'odd "name" {{ % :x': "VARCHAR(9)",
    "member": "BOOLEAN",
    "key": "UUID",
    "disease": "VARCHAR(20)",
    "cost": "INTEGER",
    "note": "JSON",
    "ssn": "VARCHAR(11)",
}
PLAIN: dict[str, Any] = {
    **dict.fromkeys(COLUMNS, "quasi-identifier"),
    "disease": "sensitive",
    "cost": "sensitive",
    "note": "insensitive",
    "ssn": "identifier",
}
MAPPING = {"a": ["x", "1"], "b": ["y", "1"]}
HIERARCHIES: dict[str, Any] = {
    "age": {"intervals": [5, 10]},
    "income": {"intervals": [0.5, 100]},
    "weight": {"intervals": [2.5]},
    "born": {"date": ["day", "week"]},
    "seen": {"date": ["month", "quarter", "year", "decade"]},
    "zoned": {"date": ["year"]},
    "zip": {"mask": "left"},
    'odd "name" {{ % :x': {"mapping": MAPPING, "unknown": "*"},
    "member": "suppress",
}
SHOWS = {"age": "bounds", "big": "midpoint", "income": "mean", "weight": "midpoint", "born": "bounds", "small": "mean"}
UNPARSED = ("staging/drop_texts", "engines/prepare_holding", "engines/end_holding")  # which the parser does not know
PERIPHERAL = ("catalog/", "engines/", "work/publish/")
K = {"model": "k-anonymity", "k": 2}
DIVERSITY = [
    {"model": "distinct-l-diversity", "attribute": "disease", "l": 2},
    {"model": "entropy-l-diversity", "attribute": "disease", "l": 1.5},
    {"model": "recursive-l-diversity", "attribute": "disease", "c": 2, "l": 2},
    {"model": "variance-diversity", "attribute": "cost", "v": 1.0},
]
CLOSENESS = [
    {"model": "t-closeness", "attribute": "disease", "distance": "equal", "t": 0.5},
    {"model": "t-closeness", "attribute": "disease", "distance": "kl", "t": 0.5},
    {"model": "t-closeness", "attribute": "disease", "distance": "hierarchical", "t": 0.5},
    {"model": "t-closeness", "attribute": "cost", "distance": "ordered", "t": 0.5},
]


def _quasi(**more: dict[str, Any]) -> dict[str, Any]:
    """The attributes, with these keys of quasi-identifiers beside their role."""
    changed = {name: {"role": "quasi-identifier"} for values in more.values() for name in values}
    for key, values in more.items():
        for name, value in values.items():
            changed[name][key] = value
    return {**PLAIN, **changed}


QUANTILES = {"bottom": {"big": {"quantile": 0.005}}, "hierarchy": {"income": HIERARCHIES["income"]}}
LIMITS = {"age": 90, "big": {"quantile": 0.995}, "income": {"quantile": 0.9}, "weight": 120.5, "small": 7}
POLICIES: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "plain": (PLAIN, [K]),
    "hierarchies": (_quasi(hierarchy=HIERARCHIES), [K, *DIVERSITY]),
    "shows": (_quasi(show=SHOWS), [K]),
    "limits": (
        _quasi(top=LIMITS, **QUANTILES),
        [K],
    ),
    "closeness": ({**PLAIN, "disease": {"role": "sensitive", "hierarchy": "suppress"}}, [K, *CLOSENESS]),
}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    with open_database(database_url) as opened:
        opened.create(COLUMNS, [], name="people")
        nulls = ", ".join(["NULL"] * len(COLUMNS))
        opened.sql(f"INSERT INTO people VALUES ({nulls}), ({nulls}), ({nulls})")
        opened.sql("UPDATE people SET age = 7, big = 9000000000")
        yield opened


def _wrong(dry: DryRun, dialect: str) -> list[str]:
    """The phases that have no statement, and the statements that are not understood."""
    found = sorted({"encode", "search", "recode", "verify"} - {step.phase for step in dry.steps})
    for step in dry.steps:
        statement = step.statement
        if step.name == "staging/create_texts":  # the parser does not know types made from a query, nor their end
            statement = statement[statement.index("(SELECT") :]
        if step.name in UNPARSED or all(line.startswith("--") for line in statement.splitlines()):
            continue
        if not _is_understood(statement, dialect):
            found.append(f"{step.name}:\n{step.statement}")
    return found


@functools.cache  # dry runs have most statements in common, and parsing is what takes the time
def _is_understood(statement: str, dialect: str) -> bool:
    """Tell whether the grammar knows the text as one statement, or as several that drop tables; and its columns."""
    parsed = sqlglot.parse(statement, read=dialect)
    known = all(isinstance(one, exp.Expression) and not isinstance(one, exp.Command) for one in parsed)
    if len(parsed) != 1:
        return known and all(isinstance(one, exp.Drop) for one in parsed)
    return known and _has_columns(parsed[0], columns_of_query(statement))


def _has_columns(query: exp.Expression | None, names: list[str]) -> bool:
    """Tell whether these are the columns of a query, as far as these have names; `*` may stand for any."""
    if not isinstance(query, exp.Select | exp.SetOperation) or query.is_star:
        return True
    named = [one.alias_or_name if isinstance(one, exp.Alias | exp.Column) else None for one in query.selects]
    return len(names) == len(named) and all(wanted in (None, name) for wanted, name in zip(named, names, strict=True))


@pytest.mark.parametrize(
    "models",
    [
        [{"model": "k-map", "k": 2}, K],
        [{"model": "delta-presence", "maximum": 0.9, "minimum": 0.1}],
    ],
)
def test_the_check_against_a_population_and_short_masks_parse(database: Database, models: list[Any]) -> None:
    database.sql("CREATE TABLE everybody AS SELECT * FROM people")
    looks = [one if one is K else {**one, "population": "everybody"} for one in models]
    kept = dict.fromkeys(COLUMNS, "insensitive")
    shown = {"age": {"intervals": [5, 10]}, "zip": {"mask": "left", "length": 2}}
    quasi = {name: {"role": "quasi-identifier", "hierarchy": one} for name, one in shown.items()}
    more = {"privacy": looks, "algorithm": {"name": "optimal"}}
    assert _wrong(run_dry(database.policy("people", kept | quasi, **more), OPTIONS), database.engine) == []
    assert database.leftovers() == []


@pytest.mark.parametrize("name", POLICIES)
def test_every_statement_parses(database: Database, name: str) -> None:
    attributes, models = POLICIES[name]
    policy = database.policy("people", attributes, privacy=models)
    assert _wrong(run_dry(policy, OPTIONS), database.engine) == []
    assert database.leftovers() == []


def test_ranges_of_postgres_parse(postgres_url: str) -> None:
    with open_database(postgres_url) as database:
        database.create({"q": "INTEGER", "d": "DATE"}, [(1, "2024-01-01"), (2, None)], name="people")
        attribute = {"role": "quasi-identifier", "show": "range"}
        assert _wrong(run_dry(database.policy("people", dict.fromkeys("qd", attribute)), OPTIONS), "postgres") == []


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_files_parse(tmp_path: Path, ending: str) -> None:
    (tmp_path / "people.csv").write_text("age,zip\n1,a\n2,b\n")
    policy = build_policy(
        {
            "source": {"file": str(tmp_path / "people.csv")},
            "release": {"file": str(tmp_path / f"released.{ending}")},
            "attributes": {"age": {"role": "quasi-identifier"}, "zip": {"role": "insensitive"}},
            "privacy": [K],
        }
    )
    dry = run_dry(policy, OPTIONS)
    assert _wrong(dry, "duckdb") == []
    names = [step.name for step in dry.steps]
    assert names.index("staging/view_sorted_rows") < names.index(f"work/publish/write_{ending}")
    assert "staging/stage_sorted_rows" not in names  # a run makes no table for a file
    assert not (tmp_path / f"released.{ending}").exists()


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_a_file_of_a_release_of_postgres_parses(postgres_url: str, tmp_path: Path, ending: str) -> None:
    """It is written by another engine, whose tables have the columns that are carried over, each with its type."""
    with open_database(postgres_url) as opened:
        opened.create(frozen_releases.COLUMNS, frozen_releases.patients(100), name="patients")
        release = {"release": {"file": str(tmp_path / f"released.{ending}")}}
        steps = run_dry(opened.policy("patients", **frozen_releases.cases()["mondrian"], **release), OPTIONS).steps
    names = [step.name for step in steps]
    assert (
        names.index("work/publish/create_table")
        < names.index(f"work/publish/write_{ending}")
        < names.index("files/publish")
    )
    assert list(tmp_path.iterdir()) == []


def test_a_dry_run_has_the_statements_of_a_run(database: Database) -> None:
    table = database.create(
        {"q": "INTEGER", "p": "VARCHAR(3)", "s": "VARCHAR(3)"}, [(n, str(n), "ab"[n % 2]) for n in range(9)]
    )
    roles = {"q": "quasi-identifier", "p": {"role": "quasi-identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    policy = database.policy(table, roles, privacy=[K, {**DIVERSITY[0], "attribute": "s"}])
    shown = {(step.phase, step.name) for step in run_dry(policy, OPTIONS).steps}
    outcome = anonymize(policy)
    steps = "SELECT DISTINCT phase, name FROM sqlanon.steps WHERE run = ? AND phase NOT IN ('plan', 'publish')"
    done = {(phase, name) for phase, name in database.sql(steps, [outcome.run]) if not name.startswith(PERIPHERAL)}
    assert done <= shown


SENT = "SELECT name FROM sqlanon.steps WHERE run = ? AND phase = 'publish' ORDER BY number"
ASKED = ("work/publish/describe_", "work/publish/list_", "catalog/", "engines/", "count_rows")


@pytest.mark.parametrize("kept", ["nothing", "a release", "a release with a view"])
def test_a_dry_run_publishes_as_a_run_does(database: Database, kept: str) -> None:
    """The same statements in the same order, whatever stands in the release's place."""
    table = database.create({"q": "INTEGER", "s": "VARCHAR(3)"}, [(n, "ab"[n % 2]) for n in range(9)])
    policy = database.policy(table, {"q": "quasi-identifier", "s": "sensitive"})
    if kept != "nothing":
        anonymize(policy)
        database.sql(f"COMMENT ON TABLE {table}_r IS 'ours'")
    if kept.endswith("view"):
        database.sql(
            f"CREATE INDEX one ON {table}_r (s)" if database.engine == "duckdb" else f"CREATE VIEW v AS TABLE {table}_r"
        )
    steps = [step for step in run_dry(policy, OPTIONS, replace=True).steps if step.phase == "publish"]
    outcome = anonymize(policy, replace=True)
    sent = [name for (name,) in database.sql(SENT, [outcome.run]) if not name.startswith(ASKED)]
    assert [step.name for step in steps if not step.name.startswith(ASKED)] == sent
    names = [step.name for step in steps]
    assert names.index("engines/begin") < names.index("engines/commit")
    if kept == "a release":
        assert (
            names.index("work/publish/drop_table")
            < names.index("work/publish/rename_table")
            < names.index("engines/commit")
        )
        assert "work/publish/comment_table" in names


@pytest.mark.parametrize("hierarchy", [False, True])
def test_sampling_is_shown_with_all_models(database: Database, hierarchy: bool) -> None:
    attributes = _quasi(hierarchy=HIERARCHIES) if hierarchy else {**PLAIN}
    attributes["disease"] = {"role": "sensitive", "hierarchy": "suppress"}
    algorithm = {"name": "rothko-s", "sample": 2}
    policy = database.policy("people", attributes, privacy=[K, *DIVERSITY, *CLOSENESS], algorithm=algorithm)
    assert _wrong(run_dry(policy, OPTIONS), database.engine) == []
    assert database.leftovers() == []


def test_a_dry_sampling_has_the_statements_of_a_run(database: Database) -> None:
    rows = [(n, n * n % 101, "abc"[n % 3]) for n in range(400)]
    table = database.create({"q": "INTEGER", "p": "INTEGER", "s": "VARCHAR(3)"}, rows)
    roles = {"q": "quasi-identifier", "p": "quasi-identifier", "s": "sensitive"}
    models = [{**K, "k": 20}, {**DIVERSITY[0], "attribute": "s"}]
    algorithm = {"name": "rothko-s", "sample": 12, "alpha": 0.45, "seed": 4, "exact_below": 0}
    policy = database.policy(table, roles, privacy=models, algorithm=algorithm)
    shown = {(step.phase, step.name) for step in run_dry(policy, OPTIONS).steps}
    found = anonymize(policy).as_json()
    assert found["algorithm"]["samplings"] > 1
    assert found["algorithm"]["pruned"] > 0
    steps = "SELECT DISTINCT phase, name FROM sqlanon.steps WHERE run = ? AND phase NOT IN ('plan', 'publish')"
    done = {(phase, name) for phase, name in database.sql(steps, [found["run"]]) if not name.startswith(PERIPHERAL)}
    assert done <= shown


def test_a_form_that_depends_on_the_data_says_so(database: Database) -> None:
    table = database.create({"q": "INTEGER"}, [(n,) for n in range(9)])
    policy = database.policy(table, {"q": STAR}, algorithm={"name": "optimal"})
    (base,) = (
        step for step in run_dry(policy, OPTIONS).steps if step.name == "methods/generalization/lattice/create_base"
    )
    assert base.statement.startswith("-- One of two forms")


STAR = {"role": "quasi-identifier", "hierarchy": "suppress"}
FULL_DOMAIN: list[dict[str, Any]] = [
    *({"name": "incognito", "variant": variant} for variant in ("basic", "super-roots", "cube")),
    {"name": "samarati"},
    {"name": "bottom-up"},
    {"name": "datafly"},
    *({"name": "optimal", "quality": quality} for quality in get_args(Quality)),
    {"name": "optimal", "recoding": "attribute-suppression"},
    {"name": "top-down"},
    {"name": "top-down", "quality": "information-gain", "target": "disease"},
]


@pytest.mark.parametrize("algorithm", FULL_DOMAIN, ids=lambda a: "-".join(a.values()))
def test_full_domain_searches_parse(database: Database, algorithm: dict[str, Any]) -> None:
    kept, disease = dict.fromkeys(COLUMNS, "insensitive"), {"role": "sensitive", "hierarchy": "suppress"}
    attributes = {**kept, **dict.fromkeys(list(COLUMNS)[8:12], STAR), "cost": "sensitive", "disease": disease}
    forms = [
        ([K], 0.4, "omit"),
        ([K, *DIVERSITY, *CLOSENESS], 0.4, "star"),
        ([K], 0, "omit"),
        ([K, *CLOSENESS], 0, "omit"),
    ]
    first = FULL_DOMAIN.index(algorithm)
    for models, suppression, suppressed in (forms[first % 4 :] + forms[: first % 4])[: many(1)]:
        more = {"privacy": models, "algorithm": algorithm, "suppression": suppression, "suppressed": suppressed}
        assert _wrong(run_dry(database.policy("people", attributes, **more), OPTIONS), database.engine) == []
    assert database.leftovers() == []


CLUSTERS: list[dict[str, Any]] = [
    {"name": "microaggregation", "keep": "variance"},
    {"name": "microaggregation", "method": "k-member"},
    {"name": "condensation", "groups": "nearest", "target": "kept"},
    {"name": "r-gather"},
]


@pytest.mark.parametrize("algorithm", CLUSTERS, ids=lambda a: "-".join(a.values()))
def test_searches_for_clusters_parse(database: Database, algorithm: dict[str, Any]) -> None:
    table = database.create(
        {"a": "INTEGER", "b": "VARCHAR", "kept": "VARCHAR"}, [(n, "xyz"[n % 3], "k") for n in range(9)]
    )
    ordered = {"role": "quasi-identifier", "order": ["x", "y", "z"]}
    grouped = {"role": "quasi-identifier", "hierarchy": "suppress"}
    by_name = {"r-gather": "insensitive", "microaggregation": grouped if "method" in algorithm else ordered}
    attributes = {"a": "quasi-identifier", "b": by_name.get(algorithm["name"], "quasi-identifier"), "kept": "sensitive"}
    assert _wrong(run_dry(database.policy(table, attributes, algorithm=algorithm), OPTIONS), database.engine) == []


@pytest.mark.parametrize("search", ["greedy", "exact"])
def test_the_searches_for_intervals_parse(database: Database, search: str) -> None:
    algorithm = {"name": "ordered-sets", "search": search}
    diverse = {"model": "distinct-l-diversity", "attribute": "disease", "l": 2}
    policy = database.policy("people", PLAIN, privacy=[K, diverse], algorithm=algorithm)
    script = run_dry(policy, OPTIONS)
    assert _wrong(script, database.engine) == []
    assert any(one.name == "methods/intervals/move_rows" for one in script.steps)


def test_the_search_for_cells_parses(database: Database) -> None:
    attributes = {**PLAIN, **dict.fromkeys(list(COLUMNS)[:1], "insensitive")}
    algorithm = {"name": "local-suppression", "subsets": {1: 2}}
    diverse = {"model": "distinct-l-diversity", "attribute": "disease", "l": 2}
    policy = database.policy("people", attributes, privacy=[K, diverse], algorithm=algorithm)
    assert _wrong(run_dry(policy, OPTIONS), database.engine) == []
    attributes |= {"big": "insensitive", "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}}}
    policy = database.policy("people", attributes, privacy=[K], algorithm={"name": "cell-generalization"})
    script = run_dry(policy, OPTIONS)
    assert _wrong(script, database.engine) == []
    assert any(one.name == "methods/cells/measure_levels" for one in script.steps)


def test_the_recoding_of_a_remainder_parses(database: Database) -> None:
    attributes = {**PLAIN, **{name: STAR for name, role in PLAIN.items() if role == "quasi-identifier"}}
    attributes["disease"] = {"role": "sensitive", "hierarchy": "suppress"}
    for models, suppressed in (([K], "omit"), ([K, *CLOSENESS], "star"), ([K, *CLOSENESS], "omit")):
        more = {"privacy": models, "suppression": 0.4, "suppressed": suppressed, "remainder": "recode"}
        policy = database.policy("people", attributes, algorithm={"name": "optimal"}, **more)
        found = run_dry(policy, OPTIONS)
        assert _wrong(found, database.engine) == []
        assert "methods/generalization/lattice/create_suppressed" in [step.name for step in found.steps]


def test_a_dry_search_shows_few_of_many_checks(database: Database) -> None:
    attributes = {**PLAIN, **{name: STAR for name, role in PLAIN.items() if role == "quasi-identifier"}}
    policy = database.policy("people", attributes, algorithm={"name": "bottom-up"})
    names = [step.name for step in run_dry(policy, OPTIONS).steps if step.phase == "search"]
    assert max(names.count(name) for name in names) == 2


@pytest.fixture
def patients(database_url: str) -> Iterator[Database]:
    with open_database(database_url) as opened:
        opened.create(frozen_releases.COLUMNS, frozen_releases.patients(800), name="patients")
        opened.sql("CREATE TABLE everybody AS SELECT * FROM patients")
        yield opened


def test_every_frozen_policy_has_a_dry_run(patients: Database) -> None:
    """A policy that a run carries out is shown whole, and what a search would have found is made up without a fault."""
    for name, case in frozen_releases.cases().items():
        assert _wrong(run_dry(patients.policy("patients", **case), OPTIONS), patients.engine) == [], name
    assert patients.leftovers() == []


def test_every_drawn_policy_has_a_dry_run_or_a_refusal(patients: Database, tmp_path: Path) -> None:
    write_costs(tmp_path)
    shown = 0
    for number in range(seed(), seed() + many(24)):
        case = drawn_policy(number, "everybody", tmp_path)
        try:
            dry = run_dry(patients.policy("patients", **case), OPTIONS)
        except PolicyError:
            continue
        assert _wrong(dry, patients.engine) == [], f"seed {number}: {case}"
        shown += 1
    assert shown >= many(24) // 3
    assert patients.leftovers() == []
