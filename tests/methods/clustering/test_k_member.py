"""Clusters of k-member against a plain search, on both engines, and what it refuses."""

from __future__ import annotations

import contextlib
import random
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sqlanon.encoding.coordinates import Coordinate, Scale
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.errors import PolicyError, VerificationError
from sqlanon.methods.clustering import verify_centres
from sqlanon.methods.clustering.policy import K_MEMBER_BLOCK, Microaggregation
from sqlanon.methods.clustering.releases import centres
from sqlanon.methods.clustering.search.microaggregation import gather
from sqlanon.methods.clustering.search.points import rows_of_block
from sqlanon.policy import Hierarchy
from sqlanon.sql import Relation, Statement
from sqlanon.staging.recode import Recoding
from tests.methods.clustering.point_support import NUMBERS, clusters_of, load_points
from tests.oracle import clusters as oracle
from tests.random_cases import many
from tests.run_support import Database, PlainWorkspace, anonymize

QUASI = "quasi-identifier"
K_MEMBER = {"name": "microaggregation", "method": "k-member"}
SHIFTS = (0, 2)  # of codes of two bits within a group
COORDINATES = (
    *NUMBERS,
    Coordinate(2, None, Scale.NOMINAL, weight=7),  # type: ignore[arg-type]
    Coordinate(3, None, Scale.HIERARCHICAL, weight=7, shifts=SHIFTS),  # type: ignore[arg-type]
)
HIERARCHY = {"mapping": {"x": ["xy", "xyz"], "y": ["xy", "xyz"], "z": ["z_", "xyz"], "v": ["vw", "vw_"]}}


@settings(max_examples=many(4), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32), sizes=st.lists(st.integers(4, 14), min_size=1, max_size=3), k=st.integers(2, 4))
def test_clusters_are_those_of_a_plain_search(engine: Engine, seed: int, sizes: list[int], k: int) -> None:
    """Ranges are powers of two, so that sums of shares are exact, and ties are ties."""
    draw = random.Random(seed)
    numbered = [
        (block, draw.randrange(17), draw.randrange(-8, 9), draw.randrange(3), draw.randrange(12))
        for block, n in enumerate(sizes)
        for _ in range(n)
    ]
    numbered[0], numbered[1] = (0, 0, -8, 0, 4), (0, 16, 8, 1, 9)
    workspace = PlainWorkspace(engine)
    points = load_points(engine, [one[1:] for one in numbered], COORDINATES, [one[0] for one in numbered])
    clustered = gather(engine, workspace, points, k, Microaggregation.model_validate(K_MEMBER))
    groups = clusters_of(engine, clustered)
    workspace.drop(clustered)
    expected: list[list[int]] = []
    for block in range(len(sizes)):
        own = [point for point, one in enumerate(numbered) if one[0] == block]
        found = oracle.k_member([one[1:] for one in numbered], ((), (), (0,), SHIFTS), k, own)
        expected += [sorted(one) for one in found]
    assert sorted(map(sorted, groups.values())) == sorted(expected)


def test_clusters_show_the_label_of_their_lowest_common_ancestor(databases: tuple[Database, Database]) -> None:
    draw = random.Random(7)
    rows = [(draw.choice("xyzv") if n % 9 else None, draw.randrange(30), "pq"[n % 2], n) for n in range(40)]
    columns = {"a": "VARCHAR", "b": "INTEGER", "c": "VARCHAR", "id": "INTEGER"}
    attributes = {
        "a": {"role": QUASI, "hierarchy": HIERARCHY},
        "b": {"role": QUASI, "hierarchy": {"intervals": [5, 10]}},
        "c": QUASI,
        "id": "insensitive",
    }
    released = []
    for database in databases:
        table = database.create(columns, rows, "generalized")
        released.append(database.release(table, attributes, algorithm=K_MEMBER))
    assert released[0] == released[1]
    shown = defaultdict(list)
    for *centre, number in released[0]:
        shown[tuple(centre)].append(rows[number][:2])
    assert len(shown) > 5
    for (a, b, _), members in shown.items():
        assert a == _ancestor([_labels_of(one) for one, _ in members])
        assert b == _ancestor([[str(number), _interval(number, 5), _interval(number, 10)] for _, number in members])


def _interval(number: int, width: int) -> str:
    return f"[{number // width * width}-{(number // width + 1) * width})"


def _labels_of(value: str | None) -> list[str]:
    return ["NULL"] * 3 if value is None else [value, *HIERARCHY["mapping"][value]]


def _ancestor(labels: list[list[str]]) -> str:
    levels = [{one[level] for one in labels} for level in range(3)]
    return next((found.pop() for found in levels if len(found) == 1), "*")


ANCESTORS = [
    ("xx", ["x", "x"], 0),
    ("xy", ["xy", "xy"], 0),
    ("xz", ["xyz", "xyz"], 0),
    ("xv", ["*", "*"], 0),
    ([None, None], ["NULL", "NULL"], 0),
    ([None, "x"], ["*", "*"], 0),
    ("xx", ["xy", "xy"], 2),  # too high
    ("xy", ["xyz", "xyz"], 2),
    ([None, None], ["*", "*"], 2),
    ("xy", ["x", "x"], 2),  # too low
    ("xz", ["xy", "xy"], 2),
    ([None, "x"], ["x", "x"], 2),
    ([None, "x"], ["NULL", "NULL"], 2),
    ("xx", [None, None], 2),
    ("ww", ["w", "w"], 2),  # not a value of the source
    ("wx", ["*", "*"], 2),
    ("wx", ["x", "x"], 2),
    ("xy", ["xy", "z_"], 2),  # two labels
    ("xy", ["*", "xy"], 2),
]
"""Raw values of a cluster, what its rows show, and the rows that show another label than that of the ancestor."""


