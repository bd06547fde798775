"""Engines of installed packages: one that is DuckDB under another name, with statements and limits of its own."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import sqlanon
from sqlanon.engines import connect
from sqlanon.engines.dialects import Capability, Dialect, dialect_named, dialects
from sqlanon.errors import PolicyError
from sqlanon.sql import Relation, Statement
from sqlanon.support import plugins
from sqlanon.work.publish import transfer
from tests.cli.support import PATIENTS, call, execute

pytestmark = pytest.mark.slow

DIALECT = """
from sqlanon.engines.dialects import Capability
from sqlanon.engines.duckdb.dialect import DuckDB


class Drake(DuckDB):
    name = "drake"
    label = "Drake"
    templates = "sqlanon_drake"
    schemes = ("drake",)
    adapter = "sqlanon_drake.engine:DrakeEngine"
    keeps_catalog = Capability("Drake forgets catalogs; name another database (catalog: {url: ...}).")
"""
ENGINE = """
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon_drake.dialect import Drake


class DrakeEngine(DuckDBEngine):
    traits = Drake
"""
MACROS = """{% macro create_table(table) -%}
CREATE {% if table.catalog == "temp" %}TEMP {% endif %}TABLE {{ table }} /* drake */
{%- endmacro %}"""
RENAMING = "ALTER TABLE {{ table }} RENAME TO {{ name }} /* drake */"
SHOWN = "SELECT * FROM {}"


@pytest.fixture
def drake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A URL of the engine of a package that is installed meanwhile; the database has the table `patients`."""
    package = tmp_path / "site" / "sqlanon_drake"
    for path, text in {
        "__init__.py": "",
        "dialect.py": DIALECT,
        "engine.py": ENGINE,
        "sql_templates/dialects/drake.sql.j2": MACROS,
        "sql_templates/work/publish/rename_table.drake.sql.j2": RENAMING,
        "../sqlanon_drake-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: sqlanon_drake\nVersion: 1.0\n",
        "../sqlanon_drake-1.0.dist-info/entry_points.txt": "[sqlanon.engines]\ndrake = sqlanon_drake.dialect:Drake\n",
    }.items():
        (package / path).parent.mkdir(parents=True, exist_ok=True)
        (package / path).write_text(text)
    monkeypatch.syspath_prepend(package.parent)
    monkeypatch.chdir(tmp_path)
    plugins.find_plugins.cache_clear()
    execute("duckdb:///data.duckdb", PATIENTS.format(series="range(1, 201) AS s(i)"))
    yield "drake:///data.duckdb"
    plugins.find_plugins.cache_clear()
    for module in [name for name in sys.modules if name.startswith("sqlanon_drake")]:
        del sys.modules[module]


def rows(url: str, table: str) -> list[tuple[object, ...]]:
    with connect(url) as engine:
        return engine.fetch(Statement("test", SHOWN.format(table)))


def done(*arguments: object) -> str:
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    return result.output


def drafted(url: str, policy: str) -> str:
    """The policy that `init` drafts, with 5-anonymity by Mondrian, and a catalog in a DuckDB file."""
    done("init", url, "patients", "-o", policy)
    return Path(policy).read_text()


def test_a_run_on_an_engine_of_a_package(drake: str) -> None:
    """From the draft to the catalog: the rows are those that DuckDB releases."""
    text = drafted(drake, "drake.yml")
    for arguments in (["check"], ["run"], ["verify"], ["run", "--replace"]):
        done(*arguments, "drake.yml")
    assert rows("duckdb:///catalog.duckdb", "(SELECT DISTINCT engine FROM sqlanon.runs)") == [("drake",)]
    Path("duckdb.yml").write_text(text.replace("drake:", "duckdb:").replace("patients_", "patients_again_"))
    done("run", "duckdb.yml")
    (name,) = [line.split("table:")[1].strip(" }") for line in text.splitlines() if line.startswith("release:")]
    released = rows(drake, name)
    assert len(released) == 200
    assert released == rows(drake, name.replace("patients_", "patients_again_"))


def test_rules_are_applied_and_exported_on_it(drake: str) -> None:
    drafted(drake, "drake.yml")
    run = json.loads(done("run", "drake.yml", "--json"))["run"]
    named = ("--policy", "drake.yml")
    done("apply", run, "--to", "patients", "--out", "again", *named)
    assert len(rows(drake, "again")) == 200
    select = done("rules", run, "--sql", *named)
    assert len(rows(drake, f"({select.rstrip().rstrip(';')})")) == 200


