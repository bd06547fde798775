"""Layout of statements: blank lines go, and nothing inside a literal, a quoted name or a comment changes."""

from __future__ import annotations

import pytest

from sqlanon.sql import Identifier, Text, expression, indent, renderer
from tests.run_support import Database

ODD = ["a  \n\n b ", "\r", " \t\n", "it's\n\n--", '"\n\n"', "\x0b\x0c\x1c\u2028 \n \n", "--\n'", "/*\n\n*/", "a\n"]


@pytest.mark.parametrize("value", ODD)
def test_literals_and_names_are_what_they_were(database: Database, value: str) -> None:
    rows = expression("(SELECT {value} AS {name}) AS x", value=Text(value), name=Identifier(value))
    text = renderer(database.engine)("count_rows", table=rows + expression(" WHERE {n} = ?", n=Identifier(value))).text
    assert database.sql(text, [value]) == [(1,)]


def test_blank_lines_and_spaces_at_the_end_of_lines_go() -> None:
    rows = expression("t  \n\n\n  -- it's so  \n \nJOIN 'a \n\n b'  \n")
    assert renderer("duckdb")("count_rows", table=rows).text == "SELECT count(*) FROM t\n  -- it's so\nJOIN 'a \n\n b'"


@pytest.mark.parametrize("value", ODD)
def test_lines_move_in_but_for_those_of_literals_and_names(database: Database, value: str) -> None:
    rows = expression("SELECT\n{value} AS {name} -- it's so\nWHERE TRUE", value=Text(value), name=Identifier(value))
    moved = indent(rows, 2, first=True)
    assert moved.startswith("  SELECT\n  '")
    assert moved.endswith("-- it's so\n  WHERE TRUE")
    assert database.sql(f"SELECT * FROM (\n{moved}\n) AS x") == [(value,)]
