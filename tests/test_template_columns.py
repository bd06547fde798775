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
from typing import NamedTuple

import sqlglot
from sqlglot import exp

from tests.postgres_server import find_binaries, start
from tests.rendered_statements import COLUMNS, OF_CLINICS, Rendered, statements_of_jobs, statements_of_runs
from tests.run_support import Database, duckdb_url, open_database
from tests.template_heads import FOLDER, WIDTH, template_files, with_head

_HEAD = re.compile(r"\A\{#(.*?)#\}", re.DOTALL)
_GIVES = re.compile(r"\s*\bGives: ([^.]*)\.")
_NUMBER = re.compile(r"(.*?)[0-9]+")
_TABLE = re.compile(r"\ACREATE [A-Z ]*TABLE (?:\"\w+\"\.)*\"(\w+)\"")
_NUMBERS = re.compile(r"[0-9]+")
_WORK = re.compile(r'"w_[0-9a-f]{8}_')  # as each run calls its work tables

_LITERAL = re.compile(r"\s*'(?:[^']|'')*'\S*")
_CROOKED = re.compile(r"(?:  )* \S|\s*$|.*\s$|[^']*\)(?:SELECT|FROM|JOIN|WHERE|GROUP|ORDER|UNION)\b")
_LONG = 60  # lines
_PARTS = re.compile(r"^ *(?:WITH (?:RECURSIVE )?)?\w+(?: \([^()]*\))?\s+AS (?:MATERIALIZED )?\(", re.MULTILINE)
_COMMENTED = re.compile(rf"{_PARTS.pattern}(?: |\s*)--", re.MULTILINE)
IN_JOBS = "jobs/"
# The templates whose statements are not yet fit to be read; these numbers may only fall.
ABBREVIATED = 13
UNCOMMENTED = 0
LEFT_OUT = (
    "catalog/",
    "engines/",
    "work/publish/",
)  # tables of the catalog, written out as they are, and those of engines


class Read(NamedTuple):
    """A statement of a run; `like`: its text without numbers; `parsed`: None where it gives no columns."""

    run: int
    template: str
    text: str
    like: str
    parsed: exp.Expression | None


def read(runs: Rendered, dialect: str) -> list[Read]:
    """Parse the statements of runs; of those that differ in numbers, as rounds of a search do, the first."""
    parsed: dict[str, exp.Expression | None] = {}
    found = []
    for number, run in enumerate(runs):
        for template, written in run:
            text = _WORK.sub('"w_', written)
            if (like := _NUMBERS.sub("", text)) not in parsed:
                parsed[like] = _parsed(text, dialect)
            found.append(Read(number, template, text, like, parsed[like]))
    return found


def _parsed(text: str, dialect: str) -> exp.Expression | None:
    """A statement that gives columns; None for one that only changes or drops something, or before a query."""
    if not re.match(r"SELECT|WITH|CREATE [A-Z ]*(?:TABLE|VIEW)", text) or text.endswith(" AS"):
        return None
    return sqlglot.parse_one(text.replace(" ON COMMIT DROP", ""), dialect=dialect)


def columns_given(statements: list[Read]) -> dict[str, list[str]]:
    """List what each template's statement gives: columns of the source and the release apart."""
    given: dict[str, list[str]] = {}
    released = {f"{name}{ending}" for name in (*COLUMNS, *OF_CLINICS) for ending in ("", "_min", "_max")}
    made: dict[str, list[str]] = {}  # by earlier runs too: hierarchies are kept
    columns: dict[tuple[int, str], list[str]] = {}
    for run, template, text, like, parsed in statements:
        if parsed is None:
            continue
        if (run, like) not in columns:
            columns[run, like] = _columns(parsed, made)
        found = columns[run, like]
        made.update(dict.fromkeys(_TABLE.findall(text), found))
        listed = ("columns of the release" if name in released else name for name in found)
        given[template] = list(dict.fromkeys([*given.get(template, []), *listed]))
    return {template: _in_series(names) for template, names in given.items()}


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
    sources = _sources(query)
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


