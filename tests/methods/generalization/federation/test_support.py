"""Support across tables of the same persons, against counting their join."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest

from sqlanon.engines import connect
from sqlanon.errors import AccessError, PolicyError
from sqlanon.methods.generalization.federation.federation_plan import load_plan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.support import Marks, count_support, multiply_marks, read_marks
from sqlanon.policy.loading import build_policy
from sqlanon.sql import Relation
from tests.methods.generalization.federation import threads
from tests.methods.generalization.federation.support import NAMES, WAITING, Federation, needs_federation
from tests.methods.generalization.federation.threads import Room
from tests.run_support import Database, duckdb_url, open_database

COLUMNS = {"person id": "varchar(9)", "age": "integer", "job": "varchar(9)"}
THREE = np.ones(3, np.uint64)
ROLES = {"person id": "identifier", "age": "quasi-identifier", "job": "sensitive"}


@pytest.mark.parametrize("sites", [3, 5])
def test_the_support_is_that_of_the_join(sites: int) -> None:
    """Of two to five sites with marks; the others hold shares only."""
    draw = random.Random(sites)
    for having in range(2, sites + 1):
        marks = [np.array([draw.random() < 0.7 for _ in range(40)], np.uint64) for _ in range(having)]
        given = [Marks("same", one) for one in marks] + [None] * (sites - having)
        counted = Room(sites).run(lambda party, given=given: multiply_marks(party, given[party.place]))
        assert counted == [int(np.prod(marks, axis=0).sum())] * sites


def test_sites_in_memory_wait_for_one_another_however_slowly_boxes_are_made(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads that each made the box of a pair of sites would lose a message, and wait for it."""

    class SlowQueue(Queue[Any]):
        def __init__(self) -> None:
            time.sleep(0.01)
            super().__init__()

    monkeypatch.setattr(threads, "Queue", SlowQueue)
    monkeypatch.setattr(threads, "WAITING", 5)
    assert Room(3).run(lambda party: party.tell(party.place, "")) == [[0, 1, 2]] * 3


def test_only_the_support_is_opened() -> None:
    """The last exchange alone is the same for all sites, and is one number."""
    room = Room(3)
    marks = Marks("same", np.ones(30, np.uint64))
    room.run(lambda party: multiply_marks(party, marks if party.place else None))
    later = room.sent[2:]  # after digests of the plan, and of persons
    assert [len(set(sent[1])) == 1 for sent in later] == [False] * (len(later) - 1) + [True]
    assert len(later[-1][1][0]) == 4


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ([Marks("a", THREE), None, None], "of two sites at least"),
        ([Marks("a", THREE), Marks("a", THREE, are_chosen=False), None], "of two sites at least"),
        (
            [Marks("a", THREE), Marks("b", THREE), None],
            "'site1' are not those at 'site0'",
        ),
    ],
)
def test_other_persons_are_refused(given: list[Marks | None], sentence: str) -> None:
    def part(party: Party) -> Any:
        return multiply_marks(party, given[party.place])

    for error in Room(3).run(part):
        assert isinstance(error, PolicyError)
        assert sentence in str(error)


@pytest.mark.parametrize("message", [b"[1]", b'["same", 3]', b'["same", -1, true]', b"7", b'{"a": 1}'])
def test_a_site_of_other_words_is_refused_by_name(message: bytes) -> None:
    """One of another version, or one that does not run the program."""

    def other(place: int, number: int, sent: list[bytes]) -> list[bytes]:
        heard, _ = json.loads(sent[0]) if (place, number) == (1, 1) else ("", None)
        return [b'["%s", %s]' % (heard.encode(), message)] * 3 if heard else sent

    room = Room(3, other)
    for error in room.run(lambda party: multiply_marks(party, Marks("same", THREE))):
        assert isinstance(error, AccessError)
        assert "What 'site1' told of its persons can't be read" in str(error)


