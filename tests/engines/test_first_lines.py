"""The first line of a text file: names, or the first person, who must not become the header of a release."""

from __future__ import annotations

import gzip
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from sqlanon import anonymize
from sqlanon.api.calls import check_policy, draft, table_loss
from sqlanon.api.risk import table_risk
from sqlanon.engines import connect
from sqlanon.engines.duckdb.engine import DuckDBEngine
from sqlanon.engines.first_line import UndecidedHeader
from sqlanon.engines.read_options import FileReading, ReadOptions
from sqlanon.errors import PolicyError
from sqlanon.policy.loading import build_policy, parse_policy
from sqlanon.sql import Relation, Statement
from tests.cli.support import call
from tests.engines.sheets import write_sheet
from tests.run_support import OPTIONS, run

pytestmark = pytest.mark.slow

ADULT = "39, State-gov, 77516, Bachelors\n50, Self-emp, 83311, Masters\n38, State-gov, 215646, HS-grad\n\n"


def read(path: Path | str, **options: Any) -> tuple[FileReading, list[tuple[Any, ...]]]:
    with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
        reading = engine.read_file(Relation("t"), str(path), ReadOptions(**options))
        return reading, engine.fetch(Statement("test", f"SELECT * FROM {reading.relation}"))


def file_of(directory: Path, text: str, name: str = "people.csv") -> Path:
    path = directory / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return path


@pytest.mark.parametrize(
    "text",
    [
        ADULT,
        "Ann,Berlin\nBob,Paris\nEve,Berlin\n",
        "30,M\n41,F\n",
        "30\n41\n",
        "0,0,7\n1,2,8\n",
        "2019,5\n2020,6\n",
        "00123;x\n00456;y\n",
        "1,05;4.210,50\n2,10;3,50\n",
        "2020-01-01,x\n2021-03-04,y\n",
        "2020-01-01T10:00:00Z|a\n2020-01-02T10:00:00Z|b\n",
        "Ann\t030-12345\nBob\t040-2345\n",
        "true,a\nfalse,b\ntrue,c\n",
        "ann@x.org,Ann\nbob@y.org,Bob\n",
        "?,State,40\n50,Self,41\n38,State,42\n",
        ",State\n50,Self\n38,State\n",
        "NA,1.5\n3,2.5\n4,3.5\n",
        "39,x\n",
        ",,\n1,,\n,2,x\n",
        "?,NA\nx,y\nz,a\n",
        "Smith,,London\nFox,A,York\nLee,,Bath\nRay,B,Wells\n",
        ",Smith\nAnn,Fox\nEve,Lee\n",
        "441bfbfd-54e9-6cf3-d4c9-10175ef5564e\n5a1bfbfd-94e9-4cfe-a4c9-e0175ef5564a\n",
        "1bc9fc1b8473613631cea0f229cd11b4,Ann\na3fe3d7caa3cdd3bee5801b1e5d0b0d2,Bob\n",
        "WVWZZZ1JZ3W386752;x\nJH4KA7561PC008269;y\n",
        "Ann,Berlin\n" + "".join(f"{'ab'[n % 2] * n},x\n" for n in range(1, 2_500)) + "c,Berlin\n",
    ],
)
def test_a_first_line_that_reads_like_data_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(UndecidedHeader, match=r"header: false, with names.* or header: true") as refused:
        read(file_of(tmp_path, text))
    assert "Berlin" not in str(refused.value)
    assert len(read(tmp_path / "people.csv", header=False)[1]) == len(text.rstrip().splitlines())


@pytest.mark.parametrize(
    "text",
    [
        "age,work\n39,State\n50,Self\n",
        "name,city\nAnn,Berlin\nBob,Paris\n",
        "name,city\n",
        "name,2019\n",
        "country,2019,2020\nDE,5,7\nFR,6,8\n",
        "id,2019,2020\n1,2019,7\n2,6,8\n",
        "country,1/22/20,1/23/20\nDE,1,2\nFR,2,3\n",
        "q1,q2,q3\n1,2,3\n2,3,4\n",
        "id,comment\n1,comment\n2,x\n",
        "name,address1\nAnn,12 Main St\nBob,3 High St\n",
        "marital-status,native-country\nNever-married,United-States\nEver-married,Viet-Nam\n",
        ",age\n0,40\n1,50\n",
        ",name\n0,Ann\n1,Bob\n",
        "name,city,\nAnn,Berlin,\nBob,Paris,\n",
        "patient_number_1\nAB12\nCD34\n",
        "day,moment\n2020-01-01,2020-01-01 10:00\n",
        "smoker,x\ntrue,1\nfalse,2\n",
    ],
)
def test_names_are_taken_for_names(tmp_path: Path, text: str) -> None:
    assert len(read(file_of(tmp_path, text))[1]) == len(text.splitlines()) - 1


