"""Answers of dry runs are in the heads of templates, and their Python names no template."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, meta, nodes

from sqlanon.engines.duckdb.dialect import DuckDB
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.errors import EngineError
from sqlanon.runs import dry_run
from sqlanon.runs.dry_run.answers import FakeAnswers, Head, head_of
from sqlanon.runs.dry_run.given_columns import columns_defined, columns_of_query
from sqlanon.sql import DialectRenderer, Renderer, Statement
from tests.template_heads import FOLDER, needs, template_files

PYTHON = sorted(Path(dry_run.__file__).parent.glob("*.py"))
TEMPLATES = {file.partition(".")[0] for file in template_files()}
ANSWER = re.compile(r"In a dry run: (.*?)\.(?=\s|#)", re.DOTALL)
GIVES = re.compile(r"Gives: (.*?)\.(?=\s)", re.DOTALL)


class OneTemplate(Renderer):
    """A renderer that has one template, of which the head is all that counts."""

    def __init__(self, head: str) -> None:
        self.head = head

    def __call__(self, template: str, **values: Any) -> Statement:
        raise NotImplementedError

    def has_macro(self, name: str) -> bool:  # noqa: ARG002
        return False

    def source(self, template: str) -> str:  # noqa: ARG002
        return f"{{# A statement. {self.head} Needs: nothing. #}}\nSELECT 1"


def answers(sentence: str, columns: str, turn: int = 0, template: str = "a/b", **known: Any) -> list[tuple[Any, ...]]:
    """Answer a statement with such columns by a sentence about dry runs."""
    head = head_of(OneTemplate(f"In a dry run: {sentence}." if sentence else ""), template)
    head.require_columns(template, columns.split())
    return head.answer(turn, columns.split(), known)


def test_a_statement_gives_a_row_of_zeros_or_none_of_a_list() -> None:
    assert answers("", "n total") == [(0, 0)]
    assert answers("", "n total", template="a/list_cuts") == []
    assert answers("n = 2", "n total", template="a/list_cuts") == [(2, 0)]
    assert answers("no row", "n") == []


def test_a_head_answers_by_column_and_in_turns() -> None:
    assert answers("total = 1.5, n = run // 2", "n total", run=9) == [(4, 1.5)]
    assert answers("n = TRUE, total = NULL, label = 'a, b'", "n label total") == [(True, "a, b", None)]
    turns = [answers("n = 1; then no row; then n = 3", "n", turn) for turn in range(4)]
    assert turns == [[(1,)], [], [(3,)], [(1,)]]


def test_a_head_answers_rows_for_each_of_something() -> None:
    sentence = "level = -1; and for each one in levels: level = one.number, n = 2 ** one.number"
    levels = [{"number": 1}, {"number": 2}]
    assert answers(sentence, "level n", levels=levels) == [(-1, 0), (1, 2), (2, 4)]
    assert answers("for each one in levels if wanted: n = one", "n", levels=levels, wanted=False) == []


def test_a_head_answers_for_series() -> None:
    columns = "id dim_1 low_1 dim_2 low_2"
    assert answers("dim_0… = place, low_0… = bottom[place]", columns, bottom=[5, 6]) == [(0, 0, 5, 1, 6)]
    assert answers("id = 1, dim_0… = 2, all others = 9", columns) == [(1, 2, 9, 2, 9)]


def test_a_head_that_names_no_column_is_refused() -> None:
    with pytest.raises(EngineError, match="a/b: its head says what rows is in a dry run"):
        answers("rows = 1", "n")


def test_the_template_of_a_package_answers_by_its_head(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its own head, that of the dialect first, or that of what it includes."""
    package = tmp_path / "package_of_answers"
    (package / "sql_templates").mkdir(parents=True)
    (package / "__init__.py").touch()
    for name, text in {
        "find_step": "{# A step. In a dry run: step = 0.5. Needs: nothing. #}\nSELECT 1 AS step",
        "find_step.postgres": "{# A step. In a dry run: step = 2. Needs: nothing. #}\nSELECT 1 AS step",
        "find_all": '{# All. Needs: nothing. #}\n{% include "package_of_answers:find_step.sql.j2" %}',
    }.items():
        (package / "sql_templates" / f"{name}.sql.j2").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    answers = [
        head_of(DialectRenderer(dialect), f"package_of_answers:{name}").answer(0, ["step"], {})
        for dialect, name in (("duckdb", "find_step"), ("postgres", "find_step"), ("duckdb", "find_all"))
    ]
    assert answers == [[(0.5,)], [(2,)], [(0.5,)]]