@pytest.mark.parametrize("told", [4, 2**62])
def test_more_persons_than_the_plan_has_cells_are_refused(told: int) -> None:
    """Also at a site without a table, which would mark as many as it is told."""
    many = Marks("same", np.broadcast_to(np.uint64(1), told)) if told < 10 else None

    def lie(_place: int, number: int, sent: list[bytes]) -> list[bytes]:
        return [one.replace(b", 3, true", b", %d, true" % told) for one in sent] if number == 1 else sent

    room = Room(3, lie, most_cells=3)
    for error in room.run(
        lambda party: multiply_marks(party, None if party.place == 2 else many or Marks("same", THREE))
    ):
        assert isinstance(error, PolicyError)
        assert f"There are {told:,} persons" in str(error)
        assert "most_cells" in str(error)


def test_marks_are_in_the_order_of_identifiers(database: Database) -> None:
    """Whatever the order of the rows; NULL satisfies no condition, and identifiers must be a row's own."""
    rows = [("b", 30, "nurse"), ("a", 25, "nurse"), ("é", None, "nurse"), ("c", 28, "O'Hara")]
    table, again = database.create(COLUMNS, rows), database.create(COLUMNS, rows[::-1])
    doubled = database.create(COLUMNS, [*rows, ("a", 1, "x")])
    policy = build_policy(
        {
            "source": {"url": database.url, "table": table},
            "release": {"table": "r"},
            "attributes": {name: {"role": role} for name, role in ROLES.items()},
            "privacy": [{"model": "k-anonymity", "k": 2}],
        }
    )
    with connect(database.url) as engine:

        def read(name: str, where: str) -> Marks:
            source = engine.resolve(Relation(name))
            assert source is not None
            return read_marks(engine, source, policy, "person id", where)

        marks = read(table, "age between 25 and 28")
        assert marks.numbers.tolist() == [1, 0, 1, 0]
        assert read(again, "age between 25 and 28").persons == marks.persons
        assert read(table, "job = 'nurse' and age >= 25").numbers.tolist() == [1, 1, 0, 0]
        assert read(table, "").numbers.tolist() == [1, 1, 1, 1]
        for name, where, sentence in (
            (doubled, "", "some value in several rows"),
            (table, "\"person id\" = 'a'", "'person id' is no quasi-identifier"),
            (table, "salary > 3", "'salary' is no quasi-identifier"),
        ):
            with pytest.raises(PolicyError, match=sentence):
                read(name, where)


@needs_federation
def test_sites_are_commands(tmp_path: Path) -> None:
    """Two with tables of the same persons, and a third that holds shares; wrong commands are refused before."""
    federation = Federation(tmp_path)
    tables = {"north": ("job", ["nurse", "cook", "nurse", None]), "south": ("age", [25, 28, 31, 29])}
    wheres = {"north": "job = 'nurse'", "south": "age < 30"}
    started = []
    for name in NAMES:
        place = [str(federation.plan(name)), "--site", name, "--key", str(federation.keys[name])]
        if name in tables:
            column, values = tables[name]
            url = duckdb_url(tmp_path / f"{name}.duckdb")
            with open_database(url) as database:
                rows = [(f"p{number}", value) for number, value in enumerate(values)]
                database.create({"person": "varchar(9)", column: COLUMNS[column]}, rows, "persons")
            policy = {
                "source": {"url": url, "table": "persons"},
                "release": {"table": "r"},
                "attributes": {"person": {"role": "identifier"}, column: {"role": "quasi-identifier"}},
                "privacy": [{"model": "k-anonymity", "k": 2}],
            }
            file = tmp_path / f"{name}.json"
            file.write_text(json.dumps(policy))
            place += ["--policy", str(file), "--id", "person", "--where", wheres[name]]
        command = [sys.executable, "-m", "sqlanon", "federate", "support", *place]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    ended = [one.communicate(timeout=WAITING) for one in started]
    assert [(output, one.returncode) for (output, _), one in zip(ended, started, strict=True)] == [("1\n", 0)] * 3, (
        ended
    )
    with pytest.raises(PolicyError, match="name the policy"):
        count_support(load_plan(federation.plan("west")), None, "west", federation.keys["west"], where="age < 30")