def _count_untrue(engine: Engine, clusters: list[Any]) -> int:
    values, witness = Relation("raw_values"), Relation("witness")
    for table, rows in (
        (values, [(one,) for one in [*"xyzv", None]]),
        (
            witness,
            [(r, n, c) for n, (raw, cells, _) in enumerate(clusters) for r, c in zip(raw, cells, strict=True)],
        ),
    ):
        columns = ["r0", "leaf", "c0"][: len(rows[0])]
        kinds = ", ".join(f"{name} {'BIGINT' if name == 'leaf' else 'VARCHAR'}" for name in columns)
        engine.execute(Statement("test", f"DROP TABLE IF EXISTS {table}"))
        engine.execute(Statement("test", f"CREATE TABLE {table} ({kinds})"))
        engine.load(table, columns, rows)
    column = Column("a", "VARCHAR", Kind.TEXT)
    return verify_centres.count_untrue_ancestors(
        engine, values, witness, {0: (column, Hierarchy.model_validate(HIERARCHY))}
    )


def test_labels_are_those_of_lowest_common_ancestors(engine: Engine) -> None:
    true = [one for one in ANCESTORS if not one[2]]
    assert _count_untrue(engine, true) == 0
    assert _count_untrue(engine, ANCESTORS) == sum(violations for *_, violations in ANCESTORS)


def test_ancestors_in_a_hierarchy_that_is_not_the_policys_are_none(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = verify_centres.scratch_hierarchies

    @contextlib.contextmanager
    def changed(engine: Engine, *given: Any) -> Iterator[Any]:
        with whole(engine, *given) as built:
            engine.execute(Statement("test", f"UPDATE {built['r0'].table} SET l1 = 'vw' WHERE value = 'x'"))
            yield built

    monkeypatch.setattr(verify_centres, "scratch_hierarchies", changed)
    assert _count_untrue(engine, [("xx", ["x", "x"], 0)]) > 0


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize("label", ["'*'", "'xyz'", "NULL"])
def test_another_label_is_not_published(database: Database, monkeypatch: pytest.MonkeyPatch, label: str) -> None:
    table = database.create({"a": "VARCHAR"}, [(one,) for one in "xxyyzzvv"])
    create = centres.create_centres

    def tampered(engine: Engine, *arguments: Any) -> Recoding:
        made = create(engine, *arguments)
        engine.execute(Statement("test", f"UPDATE {made.regions} SET c0 = {label} WHERE c0 = 'x'"))
        return made

    monkeypatch.setattr("sqlanon.methods.clustering.releases.centred.create_centres", tampered)
    with pytest.raises(VerificationError, match="centres_true"):
        anonymize(database.policy(table, {"a": {"role": QUASI, "hierarchy": HIERARCHY}}, algorithm=K_MEMBER))


@pytest.mark.parametrize("engine_name", ["duckdb"], indirect=True)
@pytest.mark.parametrize(
    ("algorithm", "attribute", "problem"),
    [
        ({"method": "mdav"}, {}, r"attributes\.a: .* takes a hierarchy with method: k-member alone"),
        ({"refine": True}, {}, r"algorithm\.refine: .* groups of a hierarchy have none; leave refine out"),
        ({}, {"order": ["x", "y", "z", "v"]}, r"attributes\.a: it has a hierarchy and an order"),
        ({}, {"show": "mode"}, r"attributes\.a: clusters show the label of a group"),
        ({"keep": "variance"}, {}, r"algorithm\.keep: variance is one of numbers"),
    ],
)
def test_what_hierarchies_do_not_go_with_is_refused(
    database: Database, algorithm: dict[str, Any], attribute: dict[str, Any], problem: str
) -> None:
    table = database.create({"a": "VARCHAR"}, [(one,) for one in "xxyyzzvv"])
    quasi = {"role": QUASI, "hierarchy": HIERARCHY} | attribute
    with pytest.raises(PolicyError, match=problem):
        anonymize(database.policy(table, {"a": quasi}, algorithm=K_MEMBER | algorithm))


@pytest.mark.parametrize("blocks", ["exact", 2500])
def test_blocks_that_are_too_large_are_refused(database: Database, blocks: Any) -> None:
    database.sql("CREATE TABLE many AS SELECT i AS a FROM generate_series(1, 2600) AS t(i)")
    policy = database.policy("many", {"a": QUASI}, algorithm=K_MEMBER | {"blocks": blocks})
    with pytest.raises(
        PolicyError, match=r"algorithm\.blocks: k-member holds each row against all .* at most, not 2,[56]00"
    ):
        anonymize(policy)


def test_blocks_are_no_larger_than_the_search_takes() -> None:
    algorithm = Microaggregation.model_validate(K_MEMBER)
    assert rows_of_block(algorithm, K_MEMBER_BLOCK, 3) is None
    assert 2 * (rows_of_block(algorithm, K_MEMBER_BLOCK + 1, 3) or K_MEMBER_BLOCK) <= K_MEMBER_BLOCK
