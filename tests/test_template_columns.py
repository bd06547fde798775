"""Heads of templates say which columns their statements give, `Gives: leaf, n, region.`, held against what runs send.

`python -m tests.test_template_columns --write` writes it into the heads of those templates of `FOLDERS` that the runs
here render. Statements that only change or drop tables give none.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlglot
from sqlglot import exp

from sqlanon.sql import Renderer, Statement
from tests.run_support import Database, anonymize, duckdb_url, open_database
from tests.template_heads import FOLDER, template_files, with_head

FOLDERS = ("encoding", "lattice", "measures", "specialization", "staging", "tree", "verify")
_HEAD = re.compile(r"\A\{#(.*?)#\}", re.DOTALL)
_GIVES = re.compile(r"\s*\bGives: ([^.]*)\.")
_NUMBER = re.compile(r"(.*?)[0-9]+")
_TABLE = re.compile(r"\ACREATE [A-Z ]*TABLE (?:\"\w+\"\.)*\"(\w+)\"")
_NUMBERS = re.compile(r"[0-9]+")

QUASI = {"role": "quasi-identifier"}
COLUMNS = {
    "age": "INTEGER",
    "zipcode": "VARCHAR",
    "job": "VARCHAR",
    "ward": "VARCHAR",
    "admitted": "DATE",
    "cost": "DECIMAL(9,2)",
    "income": "DOUBLE PRECISION",
    "weight": "INTEGER",
    "height": "INTEGER",
    "disease": "VARCHAR",
    "days": "INTEGER",
}
JOBS = {"nurse": ["health", "*"], "doctor": ["health", "*"], "clerk": ["office", "*"], "sales": ["office", "*"]}
DISEASES = {"flu": ["airway", "*"], "burn": ["skin", "*"], "rash": ["skin", "*"]}
KEPT: dict[str, Any] = dict.fromkeys(COLUMNS, "insensitive") | {
    "disease": {"role": "sensitive"},
    "days": {"role": "sensitive"},
}
SHOWN = {
    "age": QUASI | {"top": {"quantile": 0.9}},
    "job": QUASI,
    "zipcode": QUASI | {"sets": "range"},
    "cost": QUASI | {"show": "mean"},
    "income": QUASI | {"show": "midpoint"},
    "weight": QUASI | {"show": "bounds"},
    "height": QUASI | {"show": "mean", "nulls": "unknown"},
}
LEVELED = {
    "age": QUASI | {"hierarchy": {"intervals": [5, 20]}},
    "zipcode": QUASI | {"hierarchy": {"mask": "right"}},
    "job": QUASI | {"hierarchy": {"mapping": JOBS}},
    "admitted": QUASI | {"hierarchy": {"date": ["month", "year"]}},
}
DIVERSE = [{"model": "k-anonymity", "k": 3}, {"model": "distinct-l-diversity", "attribute": "disease", "l": 2}]
POLICIES: list[dict[str, Any]] = [
    {"attributes": KEPT | SHOWN, "privacy": DIVERSE},
    {
        "attributes": KEPT | SHOWN,
        "privacy": DIVERSE[:1],
        "ranges": "cuts",
        "algorithm": {"name": "rothko-t", "split": "information-gain", "target": "disease"},
    },
    {
        "attributes": KEPT | LEVELED,
        "privacy": DIVERSE,
        "algorithm": {
            "name": "rothko-s",
            "sample": 60,
            "exact_below": 20,
            "split": "information-gain",
            "target": "disease",
        },
    },
    {
        "attributes": KEPT | LEVELED,
        "privacy": DIVERSE,
        "algorithm": {"name": "optimal"},
        "suppression": 0.3,
        "suppressed": "star",
    },
    {
        "attributes": KEPT
        | {name: LEVELED[name] for name in ("age", "job")}
        | {"disease": {"role": "sensitive", "hierarchy": {"mapping": DISEASES}}},
        "privacy": [{"model": "t-closeness", "attribute": "disease", "distance": "hierarchical", "t": 0.4}, DIVERSE[0]],
        "algorithm": {"name": "incognito"},
        "suppression": 0.3,
    },
    {
        "attributes": KEPT | LEVELED,
        "privacy": DIVERSE[:1],
        "algorithm": {"name": "top-down", "quality": "information-gain", "target": "disease"},
    },
]


def rows() -> Iterator[tuple[Any, ...]]:
    """Yield rows that depend on their number alone, with NULLs."""
    for n in range(150):
        job, day = list(JOBS)[n % 7 % 4], f"20{10 + n % 3}-0{1 + n % 9}-15"
        disease = ("flu", "burn", "rash", None)[n % 5 % 4]
        quasi = (20 + n * 7 % 50, str(10000 + n * 37 % 90), job, "AB"[n % 2], day, n % 80 + 0.25, n * 1.5)
        yield (*quasi, 50 + n % 40, None if n % 11 == 0 else 150 + n % 30, disease, n % 9)


def columns_given(database: Database, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Run the policies, and list what each template's statement gives: columns of the source and the release apart."""
    given: dict[str, list[str]] = {}
    table = database.create(COLUMNS, list(rows()))
    released = {f"{name}{ending}" for name in COLUMNS for ending in ("", "_min", "_max")}
    made: dict[str, list[str]] = {}
    parsed: dict[str, list[str]] = {}
    render = Renderer.__call__

    def listening(self: Renderer, template: str, **values: Any) -> Statement:
        statement = render(self, template, **values)
        if not template.startswith(tuple(f"{folder}/" for folder in FOLDERS)):
            return statement
        if (key := _NUMBERS.sub("", statement.text)) not in parsed:  # rounds of a search are alike
            parsed[key] = _columns(statement.text, made)
        if found := parsed[key]:
            made.update(dict.fromkeys(_TABLE.findall(statement.text), found))
            listed = list(dict.fromkeys("columns of the release" if name in released else name for name in found))
            known = given.setdefault(template, listed)
            given[template] = list(dict.fromkeys([*known, *listed]))
        return statement

    monkeypatch.setattr(Renderer, "__call__", listening)
    for policy in POLICIES:
        parsed.clear()
        anonymize(database.policy(table, **policy), replace=True)
    monkeypatch.undo()
    return {template: _in_series(names) for template, names in given.items()}


