"""Drawings of a lattice: every node, told apart without colour, in words too; the frontier where it is large."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sqlanon import explore
from sqlanon.methods.generalization.explore.explore_lattice import Exploration
from sqlanon.methods.generalization.explore.hasse import LEGEND
from sqlanon.methods.generalization.explore.picture import draw
from tests.run_support import OPTIONS, Database, duckdb_url, open_database

SVG = "{http://www.w3.org/2000/svg}"
TABLE = '"one"."main"."people"'
COLUMNS = {"age": "INTEGER", 'a <b> & "c"\x07': "VARCHAR(4)", "sex": "VARCHAR(9)"}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(duckdb_url(tmp_path / "one.duckdb")) as opened:
        yield opened


def _explored(database: Database, everything: bool = True, name: str | None = None, **more: Any) -> Exploration:
    rows = [(20 + i * 7 % 40, str(1000 + i * 13 % 37), "secret" if i % 2 else "f") for i in range(80)]
    table = database.create(COLUMNS, rows, name)
    kinds: list[Any] = [{"intervals": [5, 10]}, {"mask": "right"}, {"suppress": True}]
    roles = {n: {"role": "quasi-identifier", "hierarchy": kind} for n, kind in zip(COLUMNS, kinds, strict=True)}
    given = {"privacy": [{"model": "k-anonymity", "k": 3}], "algorithm": {"name": "optimal"}}
    return explore(database.policy(table, roles, **given | more), everything=everything, options=OPTIONS)


def test_every_generalization_is_drawn_with_what_is_known_of_it(database: Database) -> None:
    found = _explored(database, suppression=0.05)
    text = draw(found)
    root = ET.fromstring(text)
    groups = root.findall(f"{SVG}g")
    assert len(groups) == found.lattice.size
    labels = {group.findtext(f"{SVG}text") for group in groups}
    assert labels == {" ".join(map(str, node)) for node in found.lattice.nodes}
    titles = [group.findtext(f"{SVG}title") or "" for group in groups]
    assert sum("minimal" in title or "the best" in title for title in titles) == len(found.minimal)
    assert sum("the best" in title for title in titles) == 1
    satisfying = [t for t in titles if re.search("satisfies|the best", t)]
    assert len(satisfying) == len(found.anonymous)


@pytest.mark.parametrize("everything", [True, False])
def test_it_can_be_read_aloud_and_holds_names_but_no_values(database: Database, everything: bool) -> None:
    text = draw(_explored(database, everything, name="people"))
    root = ET.fromstring(text)
    assert root.get("role") == "img"
    assert root.get("aria-labelledby") == "title desc"
    assert root.findtext(f"{SVG}title") == f"Generalization lattice of {TABLE}"
    assert re.search(r"\d+ generalizations of age 0 to 3", root.findtext(f"{SVG}desc") or "")
    assert "a &lt;b&gt; &amp; " in text
    assert "secret" not in text


def test_what_is_known_shows_without_colour() -> None:
    plain = [(look.dashes, look.weight, look.is_round, look.fill == "#0a3a61") for look in LEGEND]
    assert len(set(plain)) == len(LEGEND)


def test_a_large_lattice_is_drawn_as_its_frontier(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sqlanon.methods.generalization.explore.picture.MOST_NODES", 10)
    found = _explored(database, suppression=0.05)
    root = ET.fromstring(draw(found))
    rows = [group.findtext(f"{SVG}title") or "" for group in root.findall(f"{SVG}g")]
    assert len(rows) == len(found.minimal) or len(rows) == len(found.minimal) + 1
    assert "the best of all" in rows[0]
    monkeypatch.setattr("sqlanon.methods.generalization.explore.picture.MOST_ROWS", 1)
    assert "more</text>" in draw(found)


def test_the_same_lattice_is_drawn_alike(database: Database) -> None:
    def drawn() -> str:
        return re.sub(r"t\d+", "t", draw(_explored(database)))

    assert drawn() == drawn()
