"""Heads of templates say which columns their statements give, `Gives: leaf, n, region.`, held against what runs send.

`python -m tests.test_template_columns --write` writes it into the heads of those templates that the runs here render.
Statements that only change or drop tables give none.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

import sqlglot
from sqlglot import exp

from tests.postgres_server import find_binaries, start
from tests.rendered_statements import COLUMNS, Rendered, statements_of_jobs, statements_of_runs
from tests.run_support import Database, duckdb_url, open_database
from tests.template_heads import FOLDER, WIDTH, template_files, with_head

_HEAD = re.compile(r"\A\{#(.*?)#\}", re.DOTALL)
_GIVES = re.compile(r"\s*\bGives: ([^.]*)\.")
_NUMBER = re.compile(r"(.*?)[0-9]+")
_TABLE = re.compile(r"\ACREATE [A-Z ]*TABLE (?:\"\w+\"\.)*\"(\w+)\"")
_NUMBERS = re.compile(r"[0-9]+")
_WORK = re.compile(r'"w_[0-9a-f]{8}_')  # as each run calls its work tables

_LITERAL = re.compile(r"\s*'(?:[^']|'')*'\S*")
IN_JOBS = "jobs/"
LEFT_OUT = ("catalog/", "engine/", "publish/")  # tables of the catalog, written out as they are, and those of engines


def columns_given(runs: Rendered, dialect: str) -> dict[str, list[str]]:
    """List what each template's statement gives: columns of the source and the release apart."""
    given: dict[str, list[str]] = {}
    released = {f"{name}{ending}" for name in COLUMNS for ending in ("", "_min", "_max")}
    parsed: dict[str, exp.Expression | None] = {}
    made: dict[str, list[str]] = {}  # by earlier runs too: hierarchies are kept
    for run in runs:
        columns: dict[str, list[str]] = {}
        for template, written in run:
            text = _WORK.sub('"w_', written)
            if (key := _NUMBERS.sub("", text)) not in parsed:  # rounds of a search differ in numbers
                parsed[key] = _parsed(text, dialect)
            if (statement := parsed[key]) is None:
                continue
            if key not in columns:
                columns[key] = _columns(statement, made)
            found = columns[key]
            made.update(dict.fromkeys(_TABLE.findall(text), found))
            listed = ("columns of the release" if name in released else name for name in found)
            given[template] = list(dict.fromkeys([*given.get(template, []), *listed]))
    return {template: _in_series(names) for template, names in given.items()}


def _parsed(text: str, dialect: str) -> exp.Expression | None:
    """A statement that gives columns; None for one that only changes or drops something, or before a query."""
    if not re.match(r"SELECT|WITH|CREATE [A-Z ]*(?:TABLE|VIEW)", text) or text.endswith(" AS"):
        return None
    return sqlglot.parse_one(text.replace(" ON COMMIT DROP", ""), dialect=dialect)


def _columns(statement: exp.Expression, made: dict[str, list[str]]) -> list[str]:
    """The names of the columns that a statement gives.

    made: the columns of tables that earlier statements of the run made.
    """
    query = statement.expression if isinstance(statement, exp.Create) else statement
    if isinstance(query, exp.Query):
        return _names(query, made)
    return [column.name for column in statement.find_all(exp.ColumnDef)]


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


def _file_of(template: str, dialect: str = "duckdb") -> str:
    files = (f"{template}{ending}.sql.j2" for ending in (f".{dialect}", ""))
    return next(file for file in files if (FOLDER / file).exists())


def said(file: str) -> list[str]:
    """The columns that the head of a template's file says, if it does."""
    head = _HEAD.match((FOLDER / file).read_text(encoding="utf-8"))
    gives = _GIVES.search(" ".join(head[1].split())) if head else None
    return gives[1].split(", ") if gives else []


def of_runs(runs: Rendered) -> dict[str, list[str]]:
    """Columns that the statements of runs give, by file; those of jobs apart."""
    given = columns_given(runs, "duckdb")
    return {
        _file_of(name): names
        for name, names in given.items()
        if "/" in name and not name.startswith((IN_JOBS, *LEFT_OUT))
    }


def of_jobs(jobs: Rendered) -> dict[str, list[str]]:
    """Columns that the statements of jobs give, by file."""
    given = columns_given(jobs, "postgres")
    return {_file_of(name, "postgres"): names for name, names in given.items() if name.startswith(IN_JOBS)}


def long_lines(runs: Rendered) -> set[str]:
    """The templates of statements with a line that is longer than one reads, but for those of one literal."""
    return {
        template
        for run in runs
        for template, text in run
        if any(len(line) > WIDTH and not _LITERAL.fullmatch(line) for line in text.split("\n"))
    }


def test_statements_of_runs_are_fit_to_be_read(tmp_path: Path) -> None:
    """Heads say the columns that they give, and no line is long."""
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        runs = statements_of_runs(database)
    assert long_lines(runs) == set()
    assert _heads(jobs=False) == of_runs(runs), "python -m tests.test_template_columns --write"


def test_statements_of_jobs_are_fit_to_be_read(postgres_database: Database) -> None:
    """Heads say the columns that they give, and no line is long."""
    jobs = statements_of_jobs(postgres_database)
    assert long_lines(jobs) == set()
    assert _heads(jobs=True) == of_jobs(jobs), "python -m tests.test_template_columns --write"


def _heads(*, jobs: bool) -> dict[str, list[str]]:
    files = (file for file in template_files() if file.startswith(IN_JOBS) == jobs)
    return {file: names for file in files if (names := said(file))}


def main() -> None:
    """List what statements give; write it into heads with `--write`."""
    binaries = find_binaries()
    assert binaries, "statements of jobs are for a PostgreSQL server"
    with tempfile.TemporaryDirectory() as place, open_database(duckdb_url(Path(place) / "t.duckdb")) as database:
        given = of_runs(statements_of_runs(database))
    with start(binaries) as server, server.temporary() as name, open_database(server.url(name)) as database:
        given |= of_jobs(statements_of_jobs(database))
    for file, names in sorted(given.items()):
        print(f"{file}: {', '.join(names)}")
        if "--write" in sys.argv[1:]:
            _write(file, names)


def _write(file: str, names: list[str]) -> None:
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