def _columns(text: str, made: dict[str, list[str]]) -> list[str]:
    """The names of the columns that a statement gives, none where it only changes or drops something.

    made: the columns of tables that earlier statements made.
    """
    if not re.match(r"SELECT|WITH|CREATE [A-Z ]*(?:TABLE|VIEW)", text):
        return []
    statement = sqlglot.parse_one(text, dialect="duckdb")
    query = statement.expression if isinstance(statement, exp.Create) else statement
    if isinstance(query, exp.Query):
        names = _names(query, made)
    else:
        names = [column.name for column in statement.find_all(exp.ColumnDef)]
    return names


def _names(query: exp.Query, made: dict[str, list[str]]) -> list[str]:
    """The names of a query's columns, also of those that `*` takes from elsewhere; `?` for one without a name."""
    made = dict(made)
    for part in query.ctes:
        made[part.alias] = [column.name for column in part.args["alias"].columns] or _names(part.this, made)
    if isinstance(query, exp.Subquery):
        return _names(query.this, made)
    if isinstance(query, exp.SetOperation):
        return _names(query.left, made)
    sources = [
        found.this
        for found in [query.args.get("from_") or query.args.get("from"), *query.args.get("joins", [])]
        if found
    ]
    names: list[str] = []
    for column in query.selects:
        if not column.is_star:
            names.append(column.output_name or "?")
            continue
        wanted = column.table if isinstance(column, exp.Column) else ""
        for source in sources:
            if wanted in ("", source.alias_or_name):
                names += source.alias_column_names or _names_of(source, made)
    return names


def _names_of(source: exp.Expression, made: dict[str, list[str]]) -> list[str]:
    """The names of the columns of what a statement reads from."""
    return _names(source, made) if isinstance(source, exp.Query) else made.get(source.name, ["columns of its source"])


def _in_series(names: list[str]) -> list[str]:
    """Names with `c0…` for `c0`, `c1` and so on."""
    series: dict[str, list[str]] = defaultdict(list)
    for name in names:
        numbered = _NUMBER.fullmatch(name)
        series[f"{numbered[1]}0…" if numbered else name].append(name)
    return [key if key.endswith("…") else found[0] for key, found in series.items()]


def _file_of(template: str) -> str:
    files = (f"{template}{dialect}.sql.j2" for dialect in (".duckdb", ""))
    return next(file for file in files if (FOLDER / file).exists())


def said(file: str) -> list[str]:
    """The columns that the head of a template's file says, if it does."""
    head = _HEAD.match((FOLDER / file).read_text(encoding="utf-8"))
    gives = _GIVES.search(" ".join(head[1].split())) if head else None
    return gives[1].split(", ") if gives else []


def test_heads_say_what_statements_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        given = columns_given(database, monkeypatch)
    sent = {_file_of(template): names for template, names in given.items()}
    heads = {file: names for file in template_files() if (names := said(file))}
    assert heads == sent, "python -m tests.test_template_columns --write"


def main() -> None:
    """List what statements give; write it into heads with `--write`."""
    with tempfile.TemporaryDirectory() as place, open_database(duckdb_url(Path(place) / "t.duckdb")) as database:
        given = columns_given(database, pytest.MonkeyPatch())
    for template, names in sorted(given.items()):
        print(f"{template}: {', '.join(names)}")
        if "--write" in sys.argv[1:]:
            _write(template, names)


def _write(template: str, names: list[str]) -> None:
    file = _file_of(template)
    text = (FOLDER / file).read_text(encoding="utf-8")
    head = _HEAD.match(text)
    assert head
    purpose = _GIVES.sub("", head[1])
    before, needs, after = purpose.partition("Needs: ")
    sentence = f"{before.rstrip()}\n   Gives: {', '.join(names)}.\n   {needs}{after}"
    (FOLDER / file).write_text("{#" + sentence + "#}" + text[head.end() :], encoding="utf-8")
    (FOLDER / file).write_text(with_head(file), encoding="utf-8")


if __name__ == "__main__":
    main()
