"""Releases in two tables and a view (`layout: star`): the content of flat ones, whole or not at all."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.runs.dry_run import run_dry
from sqlanon.work.journal import Silent
from sqlanon.work.session import open_session
from sqlanon.work.workspace import gc
from tests.child_run import Child
from tests.jobs_support import carry_out, frozen
from tests.layout_support import CASES, COLUMNS, LEVELS, PLAIN, QI, ROWS, SHOWN, STARS, as_star, content, people
from tests.random_cases import many
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, anonymize, duckdb_url, open_database

pytestmark = [pytest.mark.either_engine, pytest.mark.slow]


@pytest.mark.parametrize("case", CASES)
def test_a_star_shows_what_a_flat_release_shows(database: Database, case: str) -> None:
    attributes, more = CASES[case]
    table = database.create(COLUMNS, ROWS)
    more = {**more, "digest": "run"}
    flat = anonymize(database.policy(table, attributes, **more))
    star = anonymize(database.policy(table, attributes, **as_star(table, **more)))
    assert _digest(database.url, star.run) == _digest(database.url, flat.run)
    assert database.columns(f"{table}_s") == database.columns(f"{table}_r")
    assert content(database, f"{table}_s") == content(database, f"{table}_r")
    assert database.leftovers() == []
    assert star.checks["classes_numbered"].violations == 0


def test_ranges_go_into_classes_too(postgres_database: Database) -> None:
    attributes = {**PLAIN, "age": {"role": QI, "show": "range"}}
    table = postgres_database.create(COLUMNS, ROWS)
    flat = anonymize(postgres_database.policy(table, attributes, digest="run"))
    star = anonymize(postgres_database.policy(table, attributes, **as_star(table, digest="run")))
    assert _digest(postgres_database.url, star.run) == _digest(postgres_database.url, flat.run)


def test_the_tables_tell_nothing_of_the_source_but_the_release(database: Database) -> None:
    """Both are the same, row by row, whatever the order of the source; numbers are places in the order of labels."""
    stored = []
    for number in range(2):
        table = database.create(COLUMNS, ROWS if number == 0 else ROWS[::-1])
        anonymize(database.policy(table, LEVELS, **as_star(table, **STARS)))
        stored.append([database.sql(f"SELECT * FROM {table}_s_{part}") for part in ("rows", "classes")])
    assert stored[0] == stored[1]
    rows, classes = stored[0]
    assert [number for number, *_ in classes] == list(range(1, len(classes) + 1))
    labels = [[text.encode() for text in shown] for _, *shown in classes]
    assert labels == sorted(labels)
    assert {number for number, *_ in rows} == {number for number, *_ in classes}


def test_suppressed_rows_are_one_class_with_those_that_look_like_them(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    anonymize(database.policy(table, LEVELS, **as_star(table, **STARS)))
    assert database.sql(f"SELECT count(*) FROM {table}_s_classes WHERE age = '*' AND town = '*' AND joined = '*'") == [
        (1,)
    ]


# --- replacing


@pytest.mark.parametrize("was", ["star", "flat"])
@pytest.mark.parametrize("now", ["star", "flat"])
def test_either_layout_replaces_the_other(database: Database, was: str, now: str) -> None:
    table = database.create(COLUMNS, ROWS)
    name = f"{table}_s"
    anonymize(database.policy(table, PLAIN, release={"table": name, "layout": was}))
    for what, of in (("VIEW" if was == "star" else "TABLE", name), ("COLUMN", f"{name}.ill")):
        database.sql(f"COMMENT ON {what} {of} IS 'mine'")
    database.insert(table, people(2, 60))
    policy = database.policy(table, PLAIN, release={"table": name, "layout": now})
    with pytest.raises(PolicyError, match="--replace"):
        anonymize(policy)
    anonymize(policy, replace=True)
    assert database.sql(f"SELECT count(*) FROM {name}") == [(300,)]
    parts = [n for (n,) in database.sql("SELECT table_name FROM information_schema.tables") if n.startswith(f"{name}_")]
    assert sorted(parts) == ([f"{name}_classes", f"{name}_rows"] if now == "star" else [])
    assert comments(database, name) == ["mine", "mine"]
    assert database.leftovers() == []


def comments(database: Database, name: str) -> list[str]:
    if database.engine == "duckdb":
        found = database.sql(
            "SELECT comment FROM (SELECT table_name, comment FROM duckdb_tables() UNION ALL SELECT view_name, comment"
            " FROM duckdb_views() UNION ALL SELECT table_name, comment FROM duckdb_columns())"
            " WHERE table_name = ? AND comment IS NOT NULL",
            [name],
        )
    else:
        found = database.sql("SELECT description FROM pg_description WHERE objoid = CAST(? AS regclass)", [name])
    return [text for (text,) in found]


def test_views_of_a_star_go_on_reading_it(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, PLAIN, **as_star(table))
    anonymize(policy)
    database.sql(f"CREATE VIEW {table}_v AS SELECT age, count(*) AS n FROM {table}_s GROUP BY age")
    database.insert(table, people(2, 60))
    anonymize(policy, replace=True)
    assert database.sql(f"SELECT sum(n) FROM {table}_v") == [(300,)]


def test_other_columns_replace_a_star(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    anonymize(database.policy(table, PLAIN, **as_star(table)))
    anonymize(database.policy(table, SHOWN, **as_star(table)), replace=True)
    assert [name for name, _ in database.columns(f"{table}_s")] == [
        "ill", "age", "weight", "town", "joined_min", "joined_max", "height",
    ]  # fmt: skip
    database.sql(f"CREATE VIEW {table}_v AS SELECT joined_min FROM {table}_s")
    with pytest.raises(PolicyError, match=f"{table}_v"):
        anonymize(database.policy(table, PLAIN, **as_star(table)), replace=True)
    assert database.sql(f"SELECT count(joined_min) FROM {table}_v") == [(240,)]
    assert database.leftovers() == []


def test_an_index_is_not_lost(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, PLAIN, **as_star(table))
    anonymize(policy)
    database.sql(f"CREATE INDEX mine ON {table}_s_rows (ill)")
    for layout in ("star", "flat"):
        other = database.policy(table, PLAIN, release={"table": f"{table}_s", "layout": layout})
        with pytest.raises(PolicyError, match=r"would lose: index .*mine"):
            anonymize(other, replace=True)
    flat = database.policy(table, PLAIN)
    anonymize(flat)
    database.sql(f"CREATE INDEX mine2 ON {table}_r (ill)")
    with pytest.raises(PolicyError, match=r"would lose: index .*mine2"):
        anonymize(database.policy(table, PLAIN, release={"table": f"{table}_r", "layout": "star"}), replace=True)
    assert database.sql(f"SELECT count(*) FROM {table}_r") == [(240,)]


# --- refused before any work


@pytest.mark.parametrize("part", ["rows", "classes"])
@pytest.mark.parametrize("kind", ["TABLE", "VIEW"])
def test_names_that_are_taken_are_refused(database: Database, part: str, kind: str) -> None:
    table = database.create(COLUMNS, ROWS)
    database.sql(f"CREATE {kind} {table}_s_{part} AS SELECT 1 AS class_number")
    with pytest.raises(PolicyError, match=f"{table}_s_{part}.* there is one of this name"):
        anonymize(database.policy(table, PLAIN, **as_star(table)), replace=True)
    assert database.sql(f"SELECT * FROM {table}_s_{part}") == [(1,)]


def test_a_view_of_somebody_else_is_not_replaced(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    for part in ("rows", "classes"):
        database.sql(f"CREATE TABLE {table}_s_{part} AS SELECT 1 AS class_number")
    joined = f"FROM {table}_s_rows AS r JOIN {table}_s_classes AS c ON c.class_number = r.class_number"
    queries = [f"SELECT * FROM {table}_s_rows"]
    if database.engine == "postgres":  # on DuckDB nothing is read with the rights of others
        queries += [f"SELECT random() AS x {joined}", f"SELECT 1 AS x {joined} WHERE random() < 2"]
    for query in queries:
        database.sql(f"CREATE VIEW {table}_s AS {query}")
        with pytest.raises(PolicyError, match="is a view"):
            anonymize(database.policy(table, PLAIN, **as_star(table)), replace=True)
        database.sql(f"DROP VIEW {table}_s")


@pytest.mark.parametrize(("length", "fits"), [(55, True), (56, False)])
def test_long_names_are_refused(database: Database, length: int, fits: bool) -> None:
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, PLAIN, release={"table": "n" * length, "layout": "star"})
    if fits:
        anonymize(policy)
        anonymize(policy, replace=True)
        return
    with pytest.raises(PolicyError, match="too long for the layout star"):
        anonymize(policy)


@pytest.mark.either_engine
@pytest.mark.parametrize("role", ["sensitive", QI])
def test_a_column_with_the_name_of_the_number_is_refused(database: Database, role: str) -> None:
    table = database.create({**COLUMNS, "class_number": "INTEGER"}, [(*row, 1) for row in ROWS])
    with pytest.raises(PolicyError, match="class_number"):
        anonymize(database.policy(table, {**PLAIN, "class_number": role}, **as_star(table)))
    anonymize(database.policy(table, {**PLAIN, "class_number": "identifier"}, **as_star(table)))


def test_a_file_has_no_layout(database: Database, tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="as it is a file"):
        database.policy("t", PLAIN, release={"file": str(tmp_path / "r.csv"), "layout": "star"})


# --- verification

SHOW = "(SELECT town FROM {classes} WHERE class_number = %d)"
TAMPERING = {
    "a row has no class": ("UPDATE {rows} SET class_number = 999 WHERE class_number = 1", "classes_numbered"),
    "a row has no number": ("UPDATE {rows} SET class_number = NULL WHERE class_number = 1", "classes_numbered"),
    "a class is gone": ("DELETE FROM {classes} WHERE class_number = 1", "classes_numbered"),
    "a class is there twice": (
        "INSERT INTO {classes} SELECT * FROM {classes} WHERE class_number = 1",
        "classes_numbered",
    ),
    "a class has no rows": (
        "INSERT INTO {classes} SELECT 999, 'zz', 'zz', 'zz' FROM {classes} WHERE class_number = 1",
        "classes_numbered",
    ),
    "numbers tell more than labels": (
        "UPDATE {rows} SET class_number = -class_number; UPDATE {classes} SET class_number = -class_number",
        "classes_numbered",
    ),
    "classes exchange a label": (
        f"UPDATE {{classes}} SET town = CASE class_number WHEN 1 THEN {SHOW % 2} ELSE {SHOW % 1} END"
        " WHERE class_number IN (1, 2)",
        "classes_equal",
    ),
    "a row is in another class": (
        "UPDATE {rows} SET class_number = 2 WHERE class_number = 1 AND ill = 'flu'",
        "classes_equal",
    ),
    "a kept value is altered": ("UPDATE {rows} SET ill = 'x' WHERE class_number = 1", "values_equal"),
}


class Tampering(Silent):
    """An observer that alters the staged tables when their verification begins."""

    def __init__(self, database: Database, statement: str) -> None:
        self.database = database
        self.statement = statement

    def phase(self, name: str) -> None:
        if name == "verify":
            staged = [one for one in self.database.leftovers() if one.startswith("sqlanon_staging")]
            have = {one: [name for name, _ in self.database.columns(one)] for one in staged}
            (rows,) = (one for one in staged if "class_number" in have[one] and "ill" in have[one])
            (classes,) = (one for one in staged if "class_number" in have[one] and "ill" not in have[one])
            for part in self.statement.format(rows=rows, classes=classes).split("; "):
                self.database.sql(part)


PARTS = [*zip(["postgres", "duckdb"] * 3, [0, 1, 2] * 2, strict=True)]


@pytest.mark.parametrize(("engine_name", "part"), PARTS[: many(3)], indirect=["engine_name"])
def test_no_star_is_published_that_was_tampered_with(database: Database, part: int) -> None:
    rows = [("flu" if n % 5 else "cold", n % 12, 1, "abcd"[n % 4], "2024-01-01", 1.5) for n in range(48)]
    table = database.create(COLUMNS, rows)
    policy = database.policy(table, PLAIN, **as_star(table))
    anonymize(policy)
    before = content(database, f"{table}_s")
    for statement, check in list(TAMPERING.values())[part::3]:
        with pytest.raises(VerificationError, match=check):
            anonymize(policy, replace=True, observer=Tampering(database, statement))
        assert content(database, f"{table}_s") == before
        assert database.leftovers() == []


# --- kills


@pytest.mark.either_engine
@pytest.mark.parametrize("phase", ["verify", "publish"])
def test_a_killed_run_leaves_the_old_star(database_url: str, tmp_path: Path, phase: str) -> None:
    with open_database(database_url) as database:
        database.create(COLUMNS, ROWS, name="people")
        anonymize(database.policy("people", PLAIN, **as_star("people")))
        before = content(database, "people_s")
    policy = {
        "source": {"url": database_url, "table": "people"},
        "attributes": {n: {"role": a} if isinstance(a, str) else a for n, a in PLAIN.items()},
        "privacy": [{"model": "k-anonymity", "k": 20}],
        **as_star("people"),
    }
    child = Child(policy, phase, tmp_path / "errors")
    child.until(phase)
    child.signal(signal.SIGKILL)
    with open_database(database_url) as database:
        assert content(database, "people_s") == before
        with open_session(database.policy("people", PLAIN), OPTIONS) as session:
            done = gc(session.engine, session.catalog)
        assert sum("dropped view" in line for line in done) == 1
        assert database.leftovers() == []
        assert content(database, "people_s") == before


# --- other ways to a release


def test_rules_are_applied_to_a_star(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    newer = database.create(COLUMNS, people(3, 120))
    wanted = {"suppression": 0.5, "ranges": "cuts", "digest": "run"}
    of_flat = anonymize(database.policy(table, PLAIN, **wanted))
    of_star = anonymize(database.policy(table, PLAIN, **as_star(table, **wanted)))
    flat, star = (
        apply(database, outcome.run, newer, out, budget=0.5)
        for outcome, out in ((of_flat, "applied_r"), (of_star, "applied_s"))
    )
    assert _digest(database.url, star.run) == _digest(database.url, flat.run)
    assert content(database, "applied_s") == content(database, "applied_r")
    assert database.sql("SELECT count(*) FROM applied_s_rows") == database.sql("SELECT count(*) FROM applied_s")


def test_a_job_of_the_program_replaces_a_star(database: Database) -> None:
    table = database.create(COLUMNS, ROWS)
    found = anonymize(database.policy(table, LEVELS, **as_star(table, algorithm={"name": "datafly"}, suppression=0.5)))
    if database.engine == "postgres":
        with pytest.raises(PolicyError, match="layout: star"):
            frozen(database, found.run)
    frozen(database, found.run, procedure=False)
    database.insert(table, ROWS)
    carry_out(database)
    assert [database.sql(f"SELECT count(*) FROM {table}_s{part}") for part in ("", "_rows")] == [[(480,)]] * 2


def test_a_star_in_another_database(database: Database, tmp_path: Path) -> None:
    attributes = {**SHOWN, "height": "sensitive"}
    table = database.create(COLUMNS, ROWS)
    flat = anonymize(database.policy(table, attributes, digest="run"))
    url = duckdb_url(tmp_path / "other.duckdb")
    policy = database.policy(table, attributes, **as_star(table, digest="run")).model_copy()
    release = policy.release.model_copy(update={"url": url})
    for _ in range(2):
        outcome = anonymize(policy.model_copy(update={"release": release}), replace=True)
    assert outcome.verified
    with open_database(url) as other:
        assert other.sql(f"SELECT count(*) FROM {table}_s") == [(240,)]
        assert sorted(n for (n,) in other.sql("SELECT view_name FROM duckdb_views() WHERE NOT internal")) == [
            f"{table}_s"
        ]
        assert other.leftovers() == []
    assert database.leftovers() == []
    if database.engine == "duckdb":
        digests = [_digest(database.url, flat.run), _digest(database.url, outcome.run)]
        assert digests[0] == digests[1]


def _digest(url: str, run: str) -> str:
    """The digest of what a run released."""
    with connect(url) as engine, Catalog.open(engine) as catalog:
        (release,) = catalog.releases(run)
        assert release.content_digest is not None
        return release.content_digest


def test_a_dry_run_sends_what_a_run_sends(database: Database) -> None:
    """Of a new release, one that replaces a star, and one that replaces a table."""
    table = database.create(COLUMNS, ROWS)
    policy = database.policy(table, PLAIN, **as_star(table))
    for made in (None, "star", "flat"):
        if made is not None:
            anonymize(database.policy(table, PLAIN, release={"table": f"{table}_s", "layout": made}), replace=True)
        played = [step.name for step in run_dry(policy).steps if step.phase == "publish"]
        outcome = anonymize(policy, replace=True)
        sent = database.sql(
            "SELECT name FROM sqlanon.steps WHERE run = ? AND phase = 'publish' AND name LIKE 'work/publish/%'"
            " ORDER BY number",
            [outcome.run],
        )
        changing = ("publish/create", "publish/drop", "publish/rename", "work/publish/set_owner", "publish/grant")
        assert [n for n in played if n.startswith(changing)] == [n for (n,) in sent if n.startswith(changing)]