def test_its_macros_and_statements_are_those_of_its_package_else_duckdbs(drake: str) -> None:
    drafted(drake, "drake.yml")
    script = done("run", "drake.yml", "--dry-run")
    assert re.search(r"RENAME TO \S+ /\* drake \*/", script)
    render = dialect_named("drake").renderer()
    assert render("work/publish/create_table", table=Relation("t"), columns=[]).text.startswith(
        'CREATE TABLE "t" /* drake */'
    )
    assert "duckdb_databases()" in render("work/publish/describe_schema", catalog=1, schema=2).text


def test_a_capability_that_it_lacks_is_refused_before_any_work(drake: str) -> None:
    lines = drafted(drake, "drake.yml").splitlines(keepends=True)
    Path("drake.yml").write_text("".join(line for line in lines if not line.startswith("catalog:")))
    for arguments in (("check", "drake.yml"), ("run", "drake.yml"), ("runs", "--url", drake)):
        result = call(*arguments)
        assert result.exit_code == 2
        assert "catalog: Drake forgets catalogs; name another database" in result.output
    assert rows(drake, "(SELECT DISTINCT schema_name FROM duckdb_schemas() WHERE schema_name = 'sqlanon')") == []
    assert {path.name for path in Path().iterdir()} == {"data.duckdb", "drake.yml", "site"}


def test_relations_are_carried_to_and_from_it(drake: str) -> None:
    with connect(drake) as one, connect("duckdb:///other.duckdb", create=True) as other:
        transfer(one, Relation("patients"), other, Relation("carried"))
        transfer(other, Relation("carried"), one, Relation("returned"))
        assert [(c.name, c.type) for c in one.columns(Relation("returned"))] == [
            (c.name, c.type) for c in one.columns(Relation("patients"))
        ]


def test_the_programs_own_engines_need_no_look_at_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "entry_points", None)  # calling it would fail
    plugins.find_plugins.cache_clear()
    with connect("duckdb:///:memory:") as engine:
        assert (engine.name, dialect_named("postgres").label) == ("duckdb", "PostgreSQL")


@pytest.mark.usefixtures("drake")
def test_an_unknown_engine_is_named_with_those_there_are() -> None:
    with pytest.raises(PolicyError, match=r"There is no engine for 'sybase://' URLs; there are: duckdb, .*, drake"):
        connect("sybase://host/db")
    for scheme in ("mysql", "mysql+pymysql", "mssql+pyodbc", "oracle", "sqlite", "snowflake", "bigquery", "redshift"):
        with pytest.raises(PolicyError, match=rf"'{re.escape(scheme)}://' URLs; there are: .* to a Parquet file"):
            connect(f"{scheme}://host/db")
    for typo, meant in {"postgre": "postgres", "postgressql": "postgresql", "duckbd": "duckdb"}.items():
        with pytest.raises(PolicyError, match=f"did you mean {meant}"):
            connect(f"{typo}://host/db")
    with pytest.raises(PolicyError, match="There is no engine for 'drak://' URLs; did you mean drake"):
        connect("drak:///x.duckdb")
    with pytest.raises(PolicyError, match="There is no engine 'oracle'; is the package that adds it installed"):
        dialect_named("oracle")


@pytest.mark.usefixtures("drake")
def test_every_lacking_capability_has_a_reason() -> None:
    for dialect in dialects():
        found = {name: one for name in dir(Dialect) if isinstance(one := getattr(dialect, name), Capability)}
        assert set(found) >= {"keeps_catalog", "reads_files", "has_ranges", "has_procedures", "has_roles"}
        for capability in found.values():
            assert bool(capability) == (capability.lacking == "")


def test_every_trait_is_asked_for_somewhere() -> None:
    """A trait that nobody reads is a promise without effect."""
    program = Path(sqlanon.__file__).parent
    text = "".join(path.read_text(encoding="utf-8") for path in program.rglob("*.py"))
    unused = [name for name in vars(Dialect)["__annotations__"] if not re.search(rf"\.{name}\b", text)]
    assert unused == []