def test_the_python_of_dry_runs_names_no_template() -> None:
    """Nor a folder of them, or the beginning of their names: so a new template needs no line there."""
    names = TEMPLATES | {name.rpartition("/")[2] for name in TEMPLATES if "_" in name}
    for path in PYTHON:
        texts = (node.value for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))) if is_text(node))
        for text in texts:
            assert text not in names, f"{path.name}: {text}"
            begins = len(text) > 1 and text.endswith(("/", "_")) and "/" in text
            assert not (begins and any(name.startswith(text) for name in TEMPLATES)), f"{path.name}: {text}"


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def heads() -> dict[str, Head]:
    """The heads that say what a statement answers in a dry run, by file."""
    said = {}
    for file in template_files():
        text = (FOLDER / file).read_text(encoding="utf-8")
        if sentence := ANSWER.search(text):
            said[file] = head_of(OneTemplate(f"In a dry run: {sentence[1]}."), file)
    return said


def test_heads_answer_by_columns_that_they_give() -> None:
    checked = 0
    for file, head in heads().items():
        gives = GIVES.search((FOLDER / file).read_text(encoding="utf-8"))
        if gives is None or "columns of" in gives[1]:
            continue
        given = set(" ".join(gives[1].split()).split(", "))
        named = {name for turn in head.turns for rows in turn for name in rows.values} - {"all others"}
        assert named <= given, f"{file}: {named - given}"
        checked += 1
    assert checked > 40


def test_heads_name_what_there_is() -> None:
    """Values that the template needs, or facts of the run."""
    facts = {*FakeAnswers.__dataclass_fields__, *vars(FakeAnswers)}
    for file, head in heads().items():
        for rows in (rows for turn in head.turns for rows in turn):
            known = needs(file) | {"run", "made", "place", "range", "NULL", "TRUE", "FALSE", rows.each}
            for expression in filter(None, (rows.among, *rows.values.values())):
                tree = Environment().parse("{{ " + expression + " }}")
                assert meta.find_undeclared_variables(tree) <= known, f"{file}: {expression}"
                of_run = (one for one in tree.find_all(nodes.Getattr) if one.node == nodes.Name("run", "load"))
                assert all(one.attr in facts for one in of_run), f"{file}: {expression}"


@pytest.mark.parametrize(
    ("query", "columns"),
    [
        ("SELECT 1 AS a, count(*), t.b FROM t", ["a", "", "b"]),
        ('WITH x AS (SELECT 1 AS n) SELECT "odd ""name"", from" FROM x', ['odd "name", from']),
        ("SELECT a IS DISTINCT FROM b AS differs, CASE WHEN a THEN 'x, y' END AS c FROM t", ["differs", "c"]),
        ("SELECT [1, 2] AS ends, extract(year FROM d) AS y -- it's, FROM\nUNION ALL SELECT 1, 2", ["ends", "y"]),
        ("SELECT s.*, 1 AS r FROM (SELECT a, (b) AS c FROM u) AS s JOIN v ON TRUE", ["a", "c", "r"]),
        ("SELECT * FROM t", ["*"]),
        ("SELECT `a``b`, /* withheld */ 3 AS n", ["a`b", "n"]),
        ("CREATE TABLE t AS SELECT x.a FROM x", ["a"]),
    ],
)
def test_columns_are_read_off_a_query(query: str, columns: list[str]) -> None:
    assert columns_of_query(query) == columns


def test_columns_are_read_off_definitions() -> None:
    text = 'CREATE TABLE "t" ("cost"\n    DECIMAL(9,2), "a, ""b""" TEXT, n INT, pairs DECIMAL(9,2)[], last BIGINT)'
    assert [column.name for column in columns_defined(text, DuckDB)] == ["cost", 'a, "b"', "n", "pairs", "last"]
    assert columns_defined("CREATE TABLE t AS SELECT (1) AS n", DuckDB) == []
    assert columns_defined("CREATE TEMPORARY VIEW t USING parquet OPTIONS ('path' 'p')", SparkSQL) == []
