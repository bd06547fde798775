"""Values put together: their union and nothing else, at every site, whoever has them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from sqlanon.engines import connect
from sqlanon.errors import PolicyError, ProtectionError
from sqlanon.methods.generalization.federation import unite_values
from sqlanon.methods.generalization.federation.comparisons import Threshold
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.shares import Sharing
from sqlanon.methods.generalization.federation.unite_values import Union, list_lacking, require_fit, unite
from sqlanon.policy import Hierarchy
from sqlanon.sql import Relation
from tests.methods.generalization.federation.sites import Sites, attributes, random_rows
from tests.methods.generalization.federation.support import NAMES, WAITING, needs_federation
from tests.methods.generalization.federation.threads import Room, record
from tests.run_support import Database, duckdb_url

ODD = ["", "Köln", "a\0b", "O'Hara", "x" * 240, "ß" * 120, "🙂"]
VALUES = st.sampled_from([*ODD, *map(str, range(30))])


def united(owned: list[set[str]]) -> list[Any]:
    return Room(len(owned)).run(lambda party: Union(Sharing(party)).of(owned[party.place]))


@given(st.lists(st.sets(VALUES), min_size=3, max_size=4))
@settings(max_examples=10, deadline=None)
def test_every_site_learns_the_union(owned: list[set[str]]) -> None:
    """With few slots, so that values of one site and of several meet in them."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(unite_values, "SLOTS", 64)
        assert united(owned) == [sorted(set().union(*owned))] * len(owned)


def test_who_has_a_value_changes_nothing_that_is_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values, slots and sizes of messages are the same whether one site has all values, or all have them."""
    monkeypatch.setattr(unite_values, "SLOTS", 16)
    values = {"Ulm", "Linz", "Kiel", "Bonn", "Riga", "Oslo", "Rom"}
    seen = []
    for owned in ([values, set(), set()], [values, values, values], [{"Ulm", "Rom"}, values - {"Ulm"}, {"Kiel"}]):
        opened: list[Any] = []
        room = Room(3)
        with monkeypatch.context() as patched:
            for owner, name in ((Threshold, "find_large"), (Union, "_find_agreed"), (Union, "_values")):
                record(patched, owner, name, opened)
            room.run(lambda party, owned=owned: Union(Sharing(party)).of(owned[party.place]))
        seen.append((sorted(map(str, opened)), [len(sent[0][1]) for sent in room.sent]))
    assert seen[0] == seen[1] == seen[2]


def test_marks_of_different_values_are_opened_times_a_number_at_random(monkeypatch: pytest.MonkeyPatch) -> None:
    """The variance itself would tell at how many sites a value is: of equal values it differs from run to run."""
    monkeypatch.setattr(unite_values, "SLOTS", 1)
    opened: list[list[int]] = []
    for _ in range(2):
        seen: list[Any] = []
        with monkeypatch.context() as patched:
            patched.setattr(unite_values, "_MOST_ROUNDS", 1)
            record(patched, Sharing, "open", seen)
            ended = Room(3).run(lambda party: Union(Sharing(party)).of({"Ulm" if party.place else "Rom"}))
        assert {type(error) for error in ended} == {ProtectionError}
        opened.append([int(one) for _, numbers in seen for one in numbers])
    assert all(all(one[3:]) for one in opened)  # the first tell that the slot is used
    assert set(opened[0][3:]).isdisjoint(opened[1][3:])


def test_too_many_or_too_long_values_are_refused() -> None:
    with pytest.raises(PolicyError, match="Column 'city' has 8,193 values that its hierarchy lacks, and 8,192"):
        require_fit(list(map(str, range(8193))), "city")
    with pytest.raises(PolicyError, match="more than 240 bytes") as caught:
        require_fit(["canary" * 50], "city")
    assert "canary" not in str(caught.value)


def test_values_that_a_hierarchy_lacks_are_listed(database: Database) -> None:
    """Of text and numbers, each once, as the hierarchy would write them; NULL is none."""
    rows = [("Ulm", 1), ("Rom", 2), ("Rom", 2), (None, None), ("rom", 3)]
    table = database.create({"odd city": "varchar(9)", "n": "integer"}, rows)
    mappings = {"odd city": {"Ulm": "south"}, "n": {"2": "even"}}
    for column, lacking in (("odd city", ["Rom", "rom"]), ("n", ["1", "3"])):
        with connect(database.url) as engine:
            source = engine.resolve(Relation(table))
            assert source is not None
            assert sorted(list_lacking(engine, source, column, Hierarchy(mapping=mappings[column]))) == lacking


def test_another_hierarchy_is_refused() -> None:
    """Before any value is shared."""

    def part(party: Party) -> Any:
        return unite(party, ["Rom"], "city", "one" if party.place else "other")

    errors = Room(3).run(part)
    assert {type(error) for error in errors} == {PolicyError}
    assert "in the hierarchy of column 'city'" in str(errors[0])


@needs_federation
def test_sites_are_commands(tmp_path: Path) -> None:
    """Each site is one command; all print the values that the hierarchy lacks anywhere."""
    urls = {name: duckdb_url(tmp_path / f"{name}.duckdb") for name in (*NAMES, "union")}
    sites = Sites(tmp_path, urls, random_rows(2, 60))
    known = {"city": {"role": "quasi-identifier", "hierarchy": {"mapping": {"Ulm": ["south"], "Kiel": ["north"]}}}}
    started = []
    for name in NAMES:
        file = tmp_path / f"{name}.yml"
        with file.open("w") as written:
            YAML().dump(sites.policy(name, attributes=attributes() | known), written)
        place = [str(sites.federation.plan(name)), str(file), "--site", name, "--key", str(sites.federation.keys[name])]
        command = [sys.executable, "-m", "sqlanon", "federate", "union", *place, "--column", "city"]
        started.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    ended = [one.communicate(timeout=WAITING) for one in started]
    assert {output for output, _ in ended} == {"Bonn\nLinz\nRiga\n"}, ended