def test_columns_without_names_go_by_their_places_or_as_the_policy_calls_them(tmp_path: Path) -> None:
    path = file_of(tmp_path, ADULT)
    reading, rows = read(path, header=False)
    assert [one.name for one in reading.columns] == ["column0", "column1", "column2", "column3"]
    assert rows[0] == (39, " State-gov", " 77516", " Bachelors")
    assert "no names in its first line" in reading.lines()[0]
    assert reading.as_json()["header"] is False
    reading, rows = read(path, header=False, names=("age", "work", "weight", "school"), types={"weight": "integer"})
    assert ([one.name for one in reading.columns], rows[0][2]) == (["age", "work", "weight", "school"], 77516)
    with pytest.raises(PolicyError, match="there are 2 names, and 4 fields in the first line"):
        read(path, header=False, names=("a", "b"))


def test_names_of_a_policy_replace_those_of_the_file(tmp_path: Path) -> None:
    path = file_of(tmp_path, "a,A\n1,x\n2,y\n")
    with pytest.raises(PolicyError, match=r"same name: A, a.*names: \[...\]"):
        read(path)
    reading, rows = read(path, header=True, names=("n", "text"))
    assert ([one.name for one in reading.columns], rows) == (["n", "text"], [(1, "x"), (2, "y")])
    for names, header, problem in [
        (("n", "N"), True, "there twice"),
        (("n", ""), False, "empty"),
        (("n",), None, "hold"),
    ]:
        with pytest.raises(PolicyError, match=f"source has names.*{problem}"):
            read(path, names=names, header=header)


@pytest.mark.parametrize("name", ["people.csv", "people.csv.gz", "people.tsv", "people.csv.zst", "-", "people.xlsx"])
def test_every_form_of_delimited_text(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    path: Path | str = tmp_path / name
    if name == "-":
        path = name
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"30,M\n41,F\n")))
    elif name.endswith(".xlsx"):
        pytest.importorskip("python_calamine")
        write_sheet(Path(path), [(30, "M"), (41, "F")])
    elif name.endswith(".zst"):
        with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
            rows = "(VALUES (30, 'M'), (41, 'F'))"
            engine.execute(Statement("test", f"COPY {rows} TO '{path}' (FORMAT csv, HEADER false, COMPRESSION zstd)"))
    else:
        file_of(tmp_path, "30\tM\n41\tF\n" if ".tsv" in name else "30,M\n41,F\n", name)
    with pytest.raises(UndecidedHeader):
        read(path)
    assert read(path, header=False, names=("age", "sex"))[1] == [(30, "M"), (41, "F")]


def policy_of(directory: Path, **source: Any) -> dict[str, Any]:
    return {
        "source": {"file": str(directory / "people.csv"), **source},
        "release": {"file": str(directory / "out.csv")},
        "catalog": {"url": f"duckdb:///{directory}/catalog.duckdb"},
        "attributes": {"age": {"role": "quasi-identifier"}, "sex": {"role": "insensitive"}},
        "privacy": [{"model": "k-anonymity", "k": 2}],
    }


def test_nothing_reads_the_first_person_as_names(tmp_path: Path) -> None:
    path = file_of(tmp_path, "30,M\n41,F\n30,F\n41,M\n")
    undecided = build_policy(policy_of(tmp_path))
    for reads in (
        lambda: check_policy(undecided),
        lambda: run(undecided, options=OPTIONS),
        lambda: anonymize(path, policy_of(tmp_path)),
        lambda: table_risk(None, str(path), ["30"]),
        lambda: table_loss(None, str(path), str(path)),
    ):
        with pytest.raises(UndecidedHeader):
            reads()
    said = policy_of(tmp_path, header=False, names=["age", "sex"])
    assert anonymize(path, said).result.source.rows == 4
    result = run(build_policy(said), options=OPTIONS)
    assert (tmp_path / "out.csv").read_text().splitlines()[0] == "age,sex"
    assert result.source.rows == 4


