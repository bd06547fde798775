"""Layout of statements: blank lines go, and nothing inside a literal, a quoted name or a comment changes."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon.sql import Identifier, RedactedValue, Text, expression, indent, listed, renderer
from sqlanon.support.folding import align, fold, lines_of
from tests.run_support import Database

ODD = ["a  \n\n b ", "\r", " \t\n", "it's\n\n--", '"\n\n"', "\x0b\x0c\x1c\u2028 \n \n", "--\n'", "/*\n\n*/", "a\n"]


@pytest.mark.parametrize("value", ODD)
def test_literals_and_names_are_what_they_were(database: Database, value: str) -> None:
    rows = expression("(SELECT {value} AS {name}) AS x", value=Text(value), name=Identifier(value))
    text = renderer(database.engine)("count_rows", table=rows + expression(" WHERE {n} = ?", n=Identifier(value))).text
    assert database.sql(text, [value]) == [(1,)]


def test_blank_lines_and_spaces_at_the_end_of_lines_go() -> None:
    rows = expression("t  \n\n\n  -- it's so  \n \nJOIN 'a \n\n b'  \n")
    assert (
        renderer("duckdb")("count_rows", table=rows).text
        == "SELECT count(*) AS n FROM t\n  -- it's so\nJOIN 'a \n\n b'"
    )


@pytest.mark.parametrize("value", ODD)
def test_lines_move_in_but_for_those_of_literals_and_names(database: Database, value: str) -> None:
    rows = expression("SELECT\n{value} AS {name} -- it's so\nWHERE TRUE", value=Text(value), name=Identifier(value))
    moved = indent(rows, 2, first=True)
    assert moved.startswith("  SELECT\n  '")
    assert moved.endswith("-- it's so\n  WHERE TRUE")
    assert database.sql(f"SELECT * FROM (\n{moved}\n) AS x") == [(value,)]


def test_names_numbers_and_nothing_are_listed() -> None:
    assert listed([Identifier("a"), 1, None, expression("b + 1")]) == '"a", 1, NULL, b + 1'
    assert listed([Identifier("a"), Identifier('b"')], "r") == 'r."a", r."b"""'
    with pytest.raises(TypeError):
        listed(["text"])


def test_long_lines_are_broken_within_few_brackets() -> None:
    text = "  WHERE aaa = bbb AND NOT (ccc = 1 OR ddd) AND e"
    assert fold(text, 38) == "  WHERE aaa = bbb\n      AND NOT (ccc = 1 OR ddd) AND e"
    assert fold(text, 100) == text
    assert fold("MESSAGE = 'One sentence, and it''s another of them';", 44, sentences=True) == (
        "MESSAGE = 'One sentence, and it''s another '\n    'of them';"
    )
    escaped = "E'One sentence, and another of them'"  # no engine but PostgreSQL lets it go on
    assert fold(f"a = {escaped}", 30, sentences=True) == f"a\n    =\n    {escaped}"
    names = 'SELECT "a b c d e f g h i j" AS "k l m n" -- a comment of several words'
    assert fold(names, 20).split("\n    ") == [
        "SELECT",
        '"a b c d e f g h i j"',
        'AS "k l m n"',
        "-- a comment of several words",
    ]


@pytest.mark.parametrize("value", [RedactedValue(0.1234), RedactedValue(-12345), RedactedValue("it's so")])
def test_values_that_records_hide_stay_whole(value: RedactedValue) -> None:
    many = expression(" + ").join([expression("{value}", value=value)] * 20)
    statement = renderer("duckdb")("count_rows", table=expression("t WHERE a = ") + many)
    assert max(map(len, statement.text.split("\n"))) <= 140
    assert statement.text.count(str(value)) == statement.record.count("/* withheld */ ?") == 20
    assert fold(statement.text, 5).count(str(value)) == 20


def moved_in(text: str) -> str:
    return "\n".join(align([line for line in lines_of(text) if line != "\n"]))


def test_lines_move_in_within_the_bracket_that_they_stand_in() -> None:
    case = "CASE\n  WHEN a = 'x\ny' THEN (\nSELECT b\n  FROM c\n)\nEND"
    assert moved_in(f"SELECT\n    {case} AS d, e\nFROM f") == (
        "SELECT\n    CASE\n      WHEN a = 'x\ny' THEN (\n          SELECT b\n            FROM c\n      )\n"
        "    END AS d, e\nFROM f"
    )
    assert moved_in('SELECT "("\n, 1 -- )\n, (/* ( */\n2)') == 'SELECT "("\n, 1 -- )\n, (/* ( */\n  2)'
    procedure = "BEGIN\n  IF (\na) THEN\nb;\n  END IF;\nEND"
    assert moved_in(procedure) == procedure
    assert renderer("duckdb")("count_rows", table=expression("(\nSELECT 1\n) AS x")).text == (
        "SELECT count(*) AS n FROM (\n    SELECT 1\n) AS x"
    )


PARTS = st.sampled_from(
    ["SELECT", "CASE", "END", "(", ")", "[", "]", "\n", "\n  ", "\n      ", "' (\n'", '"["', "-- (\n", "/* \n( */"]
)


@settings(max_examples=200, deadline=None)
@given(st.lists(PARTS, max_size=40))
def test_moved_lines_say_the_same(parts: list[str]) -> None:
    text = " ".join(parts)
    lines = [line for line in lines_of(text) if line != "\n"]
    aligned = align(lines)
    assert [line.lstrip(" ") for line in aligned] == [line.lstrip(" ") for line in lines]
    assert align(aligned) == aligned


WORDS = st.sampled_from(
    ["SELECT", "AND", "=", "(", ")", "CASE", "END", "a.b,", "'it''s'", "'a sentence of several words'", '"a b"', "'\n'"]
)


@settings(max_examples=50, deadline=None)
@given(st.lists(WORDS, min_size=1, max_size=60), st.integers(30, 60))
def test_broken_lines_say_the_same(words: list[str], width: int) -> None:
    text = "  " + " ".join(words)
    folded = fold(text, width, sentences=True)
    assert re.sub(r"\n +", " ", re.sub(r" '\n +'", " ", folded)) == text
    assert all(folded.count(whole) == text.count(whole) for whole in ('"a b"', "'it''s'", "'\n'"))
    assert all(len(line) <= width for line in folded.split("\n")) or "'\n'" in words
