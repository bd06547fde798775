"""Results as the catalog keeps them: versions, what is lacking, what is damaged."""

from __future__ import annotations

import dataclasses
import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from sqlanon.errors import SqlanonError
from sqlanon.results.records import STEPS, VERSION, read_record, upcast, write_record
from sqlanon.results.search_facts import LatticeFacts, SampledTreeFacts, TopDownFacts, TreeFacts, kind_of
from tests.recorded.runs import comparable, create_source, least_record, policy
from tests.rules_support import apply
from tests.run_support import OPTIONS, Database, run

pytestmark = pytest.mark.either_engine

WRITTEN: dict[str, Any] = json.loads(
    lzma.decompress((Path(__file__).parent.parent / "recorded" / "v1" / "results.json.xz").read_bytes())
)
EVERY = [(engine, name) for engine, results in WRITTEN.items() for name in results]
CARRIED_OUT = ("mondrian", "regression", "sampled", "starred", "passes", "top-down")


def recorded(engine: str, name: str) -> dict[str, Any]:
    """A record of version 1, with the parts that the file leaves out."""
    result = WRITTEN[engine][name]
    return {**result, "seconds": dict.fromkeys(result["seconds"], 0.5), "catalog": {"url": "u", "schema": "s"}}


@pytest.mark.parametrize(("engine", "name"), EVERY)
def test_a_record_of_version_1_is_read_whole(engine: str, name: str) -> None:
    record = recorded(engine, name)
    result = read_record(json.dumps(record))
    assert json.dumps(result.as_json(), sort_keys=True) == json.dumps(record, sort_keys=True)
    assert read_record(write_record(result)) == result


@pytest.mark.parametrize("name", [*CARRIED_OUT, "apply mondrian"])
def test_json_has_the_fields_that_it_had(database: Database, name: str) -> None:
    """But for the number of statements, which is the engine's business, and the unit, which later versions say too.

    The bars of columns with a taxonomy are those of its groups since.
    """
    create_source(database)
    result = run(policy(name.removeprefix("apply "), database.url), options=OPTIONS)
    if name.startswith("apply"):
        result = apply(database, result.run, "people", "mondrian_again")
    shown, written = comparable(result.as_json()), WRITTEN[database.engine][name]
    assert shown["subject"].pop("unit") == "rows"
    for one in (shown, written):
        one["algorithm"] = {**one["algorithm"], "statements": 0}
        one["warnings"] = []  # of earlier releases of the table
    drawn = [one.get("distributions", {"columns": []})["columns"] for one in (shown, written)]
    grouped = [column["name"] for column in drawn[0] if column["by"] == "groups"]
    for columns in drawn:
        for column in columns:
            column.update({"by": "", "bars": []} if column["name"] in grouped else {})
    assert shown == written


def test_facts_are_of_the_kind_of_search() -> None:
    kinds = {"mondrian": TreeFacts, "sampled": SampledTreeFacts, "passes": LatticeFacts, "top-down": TopDownFacts}
    for name, kind in kinds.items():
        assert type(read_record(json.dumps(recorded("duckdb", name))).algorithm.facts) is kind
    applied = read_record(json.dumps(recorded("duckdb", "apply mondrian"))).algorithm.applied
    assert applied is not None
    assert (applied.applied, applied.on_violation, applied.budget) == ("RUN", "suppress", None)


@pytest.mark.parametrize(("engine", "name"), EVERY)
def test_facts_without_a_tag_tell_their_kind(engine: str, name: str) -> None:
    """As those of checkpoints that earlier versions wrote."""
    record = recorded(engine, name)
    assert kind_of(record["algorithm"]) == read_record(json.dumps(record)).algorithm.facts.kind


def test_what_was_not_recorded_is_none() -> None:
    result = read_record(json.dumps(least_record()))
    assert result.as_json() == least_record()
    lacking = (result.subject, result.disclosure, result.quasi_identifiers, result.checks, result.catalog)
    assert lacking == (None,) * 5
    assert (result.source.origin, result.source.columns, result.source.figures) == (None, None, None)
    classes = {"classes": 3, "min_class_size": 1, "mean_class_size": 2.5}  # of the source, in the first versions
    figures = read_record(json.dumps(least_record() | {"source": {"table": "t", "rows": 7, **classes}})).source.figures
    assert figures is not None
    assert (figures.classes, figures.class_sizes, figures.metrics) == (3, None, None)
    applied = {"name": "apply", "rounds": 0, "statements": 0, "applied": "x"}
    facts = read_record(json.dumps(least_record() | {"algorithm": applied})).algorithm.applied
    assert facts is not None
    assert (facts.on_violation, facts.budget, facts.job) == (None, None, None)


def test_facts_of_an_unknown_algorithm_are_kept() -> None:
    algorithm = {"name": "later", "rounds": 1, "statements": 2, "kind": "swaps", "exchanged": 7}
    result = read_record(json.dumps(least_record() | {"version": VERSION, "algorithm": algorithm}))
    assert result.as_json()["algorithm"]["exchanged"] == 7
    assert read_record(write_record(result)) == result


@pytest.mark.parametrize("damage", [{"metrics": {}}, {"source": 7}, {"release": None}, {"algorithm": {}}])
def test_a_damaged_record_is_refused_by_name(damage: dict[str, Any]) -> None:
    with pytest.raises(SqlanonError, match="damaged"):
        read_record(json.dumps(least_record() | damage))


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "[]", "7", "null", "{", '{"version": "2"}'])
def test_a_text_that_is_no_record_is_refused_by_name(text: str) -> None:
    with pytest.raises(SqlanonError, match="damaged"):
        read_record(text)


@pytest.mark.parametrize(
    "damage",
    [
        {"run": 7},
        {"verified": "yes"},
        {"source": {"table": "t", "rows": "seven"}},
        {"source": {"table": ["t"], "rows": 7}},
        {"warnings": "one"},
        {"version": 0},
        {"version": True},
    ],
)
def test_parts_of_another_type_are_damage(damage: dict[str, Any]) -> None:
    with pytest.raises(SqlanonError, match="damaged"):
        read_record(json.dumps(least_record() | damage))


def test_a_record_of_a_later_version_is_refused() -> None:
    with pytest.raises(SqlanonError, match=r"by a later sqlanon \(version 99"):
        read_record(json.dumps(least_record() | {"version": 99}))


def test_each_version_has_a_step() -> None:
    assert len(STEPS) == VERSION - 1
    for number in range(1, VERSION):
        assert STEPS[number - 1](upcast(least_record()) | {"version": number})["version"] == number + 1


def test_a_result_is_frozen() -> None:
    result = read_record(json.dumps(least_record()))
    with pytest.raises(dataclasses.FrozenInstanceError):
        result.release.rows = 8  # type: ignore[misc]