def test_a_draft_says_what_the_first_line_is(tmp_path: Path) -> None:
    path = file_of(tmp_path, "30,M\n41,F\n30,F\n41,M\n")
    drafted = draft(None, str(path), OPTIONS, trying=False)
    assert 'header: false, names: ["column0", "column1"]' in drafted.text
    assert drafted.shown == ("The first line reads like data, so that header is false: give the columns names.",)
    assert f"# {drafted.shown[0]}" in drafted.text
    policy = parse_policy(drafted.text)
    assert list(policy.attributes) == ["column0", "column1"]
    assert check_policy(policy).rows == 4
    given = draft(None, str(path), OPTIONS, trying=False, reading=ReadOptions(header=True))
    assert (given.shown, "header: true" in given.text) == ((), True)


def test_the_command_line_says_it(tmp_path: Path) -> None:
    path = file_of(tmp_path, "30,M\n41,F\n30,F\n41,M\n")
    drafted = call("init", path, "--no-try", "-o", tmp_path / "p.yml")
    assert (drafted.exit_code, "reads like data" in drafted.stderr) == (0, True)
    named = call("init", path, "--no-try", "--no-header", "--names", 'age,"s,x"')
    assert 'names: ["age", "s,x"]' in named.stdout
    assert call("init", path, "--no-try", "--names", "age,sex").exit_code == 2
    text = (tmp_path / "p.yml").read_text().replace('header: false, names: ["column0", "column1"]', "delimiter: ','")
    (tmp_path / "q.yml").write_text(text)
    for command in ("check", "run"):
        refused = call(command, tmp_path / "q.yml")
        assert (refused.exit_code, "--no-header" in refused.stderr) == (2, True)


def test_a_release_has_the_names_that_the_policy_looks_for(tmp_path: Path) -> None:
    """Names that read like data, as years do, are those of another release of the policy too."""
    file_of(tmp_path, "2019,2020\n" + "2019,1\n2021,2\n" * 4)
    policy = policy_of(tmp_path, header=True) | {
        "attributes": {"2019": {"role": "quasi-identifier"}, "2020": {"role": "insensitive"}}
    }
    run(build_policy(policy), options=OPTIONS)
    (tmp_path / "p.yml").write_text(json.dumps(policy))
    (tmp_path / "other.csv").write_text((tmp_path / "out.csv").read_text())
    assert call("verify", tmp_path / "p.yml").exit_code == 0
    assert call("verify", tmp_path / "p.yml", "--table", tmp_path / "other.csv").exit_code == 0
    file_of(tmp_path, "2021,1\n2021,2\n", "other.csv")
    lacking = call("verify", tmp_path / "p.yml", "--table", tmp_path / "other.csv")
    assert (lacking.exit_code, "2019" in lacking.stdout) == (3, True)


COLUMNS = {
    "risk": ("--qi", "{0}", "--population", "-", "{file}"),
    "verify": ("--qi", "{0}", "--k", "2"),
    "associations": ("--qi", "{0}", "--sensitive", "{1}", "-k", "2", "--confidence", "0.5"),
    "loss": ("{file}",),
}
SECOND = {"risk": "population-", "loss": "release-"}


def asked(command: str, path: Path | str, flag: str, first: str, second: str) -> list[str]:
    """A command on a file without a policy, which says of both its files what their first line is."""
    flags = [
        *([flag] if flag else []),
        *([flag.replace("header", f"{SECOND[command]}header")] if command in SECOND else []),
    ]
    options = [one.format(first, second, file=path) for one in COLUMNS[command]]
    return [command, str(path), *options, *(flags if flag else [])]


