"""Options that say how a file is read: each does something for a kind of file, or is refused by name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon.api.calls import check_policy, draft
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.read_options import ReadOptions
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.policy.loading import build_policy, parse_source
from sqlanon.sql import Relation, Statement
from tests.cli.support import call, execute
from tests.engines.sheets import write_sheet
from tests.run_support import OPTIONS, run

pytestmark = pytest.mark.slow


@pytest.fixture
def memory() -> Iterator[DuckDBEngine]:
    with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
        yield engine


def rows_of(engine: DuckDBEngine, path: Path, **options: Any) -> list[tuple[Any, ...]]:
    reading = engine.read_file(Relation("t"), str(path), ReadOptions(**options))
    return engine.fetch(Statement("test", f"SELECT * FROM {reading.relation}"))


OPTIONS_OF_FILES: dict[str, Any] = {
    "delimiter": ";",
    "encoding": "utf-8",
    "null": ["NA"],
    "types": {"x": "text"},
    "dates": ["%d/%m/%Y"],
    "header": False,
    "names": ["x"],
    "decimal": ",",
    "thousands": ".",
}
EFFECTIVE = {
    "parquet": set[str](),
    "json": {"null", "types", "dates", "decimal", "thousands"},
    "ndjson": {"null", "types", "dates", "decimal", "thousands"},
    "xlsx": set(OPTIONS_OF_FILES) - {"delimiter", "encoding"},
    "csv": set(OPTIONS_OF_FILES),
}


def source_of(directory: Path, ending: str) -> Path:
    """A file with one column x of the texts NA and 1,5."""
    path = directory / f"in.{ending}"
    if ending == "xlsx":
        pytest.importorskip("python_calamine")
        write_sheet(path, [["x"], ["NA"], ["1,5"]])
    elif ending == "csv":
        path.write_text('x\nNA\n"1,5"\n')
    else:
        with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
            form = "parquet" if ending == "parquet" else "json"
            rows = "(VALUES ('NA'), ('1,5')) AS t(x)"
            engine.execute(Statement("test", f"COPY (SELECT * FROM {rows}) TO '{path}' (FORMAT {form})"))
    return path


@pytest.mark.parametrize("ending", EFFECTIVE)
@pytest.mark.parametrize("option", OPTIONS_OF_FILES)
def test_an_option_does_something_or_is_refused(tmp_path: Path, ending: str, option: str) -> None:
    path, given = source_of(tmp_path, ending), {option: OPTIONS_OF_FILES[option]}
    given |= {"names": {"header": True}, "thousands": {"decimal": ","}}.get(option, {})
    (tmp_path / "p.json").write_text(
        json.dumps(
            {
                "source": {"file": str(path), **given},
                "release": {"file": "out.csv"},
                "attributes": {("column0" if option == "header" else "x"): {"role": "quasi-identifier"}},
                "privacy": [{"model": "k-anonymity", "k": 2}],
            }
        )
    )
    checked = call("check", tmp_path / "p.json")
    if option in EFFECTIVE[ending]:
        assert (checked.exit_code, "No problem found" in checked.stderr) == (0, True)
        return
    assert (checked.exit_code, f"{option}" in checked.stderr, "leave this out" in checked.stderr) == (2, True, True)
    for key in EFFECTIVE[ending]:
        assert key in checked.stderr
    if option == "null":
        assert call("run", tmp_path / "p.json").exit_code == 2
    with pytest.raises(PolicyError, match=option):
        draft(None, str(path), OPTIONS, reading=parse_source({"file": str(path), **given}).reading, trying=False)


@pytest.mark.parametrize("ending", ["csv", "json", "xlsx"])
def test_null_is_what_the_policy_says(memory: DuckDBEngine, tmp_path: Path, ending: str) -> None:
    path = source_of(tmp_path, ending)
    assert rows_of(memory, path) == [("NA",), ("1,5",)]
    assert rows_of(memory, path, null=("NA",)) == [(None,), ("1,5",)]
    assert rows_of(memory, path, null=("NA",), decimal=",")[1] == (1.5,)


def test_nulls_that_are_refused_are_found_in_json(tmp_path: Path) -> None:
    people = [{"age": 30, "ill": ill} for ill in ("flu", "NA", "cold")]
    (tmp_path / "in.json").write_text(json.dumps(people))
    policy = {
        "source": {"file": str(tmp_path / "in.json"), "null": ["NA"]},
        "release": {"file": str(tmp_path / "out.csv")},
        "attributes": {"age": {"role": "quasi-identifier"}, "ill": {"role": "sensitive", "nulls": "refuse"}},
        "privacy": [{"model": "distinct-l-diversity", "l": 3, "attribute": "ill"}],
    }
    with pytest.raises(SqlanonError, match="NULL"):
        run(build_policy(policy), options=OPTIONS)


@pytest.mark.parametrize("option", OPTIONS_OF_FILES)
def test_options_of_files_are_refused_of_tables(tmp_path: Path, option: str) -> None:
    execute(f"duckdb:///{tmp_path}/x.duckdb", "CREATE TABLE t AS SELECT 'NA' AS x")
    source = {"url": f"duckdb:///{tmp_path}/x.duckdb", "table": "t", option: OPTIONS_OF_FILES[option]}
    with pytest.raises(PolicyError, match=f"must not hold {option}, as it is a table"):
        parse_source(source)
    flag = {"header": ["--no-header"], "types": []}.get(option, [f"--{option}", "x"])
    if flag:
        refused = call("init", f"duckdb:///{tmp_path}/x.duckdb", "t", *flag)
        assert (refused.exit_code, f"--{option} is about a file" in refused.stderr) == (2, True)


def test_advice_names_what_the_file_takes(memory: DuckDBEngine, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_bytes(b'[{"x": "M\xfcller"}]')
    with pytest.raises(SqlanonError) as refused:
        rows_of(memory, tmp_path / "a.json")
    assert "encoding" not in str(refused.value)


def test_advice_on_types_is_for_files_that_take_them(tmp_path: Path) -> None:
    with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
        engine.execute(Statement("test", f"COPY (SELECT INTERVAL 1 DAY AS x) TO '{tmp_path}/a.parquet'"))
    policy = {
        "source": {"file": str(tmp_path / "a.parquet")},
        "release": {"file": str(tmp_path / "out.parquet")},
        "attributes": {"x": {"role": "quasi-identifier"}},
        "privacy": [{"model": "k-anonymity", "k": 1}],
    }
    with pytest.raises(PolicyError, match="write it into the file as numbers") as refused:
        check_policy(build_policy(policy), options=OPTIONS)
    assert "source.types" not in str(refused.value)


def test_rules_are_applied_to_files_of_another_kind(tmp_path: Path) -> None:
    """The rules of a text file go to a Parquet file, whose NULLs are its own, and to a text file that is read alike."""
    (tmp_path / "in.csv").write_text("30;NA\n31;1,5\n32;2,5\n33;NA\n")
    policy = {
        "source": {"file": "in.csv", "header": False, "names": ["age", "x"], "null": ["NA"], "decimal": ","},
        "release": {"file": "out.csv"},
        "catalog": {"url": f"duckdb:///{tmp_path}/catalog.duckdb"},
        "attributes": {"age": {"role": "quasi-identifier"}, "x": {"role": "insensitive"}},
        "privacy": [{"model": "k-anonymity", "k": 2}],
    }
    (tmp_path / "p.json").write_text(json.dumps(policy))
    published = call("run", tmp_path / "p.json", "--json")
    identity = json.loads(published.stdout)["run"]
    with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
        rows = "(VALUES (30, 3.5), (31, NULL)) AS t(age, x)"
        engine.execute(Statement("test", f"COPY (SELECT age, x::DOUBLE AS x FROM {rows}) TO '{tmp_path}/new.parquet'"))
    (tmp_path / "new.csv").write_text("30;4,5\n31;NA\n")
    for name, value in (("new.parquet", "3.5"), ("new.csv", "4.5")):
        out = tmp_path / f"{name}.out.csv"
        applied = call("apply", identity, "--to", tmp_path / name, "--out", out, "--policy", tmp_path / "p.json")
        assert applied.exit_code == 0, applied.stderr
        assert sorted(line.rpartition(",")[2] for line in out.read_text().splitlines()) == ["", value, "x"]