def _sources(query: exp.Expression) -> list[exp.Expression]:
    """The relations that a query reads, and joins."""
    parts = [query.args.get("from_") or query.args.get("from"), *query.args.get("joins", [])]
    return [part.this for part in parts if part]


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


def of_runs(runs: list[Read]) -> dict[str, list[str]]:
    """Columns that the statements of runs give, by file; those of jobs apart."""
    given = columns_given(runs)
    return {
        _file_of(name): names
        for name, names in given.items()
        if "/" in name and not name.startswith((IN_JOBS, *LEFT_OUT))
    }


def of_jobs(jobs: list[Read]) -> dict[str, list[str]]:
    """Columns that the statements of jobs give, by file."""
    given = columns_given(jobs)
    return {_file_of(name, "postgres"): names for name, names in given.items() if name.startswith(IN_JOBS)}


def long_lines(statements: list[Read]) -> set[str]:
    """The templates of statements with a line that is longer than one reads, but for those of one literal."""
    return {
        one.template
        for one in statements
        if any(len(line) > WIDTH and not _LITERAL.fullmatch(line) for line in one.text.split("\n"))
    }


def abbreviated(statements: list[Read]) -> set[str]:
    """The templates of statements that join more than two relations, one of them by a name of one letter."""
    return {
        template
        for template, parsed in {one.like: (one.template, one.parsed) for one in statements}.values()
        if parsed is not None
        for query in parsed.find_all(exp.Select)
        if len(names := [part.alias_or_name for part in _sources(query)]) > 2 and min(map(len, names)) == 1
    }


def uncommented(statements: list[Read]) -> set[str]:
    """The templates of long statements with a part in their WITH, and no comment above or in its first line."""
    return {
        one.template
        for one in {one.like: one for one in statements}.values()
        if one.parsed is not None and one.text.count("\n") >= _LONG
        if len(_PARTS.findall(one.text)) > len(_COMMENTED.findall(one.text))
    }


def crooked(statements: list[Read]) -> set[str]:
    """The templates of statements with a line an odd number of spaces further in, or a clause glued to a bracket."""
    return {one.template for one in statements if any(_CROOKED.match(line) for line in one.text.split("\n"))}


def test_statements_of_runs_are_fit_to_be_read(tmp_path: Path) -> None:
    """Heads say the columns that they give, and no line is long."""
    with open_database(duckdb_url(tmp_path / "t.duckdb")) as database:
        runs = read(statements_of_runs(database), "duckdb")
    assert long_lines(runs) == set()
    assert crooked(runs) == set()
    assert len(abbreviated(runs)) <= ABBREVIATED, sorted(abbreviated(runs))
    assert len(uncommented(runs)) <= UNCOMMENTED, sorted(uncommented(runs))
    assert _heads(jobs=False) == of_runs(runs), "python -m tests.test_template_columns --write"


def test_statements_of_jobs_are_fit_to_be_read(postgres_database: Database) -> None:
    """Heads say the columns that they give, and no line is long."""
    jobs = read(statements_of_jobs(postgres_database), "postgres")
    assert long_lines(jobs) == set()
    assert crooked(jobs) == set()
    assert _heads(jobs=True) == of_jobs(jobs), "python -m tests.test_template_columns --write"


def _heads(*, jobs: bool) -> dict[str, list[str]]:
    files = (file for file in template_files() if file.startswith(IN_JOBS) == jobs)
    return {file: names for file in files if (names := said(file))}


def main() -> None:
    """List what statements give; write it into heads with `--write`."""
    binaries = find_binaries()
    assert binaries, "statements of jobs are for a PostgreSQL server"
    with tempfile.TemporaryDirectory() as place, open_database(duckdb_url(Path(place) / "t.duckdb")) as database:
        given = of_runs(read(statements_of_runs(database), "duckdb"))
    with start(binaries) as server, server.temporary() as name, open_database(server.url(name)) as database:
        given |= of_jobs(read(statements_of_jobs(database), "postgres"))
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