@pytest.mark.parametrize("command", COLUMNS)
def test_commands_without_a_policy_are_told_what_the_first_line_is(tmp_path: Path, command: str) -> None:
    path = file_of(tmp_path, "30,M\n41,F\n30,F\n41,M\n")
    refused = call(*asked(command, path, "", "column0", "column1"))
    assert (refused.exit_code, "--no-header" in refused.stderr) == (2, True)
    told = call(*asked(command, path, "--no-header", "column0", "column1"), "--json")
    assert told.exit_code == 0, told.stderr
    other = file_of(tmp_path, "column0,column1\n30,M\n41,F\n30,F\n41,M\n", "others.csv")
    expected = call(*asked(command, other, "", "column0", "column1"), "--json")
    assert told.stdout.replace("people.csv", "others.csv") == expected.stdout
    named = call(*asked(command, path, "--header", "30", "M"), "--json")
    assert named.exit_code in ((0, 3) if command == "verify" else (0,)), named.stderr


@pytest.mark.parametrize("command", SECOND)
def test_each_of_two_files_is_told_apart(tmp_path: Path, command: str) -> None:
    path = file_of(tmp_path, "30,M\n41,F\n30,F\n41,M\n")
    refused = call(*asked(command, path, "--no-header", "column0", "column1")[:-1])
    assert (refused.exit_code, "reads like data" in refused.stderr) == (2, True)
    other = file_of(tmp_path, "column0,column1\n30,M\n41,F\n30,F\n41,M\n", "other.csv")
    given = [
        str(other) if one == str(path) and place > 1 else one
        for place, one in enumerate(asked(command, path, "--no-header", "column0", "column1")[:-1])
    ]
    assert call(*given).exit_code == 0


@pytest.mark.parametrize("command", COLUMNS)
@pytest.mark.parametrize("flag", ["--header", "--no-header"])
def test_a_header_is_said_of_files_of_text_alone(tmp_path: Path, database_url: str, command: str, flag: str) -> None:
    path = tmp_path / "people.parquet"
    with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
        engine.execute(Statement("test", f"COPY (SELECT 1 AS a, 2 AS b FROM range(4)) TO '{path}'"))
    refused = call(*asked(command, path, flag, "a", "b"))
    assert (refused.exit_code, "header can't be said of" in refused.stderr) == (2, True)
    with connect(database_url, create=True) as engine:
        engine.execute(Statement("test", "CREATE TABLE people AS SELECT 1 AS a, 2 AS b"))
    name, _, *rest = asked(command, "people", flag, "a", "b")
    refused = call(name, database_url, "people", *rest)
    assert (refused.exit_code, "leave header out" in refused.stderr) == (2, True)
    (tmp_path / "policy.yml").write_text(json.dumps(policy_of(tmp_path)))
    second = [flag.replace("header", f"{SECOND[command]}header")] if command in SECOND else []
    for given in (flag, *second):
        refused = call(command, tmp_path / "policy.yml", given)
        assert (refused.exit_code, "all itself" in refused.stderr) == (2, True), given


@pytest.mark.parametrize("command", SECOND)
@pytest.mark.parametrize("flag", ["--header", "--no-header"])
def test_the_second_file_is_one_of_text_too(tmp_path: Path, database_url: str, command: str, flag: str) -> None:
    text, parquet = file_of(tmp_path, "a,b\n1,2\n1,2\n"), tmp_path / "people.parquet"
    with DuckDBEngine.connect("duckdb:///:memory:", OPTIONS) as engine:
        engine.execute(Statement("test", f"COPY (SELECT 1 AS a, 2 AS b FROM range(2)) TO '{parquet}'"))
    with connect(database_url, create=True) as engine:
        engine.execute(Statement("test", "CREATE TABLE people AS SELECT 1 AS a, 2 AS b"))
    named = [one.format("a", file=parquet) for one in COLUMNS[command]]
    second = flag.replace("header", f"{SECOND[command]}header")
    refused = call(command, text, *named, second)
    assert (refused.exit_code, "header can't be said of" in refused.stderr) == (2, True)
    named = [one.format("a", file="people") for one in COLUMNS[command]]
    refused = call(command, database_url, "people", *named, second)
    assert (refused.exit_code, "leave header out" in refused.stderr) == (2, True)


@pytest.mark.parametrize("flag", ["--header", "--no-header"])
def test_a_record_says_itself_what_its_files_hold(tmp_path: Path, flag: str) -> None:
    (tmp_path / "record.json").write_text("{}")
    refused = call("verify", "--record", tmp_path / "record.json", flag)
    assert (refused.exit_code, "leave --header out" in refused.stderr) == (2, True)
