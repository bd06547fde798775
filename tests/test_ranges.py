"""Ranges as they were observed, or from cut to cut: labels of the first release and of later ones by its rules."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from jinja2 import Environment

from sqlanon import diff_runs
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import ProtectionError
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.store_rules import read_rules
from sqlanon.runs.applying import apply_rules
from sqlanon.runs.stored import Application
from tests.cli.support import call, only_object
from tests.jobs_support import carry_out, frozen
from tests.methods.partitioning.mondrian_oracle import FLAVOURS, Attribute
from tests.random_cases import many
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, Row, anonymize

pytestmark = pytest.mark.slow

FEW = settings(
    max_examples=many(1),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
SHOWS = ("label", "bounds", "mean", "midpoint", "range")
KNOWN = ((FLAVOURS[1], FLAVOURS[3]), ["range", "label"], [(n % 12, "ab"[n % 2], n) for n in range(24)])
TEMPLATES = Environment(autoescape=False)


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[Attribute, ...], list[str], list[Row]]:
    """Attributes, how each is shown, and rows `(q0, …, id)`."""
    flavours = draw(st.lists(st.sampled_from(FLAVOURS), min_size=1, max_size=3))
    shows = [
        draw(st.sampled_from(SHOWS if a.type == "INTEGER" and a.hierarchy is None else SHOWS[:1])) for a in flavours
    ]
    pools = [draw(st.lists(st.sampled_from(a.pool), min_size=1, max_size=9)) for a in flavours]
    cells = st.tuples(*(st.sampled_from(pool) for pool in pools))
    rows = draw(st.lists(cells, min_size=3, max_size=30))
    return tuple(flavours), shows, [(*row, place) for place, row in enumerate(rows)]


@FEW
@given(case=cases(), algorithm=st.sampled_from(["mondrian", "rothko-s"]))
@example(case=KNOWN, algorithm="mondrian")
@example(case=KNOWN, algorithm="rothko-s")
def test_with_cuts_every_later_release_shows_what_the_first_did(
    databases: tuple[Database, Database], case: tuple[tuple[Attribute, ...], list[str], list[Row]], algorithm: str
) -> None:
    attributes, shows, rows = case
    columns = {f"q{n}": a.type for n, a in enumerate(attributes)} | {"id": "INTEGER"}
    search = {"name": "rothko-s", "sample": 12, "exact_below": 0} if algorithm == "rothko-s" else {"name": algorithm}
    found = []
    for database in databases:
        # range types are PostgreSQL's
        own = [show if database.engine == "postgres" or show != "range" else "bounds" for show in shows]
        roles = {f"q{n}": _role(a, show) for n, (a, show) in enumerate(zip(attributes, own, strict=True))}
        table = database.create(columns, rows)
        run = anonymize(database.policy(table, roles | {"id": "insensitive"}, ranges="cuts", algorithm=search))
        first = database.sql(f"SELECT * FROM {table}_r")
        apply(database, run.run, table, f"{table}_again", "error")
        assert database.sql(f"SELECT * FROM {table}_again") == first
        assert sorted(database.sql(_select(database, run.run)), key=repr) == sorted(first, key=repr)
        assert _built(database, run.run, table) == sorted(first, key=repr)
        assert run.metrics.gcp is not None
        assert 0 <= run.metrics.gcp <= 1
        found.append(first)
    assert "range" in shows or found[0] == found[1], "the engines differ"


def _role(attribute: Attribute, show: str) -> dict[str, Any]:
    said = attribute.policy
    return {**({"role": said} if isinstance(said, str) else said), "show": show}


def _built(database: Database, run: str, table: str) -> list[Row]:
    """The rows of the models of a dbt project, in an order of their own, without dbt."""
    with tempfile.TemporaryDirectory() as project:
        made = call("export", run, "--as", "dbt", "--name", "m", "-o", project, "--url", database.url)
        assert made.exit_code == 0, made.output
        texts = {name: (Path(project) / "models" / f"{name}.sql").read_text() for name in ("m_staged", "m")}
    names = {"config": lambda **_: "", "source": lambda *_: table, "ref": lambda _: f"{table}_staged"}
    staged, published = (TEMPLATES.from_string(texts[name]).render(names) for name in ("m_staged", "m"))
    database.sql(f"CREATE TABLE {table}_staged AS {staged}")
    return sorted(database.sql(published), key=repr)


def _select(database: Database, run: str) -> str:
    """The rules as one SELECT."""
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        return rules_select(catalog.store, read_rules(catalog, run), catalog.run(run))


AGES = [(18 + (7 * n) % 47, random.Random(n).choice("abc"), n) for n in range(60)]
COLUMNS = {"age": "INTEGER", "income": "INTEGER", "id": "INTEGER"}
ROLES = {
    "age": "quasi-identifier",
    "income": {"role": "quasi-identifier", "show": "bounds"},
    "id": "insensitive",
}


def _released(database: Database, ranges: str, **more: Any) -> tuple[str, str]:
    """A run of these rows, and its table."""
    rows = [(age, 1000 * (n % 7) if n % 5 else None, n) for age, _, n in AGES]
    table = database.create(COLUMNS, rows)
    roles = {**ROLES, "income": {**ROLES["income"], "nulls": "allow"}}
    return anonymize(database.policy(table, roles, ranges=ranges, **more)).run, table


@pytest.mark.either_engine
def test_a_job_shows_the_labels_of_a_run_with_cuts(database: Database) -> None:
    run, table = _released(database, "cuts")
    first = database.sql(f"SELECT * FROM {table}_r")
    frozen(database, run)
    carry_out(database)
    assert sorted(database.sql(f"SELECT * FROM {table}_r"), key=repr) == sorted(first, key=repr)
    labels = {row[0] for row in first}
    assert any(label.startswith("[*-") for label in labels)
    assert any(label.endswith("-*]") for label in labels)


@pytest.mark.either_engine
def test_observed_ranges_are_narrower_and_every_later_release_warns(database: Database) -> None:
    run, table = _released(database, "observed")
    first = database.sql(f"SELECT * FROM {table}_r")
    assert all("*" not in row[0] for row in first)
    outcome = apply(database, run, table, f"{table}_again", "error")
    assert [w for w in outcome.warnings if "from cut to cut" in w and "`ranges: cuts`" in w]
    policy = database.policy(table, ROLES)
    found = diff_runs(run, outcome.run, policy=policy)
    assert (found.labels.before, found.labels.after) == ("observed", "cuts")
    assert [w for w in found.warnings if "labels" in w]
    wide, other = _released(database, "cuts")
    outcome = apply(database, wide, other, f"{other}_again", "error")
    assert not [w for w in outcome.warnings if "from cut to cut" in w]
    found = diff_runs(wide, outcome.run, policy=policy)
    assert (found.labels.before, found.labels.after) == ("cuts", "cuts")
    assert not [w for w in found.warnings if "labels" in w]


@pytest.mark.either_engine
def test_levels_have_neither(database: Database) -> None:
    table = database.create({"z": "TEXT"}, [("11",), ("12",), ("21",), ("22",)])
    roles = {"z": {"role": "quasi-identifier", "hierarchy": {"mask": "right"}}}
    run = anonymize(database.policy(table, roles, algorithm={"name": "optimal"})).run
    outcome = apply(database, run, table, f"{table}_again", "error")
    assert not [w for w in outcome.warnings if "from cut to cut" in w]
    found = diff_runs(run, outcome.run, policy=database.policy(table, roles))
    assert found.labels.before == found.labels.after == "levels"


# --- what the policy says holds for later releases


@pytest.mark.either_engine
@pytest.mark.parametrize("procedure", [True, False])
def test_a_job_suppresses_what_its_run_suppressed_unless_told_otherwise(database: Database, procedure: bool) -> None:
    table = database.create({"z": "TEXT"}, [("11",), ("11",), ("12",), ("12",), ("99",)])
    roles = {"z": {"role": "quasi-identifier", "hierarchy": {"mask": "right", "length": 2}}}
    policy = database.policy(table, roles, algorithm={"name": "optimal"}, suppression=0.2)
    run = anonymize(policy).run
    first = database.sql(f"SELECT * FROM {table}_r")
    assert len(first) == 4
    job = frozen(database, run, procedure=procedure)
    assert (job.on_violation, job.budget) == ("suppress", 0.2)
    carry_out(database)
    assert sorted(database.sql(f"SELECT * FROM {table}_r")) == sorted(first)
    frozen(database, run, procedure=procedure, on_violation="error")
    with pytest.raises(ProtectionError):
        carry_out(database)
    application = Application(run, table, f"{table}_again", replace=True)
    with connect(database.url) as engine, Catalog.open(engine) as catalog:
        found = catalog.run(run)
    assert apply_rules(application, found, (database.url, "sqlanon"), options=OPTIONS).release.suppressed == 1
    database.insert(table, [("88",), ("77",)])
    with pytest.raises(ProtectionError, match="more than the budget allows"):
        apply_rules(application, found, (database.url, "sqlanon"), options=OPTIONS)


@pytest.mark.either_engine
def test_freeze_says_what_it_chose_and_that_labels_differ(database: Database) -> None:
    run, _ = _released(database, "observed")
    done = call("freeze", run, "--name", "nightly", "--url", database.url)
    assert done.exit_code == 0, done.output
    assert "from cut to cut" in done.stderr
    assert "the job ends with an error, and the old release stays, as the policy says" in done.stdout
    assert (
        "from cut to cut"
        in only_object(call("freeze", run, "--name", "b", "--url", database.url, "--json").stdout)["warnings"][0]
    )
    suppressing = call(
        "freeze", run, "--name", "c", "--url", database.url, "--on-violation", "suppress", "--budget", "0.1"
    )
    assert "suppressed, at most 0.1 of the rows, as --on-violation says" in suppressing.stdout
