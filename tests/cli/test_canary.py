"""Canaries in the data, the password and a hierarchy's file: what is printed, logged, reported and recorded holds none.

What is made to show values of the data is left out: a release, its labels (`hierarchy show`), rules (`rules`,
`export`), and the tables of the catalog that hold rules, which are for those who may read the catalog.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.support import call
from tests.run_support import Row, open_database

pytestmark = pytest.mark.slow

CANARY = "Xq7Canary"
NUMBER = 86_420_975
COLUMNS = {
    "ssn": "VARCHAR(40)",
    "age": "INTEGER",
    "town": "VARCHAR(40)",
    "born": "DATE",
    "disease": "VARCHAR(40)",
    "pay": "INTEGER",
}
ATTRIBUTES: dict[str, Any] = {
    "ssn": {"role": "identifier"},
    "age": {"role": "quasi-identifier"},
    "town": {"role": "quasi-identifier", "hierarchy": {"csv": "towns.csv"}},
    "born": {"role": "quasi-identifier", "hierarchy": {"date": ["year", "decade"]}},
    "disease": {"role": "sensitive"},
    "pay": {"role": "insensitive"},
}
RULES = ("rules_", "jobs")  # tables that hold values of the data, as the documentation says
TOWNS = 4


def _rows(number: int) -> list[Row]:
    return [
        (
            f"{CANARY}s{i}",
            NUMBER + i * 7 % 40,
            f"{CANARY}t{i * 3 % TOWNS}",
            f"19{50 + i % 40}-03-0{1 + i % 9}",
            f"{CANARY}d{i // 3 % 5}",
            NUMBER + i,
        )
        for i in range(number)
    ]


def _write(directory: Path, name: str, url: str, **changes: Any) -> Path:
    """A policy whose URL has a canary for a password; servers of tests ask for none."""
    url = url.replace("//postgres@", f"//postgres:{CANARY}@")
    policy: dict[str, Any] = {
        "source": {"url": url, "table": "people"},
        "release": {"table": "people_released"},
        "attributes": ATTRIBUTES,
        "privacy": [
            {"model": "k-anonymity", "k": 4},
            {"model": "distinct-l-diversity", "attribute": "disease", "l": 2},
        ],
    }
    path = directory / f"{name}.yml"
    path.write_text(json.dumps(policy | changes), encoding="utf-8")
    return path


@pytest.fixture
def people(database_url: str, tmp_path: Path) -> str:
    """A database with a table of canaries, and files of hierarchies beside the policies."""
    with open_database(database_url) as database:
        database.create(COLUMNS, _rows(90), name="people")
        database.create(COLUMNS, _rows(6), name="newer")
    lines = [f"{CANARY}t{n};group {n % 2};*" for n in range(TOWNS + 1)]
    (tmp_path / "towns.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "few.csv").write_text("\n".join(lines[:2]) + "\n")
    return database_url


def _calls(url: str, directory: Path) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Commands, with the exit code that each must have."""
    good = _write(directory, "good", url)
    town = {"role": "quasi-identifier", "hierarchy": {"csv": "few.csv"}}
    levels = {"attributes": ATTRIBUTES | {"age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}}}}
    optimal = _write(directory, "optimal", url, algorithm={"name": "optimal"}, suppression=0.1, **levels)
    strict = [{"model": "recursive-l-diversity", "attribute": "disease", "c": 0.001, "l": 2}]
    yield 2, ("run", _write(directory, "few", url, attributes=ATTRIBUTES | {"town": town}), "--json")
    yield 2, ("check", _write(directory, "many", url, privacy=[{"model": "k-anonymity", "k": 999}]))
    yield 3, ("run", _write(directory, "strict", url, privacy=strict), "--json")
    yield 0, ("check", good, "--sql")
    yield 0, ("run", good, "--dry-run", "--json")
    yield 0, ("lattice", optimal)
    yield 0, ("run", good, "--json")
    yield 2, ("run", good)  # the release is there
    yield 0, ("run", optimal, "--replace", "--json")
    yield 0, ("verify", optimal)
    yield 0, ("sweep", good, "--k", "2,5", "--json")
    yield 3, ("verify", good, "--table", "people")  # raw values are no classes
    yield 0, ("runs", "--policy", good, "--json")
    yield 0, ("gc", "--policy", good)
    yield 0, ("utility", good, "--target", "disease", "--json")
    yield 0, ("loss", url, "people", "people_released")
    yield 2, ("loss", url, "people", "newer", "--by", "disease")


def _about_runs(runs: list[str], policy: Path, directory: Path) -> Iterator[tuple[int, tuple[object, ...]]]:
    """Commands about what was run before: a tree, and a generalization."""
    where = ("--policy", policy)
    for number, run in enumerate(runs):
        yield 0, ("show", run, "--steps", *where)
        yield 0, ("show", run, "--steps", "--json", *where)
        yield 0, ("report", run, "-o", directory / f"report{number}.html", *where)
        yield 0, ("freeze", run, "--name", f"job{number}", *where)
        yield 0, ("job", "run", f"job{number}", "--json", *where)
        yield 0, ("job", "show", f"job{number}", *where)
        yield 0, ("schedule", f"job{number}", "--at", "0 2 * * *", "--engine", "systemd", *where)
    yield 0, ("diff", *runs, "--json", *where)
    yield 3, ("apply", runs[0], "--to", "newer", "--out", "people_newer", "--on-violation", "error", *where)
    yield 0, ("jobs", "--json", *where)


def _carry_out(calls: Iterator[tuple[int, tuple[object, ...]]], texts: dict[str, str]) -> None:
    for code, arguments in calls:
        result = call(*arguments)
        assert result.exit_code == code, (arguments, result.output)
        texts[" ".join(map(str, arguments[:2]))] = result.output + result.stderr


@pytest.mark.either_engine
def test_no_canary_is_printed_logged_reported_or_recorded(
    people: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    texts: dict[str, str] = {}
    _carry_out(_calls(people, tmp_path), texts)
    with open_database(people) as database:
        found = database.sql("SELECT id FROM sqlanon.runs WHERE status = 'published' ORDER BY started")
    _carry_out(_about_runs([run for (run,) in found], tmp_path / "good.yml", tmp_path), texts)
    texts["log"] = caplog.text
    texts |= {path.name: path.read_text() for path in tmp_path.glob("*.html")} | _recorded(people)
    assert {"runs", "steps", "releases", "hierarchies", "report1.html"} <= texts.keys()
    assert [place for place, text in texts.items() if CANARY in text or str(NUMBER)[:-1] in text] == []


def _recorded(url: str) -> dict[str, str]:
    """The catalog's tables, as text."""
    with open_database(url) as database:
        tables = database.sql("SELECT table_name FROM information_schema.tables WHERE table_schema = 'sqlanon'")
        names = [name for (name,) in tables if not name.startswith(RULES)]
        return {name: str(database.sql(f"SELECT * FROM sqlanon.{name}")) for name in names}
