"""Policies that were mangled: a policy or a PolicyError, soon, and never anything else."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sqlanon import check_policy
from sqlanon.errors import PolicyError, SqlanonError
from sqlanon.policy import Policy
from sqlanon.policy.document import read_document
from sqlanon.policy.loading import build_policy, load_policy, parse_policy
from sqlanon.policy.writer import policy_text
from sqlanon.support.documents import DEEPEST, parse_json, read_bounded
from tests.odd_values import TEXTS, mutated
from tests.random_cases import many
from tests.test_policy import GRAMMAR

pytestmark = pytest.mark.slow

WHOLE: dict[str, Any] = read_document(GRAMMAR).data
LONG = 100_000


def is_refused_or_whole(text: str) -> None:
    """A policy that is read can be written, and reads back as the same."""
    try:
        policy = parse_policy(text)
    except PolicyError as error:
        str(error).encode()  # what is said can be printed
        return
    assert isinstance(policy, Policy)
    assert parse_policy(policy_text(policy)) == policy


@settings(max_examples=many(100), deadline=None)
@given(mutated(WHOLE))
def test_changed_data_is_a_policy_or_refused(data: dict[str, Any]) -> None:
    try:
        policy = build_policy(data)
    except PolicyError as error:
        str(error).encode()
        return
    assert isinstance(policy, Policy)


@settings(max_examples=many(100), deadline=None)
@given(st.data())
def test_mangled_text_is_a_policy_or_refused(data: st.DataObject) -> None:
    text = GRAMMAR
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = min(len(text), start + data.draw(st.integers(0, 30)))
        piece = data.draw(st.one_of(st.sampled_from([*TEXTS, *PIECES]), st.text(max_size=4)))
        text = text[:start] + piece + text[end:]
    is_refused_or_whole(text)


ODD_PARTS = [
    ("attributes.a.hierarchy.intervals", [{}], r"intervals\[0\] must be a number"),
    ("attributes.a.hierarchy.intervals", [{"constrained-int": 1}], r"intervals\[0\] must be a number"),
    ("attributes.a.hierarchy.intervals", [5, {"quantile": 1}], r"intervals\[1\] must be a number"),
    ("attributes.b.hierarchy.mapping", {"x": {"y": {}}}, "must be a label or a list of labels"),
    ("attributes.a.top", 10**400, "top must be a number, or"),
    ("attributes.a.bottom", -(10**400), "bottom must be a number, or"),
    ("attributes.a.top", {"quantile": 10**400}, "top must be a number, or"),
    ("algorithm", {"name": "optimal", "limits": {"a": []}}, "limits.a must be a longer list"),
    ("algorithm", {"name": "optimal", "limits": {"a": [0]}}, "limits.a must be a longer list"),
    ("algorithm", {"name": "optimal", "limits": {"a": [0, 1, 2]}}, "limits.a must be a shorter list"),
    ("algorithm", {"name": "optimal", "limits": {"a": [{}, 1]}}, r"limits.a\[0\] must be a number"),
    ("algorithm", {"name": "optimal", "weights": {"a": {}}}, "weights.a must be a number"),
    ("privacy", [{"model": ["k-anonymity"], "k": 2}], "model must be one of"),
]


@pytest.mark.parametrize(("place", "value", "sentence"), ODD_PARTS, ids=range(len(ODD_PARTS)))
def test_parts_of_another_shape_have_their_sentence(place: str, value: object, sentence: str) -> None:
    changed = copy.deepcopy({**SMALL, "source": {"url": "duckdb:///x", "table": "t"}})
    *above, key = place.split(".")
    part = changed
    for name in above:
        part = part[name]
    part[key] = value
    with pytest.raises(PolicyError, match=sentence):
        build_policy(changed)


PIECES = [
    *("[", "{", "]", "}", "- ", "? ", ": ", "!x ", "!!python/object:os.system ", "&a ", "*a ", "|\n", ">\n"),
    *("%YAML 1.1\n", "---\n", "...\n", "<<: ", '"\\ud800"', '"\\U7fffffff"', '"\\x00"', "0x", "1_000", "2024-02-30"),
    *("12:30:45", "=", "#", "!!int x", "!!float x", "!!binary x", "!!timestamp x", "!!set {a}", "9" * 5000, "0o9"),
    *(".inf", "\x85", "\u2028"),
]
REPEATED = [*PIECES, "[]", "a: ", "- - ", "'", '"', "\\", "\n ", "a,", "{a: ", "[a, ", "&a [", "\t"]


@pytest.mark.parametrize("piece", REPEATED, ids=range(len(REPEATED)))
def test_long_repetitions_are_read_or_refused_soon(piece: str) -> None:
    started = time.process_time()
    is_refused_or_whole(piece * (LONG // len(piece)))
    assert time.process_time() - started < 5


def test_depth_is_bounded_where_it_is_legal_yaml() -> None:
    for deep in ("[" * LONG + "]" * LONG, "".join(f"{' ' * n}a:\n" for n in range(1000)), "- " * 1000 + "a"):
        with pytest.raises(PolicyError, match=f"deeper than {DEEPEST} levels"):
            parse_policy(deep)


def test_few_lines_that_stand_for_very_many_parts_are_refused() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    with pytest.raises(PolicyError, match="more than 1,000,000 parts"):
        parse_policy("\n".join(lines))


def test_half_characters_are_refused_and_pairs_of_them_are_read() -> None:
    for text in ('{"\\ud800": 1}', 'a: ["\\udc00"]', "a: \ud800", 'a: "\\0"'):
        with pytest.raises(PolicyError, match="half a character"):
            parse_policy(text)
    assert read_document(json.dumps({"😀": "a😀"})).data == {"😀": "a😀"}


def test_files_are_read_up_to_a_size(tmp_path: Path) -> None:
    file = tmp_path / "policy.yml"
    file.write_text("# " + "x" * 2**23)
    with pytest.raises(PolicyError, match="more than 8 MiB"):
        load_policy(file)
    with pytest.raises(PolicyError, match="more than 8 MiB"):
        load_policy("/dev/zero")
    for name in (tmp_path, tmp_path / "none", "a\0b"):
        with pytest.raises(PolicyError):
            read_bounded(name, "policy", 10)
        with pytest.raises(PolicyError):
            load_policy(name)


def test_json_of_others_is_read_strictly() -> None:
    assert parse_json('{"a": [1, {"b": null}], "c": "\\ud83d\\ude00"}') == {"a": [1, {"b": None}], "c": "😀"}
    refused = [
        "{",
        "[" * LONG,
        '{"a":' * LONG,
        "[" * 70 + "]" * 70,
        '{"a": 1, "a": 1}',
        '[{"b": {"a": 1, "\\u0061": 2}}]',
    ]
    refused += ['{"\\ud800": 1}', '["\\udfff"]', "9" * 5000, '"\\u0000"', ""]
    for text in refused:
        started = time.process_time()
        with pytest.raises(PolicyError):
            parse_json(text)
        assert time.process_time() - started < 1


@settings(max_examples=100, deadline=None)
@given(st.data())
def test_policies_of_a_table_that_is_there_are_checked_or_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    url = _table(tmp_path_factory)
    changed = data.draw(mutated({**SMALL, "source": {"url": url, "table": "t"}}, most=2))
    try:
        check_policy(build_policy(changed))
    except SqlanonError as error:
        str(error).encode()


SMALL: dict[str, Any] = {
    "release": {"table": "r"},
    "attributes": {
        "a": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 10]}},
        "b": {"role": "quasi-identifier", "hierarchy": {"mapping": {"x": ["y"], "z": ["y"]}}},
        "c": {"role": "sensitive"},
    },
    "privacy": [{"model": "k-anonymity", "k": 2}, {"model": "distinct-l-diversity", "attribute": "c", "l": 2}],
    "algorithm": {"name": "mondrian"},
}
_urls: list[str] = []


def _table(factory: pytest.TempPathFactory) -> str:
    """The URL of a database with a table for the policy above, made once."""
    if not _urls:
        import duckdb

        file = factory.mktemp("odd") / "odd.duckdb"
        with duckdb.connect(str(file)) as connection:
            connection.execute("CREATE TABLE t AS SELECT i AS a, 'x' AS b, i % 3 AS c FROM range(20) AS s(i)")
        _urls.append(f"duckdb:///{file}")
    return _urls[0]
