"""Names and values that hold anything at all: both engines release the same, or the name is refused before any work."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon import run_report
from sqlanon.catalog import Catalog
from sqlanon.engines import connect
from sqlanon.errors import PolicyError
from sqlanon.releases.rules.export_sql import rules_select
from sqlanon.releases.rules.store_rules import read_rules
from tests.jobs_support import carry_out, frozen
from tests.random_cases import many
from tests.rules_support import classes
from tests.run_support import Database, Row, anonymize, quoted

ODD = [
    *("'", '"', "\\", "%", "%s", "%%", ":x", "::", "{{", "}}", "{%", "{#", "--", "/*", "*/", ";", "$$", "$1", "?", "`"),
    *(
        " ",
        "\n",
        "\t",
        "\r",
        ".",
        ",",
        "[",
        "]",
        "(",
        "*",
        "NULL",
        "select",
        "é",
        "漢",
        "🎉",
        "ß",
        "\u200b",
        "\x01",
        "~",
    ),
]
TEXTS = st.lists(st.sampled_from([*ODD, "a", "B"]), min_size=1, max_size=6).map("".join)
LONG = st.sampled_from(["x" * 63, "漢" * 21, "y" * 59, "ü" * 31, "z" * 64, "漢" * 22])
NAMES = TEXTS | TEXTS | LONG
SOME = settings(
    max_examples=many(2),
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@dataclass(frozen=True)
class Case:
    """The names of a schema, a table and its columns; rows of texts; labels of a hierarchy, one for each value."""

    schema: str
    table: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]
    labels: dict[str, str]

    @property
    def source(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.table)}"

    def fits_postgres(self) -> bool:
        """Tell whether PostgreSQL keeps all names as they are."""
        return all(len(name.encode()) <= 63 for name in (self.schema, self.table, *self.columns))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    columns = draw(st.lists(NAMES, min_size=5, max_size=5, unique_by=str.casefold))
    values = draw(st.lists(TEXTS, min_size=2, max_size=4, unique=True))
    cells = st.tuples(st.sampled_from(values), TEXTS | st.none(), st.integers(0, 9), st.sampled_from(values))
    rows = [(*row, place) for place, row in enumerate(draw(st.lists(cells, min_size=4, max_size=12)))]
    labels = {value: draw(TEXTS) for value in values}
    return Case(draw(NAMES), draw(NAMES), tuple(columns), tuple(rows), labels)


def _policy(database: Database, case: Case) -> Any:
    nested, plain, number, sensitive, kept = case.columns
    roles: dict[str, Any] = {
        nested: {"role": "quasi-identifier", "hierarchy": {"mapping": case.labels}},
        plain: "quasi-identifier",
        number: {"role": "quasi-identifier", "show": "midpoint"},
        sensitive: "sensitive",
        kept: "insensitive",
    }
    release = f"{quoted(case.schema)}.{quoted('r ' + case.table[:20])}"
    return database.policy(case.source, roles, release={"table": release})


def _released(database: Database, case: Case) -> list[Row] | None:
    """The release, whose rules give it again; None where a name is refused."""
    types = ("VARCHAR(60)", "VARCHAR(60)", "INTEGER", "VARCHAR(60)", "INTEGER")
    database.sql(f"CREATE SCHEMA {quoted(case.schema)}")
    try:
        database.create(dict(zip(case.columns, types, strict=True)), case.rows, name=case.source)
        try:
            policy = _policy(database, case)
            run = anonymize(policy, replace=True).run
        except PolicyError:
            return None
        released = database.sql(f"SELECT * FROM {policy.release.table}")
        with connect(database.url) as engine, Catalog.open(engine) as catalog:
            select = rules_select(engine, read_rules(catalog, run), catalog.run(run), None)
        recoded = database.sql(select)
        assert classes(recoded, 3) == classes(released, 3)
        assert run_report(run, policy=policy).startswith("<!DOCTYPE html>")
        frozen(database, run)
        assert carry_out(database)["published"]
        assert sorted(database.sql(f"SELECT * FROM {policy.release.table}"), key=repr) == sorted(recoded, key=repr)
        return released
    finally:
        database.sql(f"DROP SCHEMA {quoted(case.schema)} CASCADE")


def _is_clean(database: Database) -> bool:
    return database.leftovers() == []


@SOME
@given(case=cases())
def test_any_names_and_values_are_released_alike_or_refused(databases: tuple[Database, Database], case: Case) -> None:
    duck, postgres = databases
    released = _released(duck, case)
    assert _is_clean(duck)
    if case.fits_postgres():
        assert released == _released(postgres, case), "the engines differ"
        assert _is_clean(postgres)
