"""Local recoding of the remainder against a plain simulation of its passes, and its releases against the models."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import strategies as st

from sqlanon.errors import ProtectionError
from tests.oracle.lattice import MODELS, ROOT, Case, Hierarchy, Node, Row, cases, judged_cases
from tests.random_cases import random_cases
from tests.run_support import Database, anonymize

pytestmark = pytest.mark.either_engine

EXAMPLES = {"duckdb": 2, "postgres": 3}
Groups = dict[Row, list[Row]]
BUDGETS = (0.25, 0.5, 0.75)
QUALITIES = ("loss", "height", "discernibility", "entropy", "entropy-arx", "kl-divergence")
CLOSE = [model for model in MODELS if model["model"] == "t-closeness"]
SIZE_AND_CLOSENESS = [{"model": "k-anonymity", "k": 2}, {**CLOSE[0], "t": 0.3}]


def require_models(case: Case, released: list[Row]) -> None:
    """Every class of the published table satisfies the models in that table."""
    table = [row[-1] for row in released]
    classes: Groups = defaultdict(list)
    for row in released:
        classes[row[:-1]].append(row)
    if case.suppressed == "star" and len(classes) > 1:
        classes.pop(tuple(ROOT for _ in case.hierarchies), None)
    for rows in classes.values():
        if case.suppressed == "omit" or set(rows[0][:-1]) != {ROOT}:
            assert not case.violates([row[-1] for row in rows], table)


def simulate(case: Case, nodes: list[Node]) -> list[Row]:
    """The release, by the definition of the passes."""
    table, left, placed = [row[-1] for row in case.rows], list(case.rows), []
    for node in nodes:
        found = case.classes(node, left)
        kept = {key: rows for key, rows in found.items() if not case.violates([row[-1] for row in rows], table)}
        placed += kept.items()
        left = [row for key, rows in found.items() if key not in kept for row in rows]
    moves = case.suppressed == "omit" and any(model in CLOSE for model in case.models)
    failing = bool(left) and moves
    while failing:
        table = [row[-1] for _, rows in placed for row in rows]
        out = [number for number, (_, rows) in enumerate(placed) if case.violates([row[-1] for row in rows], table)]
        left += [row for number in out for row in placed[number][1]]
        placed = [entry for number, entry in enumerate(placed) if number not in out]
        failing = bool(out)
    if len(left) > case.budget:
        left = case.suppressed_rows(nodes[0])
        out_rows = Counter(left)
        placed = [entry for entry in case.classes(nodes[0]).items() if not out_rows[entry[1][0]]]
    shown = [(*("NULL" if label is None else label for label in key), row[-1]) for key, rows in placed for row in rows]
    starred = [(*(ROOT for _ in case.hierarchies), row[-1]) for row in left] if case.suppressed == "star" else []
    return shown + starred


def recoded(database: Database, case: Case, quality: str) -> tuple[dict[str, Any], list[Row]] | None:
    """Recode a case: the run's result and its release; None where no release satisfies the models."""
    algorithm = {"name": "bottom-up", "quality": quality}
    table = database.create(case.columns, case.rows)
    policy = database.policy(table, case.attributes, algorithm=algorithm, remainder="recode", **case.policy)
    try:
        return anonymize(policy).as_json(), database.sql(f"SELECT * FROM {table}_r")
    except ProtectionError:
        return None
    finally:
        database.sql(f"DROP TABLE {table}")
        database.sql(f"DROP TABLE IF EXISTS {table}_r")


@pytest.mark.parametrize("drawn", [cases(budgets=BUDGETS), cases(models=CLOSE, budgets=BUDGETS)], ids=["any", "close"])
def test_passes_place_what_the_simulation_places(database: Database, drawn: st.SearchStrategy[Case]) -> None:
    @random_cases(EXAMPLES[database.engine], drawn, st.sampled_from(QUALITIES))
    def check(case: Case, quality: str) -> None:
        found = recoded(database, case, quality)
        if found is None:
            assert not case.satisfying()
            return
        outcome, released = found
        require_models(case, released)
        passes = outcome["algorithm"]["passes"]
        nodes = [tuple(made["levels"].values()) for made in passes]
        assert Counter(released) == Counter(simulate(case, nodes))
        assert outcome["release"]["suppressed"] == len(case.rows) - sum(made["rows"] for made in passes)
        assert outcome["release"]["suppressed"] <= case.budget
        assert nodes[0] == tuple(outcome["algorithm"]["levels"].values())
        assert outcome["verified"]

    check()


def test_starred_rows_are_completed_by_the_smallest_classes_of_all_passes(database: Database) -> None:
    @random_cases(EXAMPLES[database.engine] * 2, judged_cases().filter(lambda case: len(case.rows) >= 4))
    def check(case: Case) -> None:
        found = recoded(database, case, "loss")
        if found is None:
            return
        outcome, released = found
        classes = Counter(row[:-1] for row in released)
        assert not [size for size in classes.values() if case.violates([None] * size, [])]
        nodes = [tuple(made["levels"].values()) for made in outcome["algorithm"]["passes"]]
        assert outcome["release"]["suppressed"] == completed(case, nodes)
        assert outcome["release"]["suppressed"] <= case.budget

    check()


def completed(case: Case, nodes: list[Node]) -> int:
    """The rows that are starred: those that no pass places, and the smallest classes until they are enough."""
    left, sizes = list(case.rows), []
    for node in nodes:
        found = case.classes(node, left).values()
        kept = [rows for rows in found if not case.violates(rows, [])]
        sizes += [len(rows) for rows in kept]
        left = [row for rows in found if rows not in kept for row in rows]
    starred = len(left)
    for size in sorted(sizes):
        starred += size if starred and case.violates([None] * starred, []) else 0
    return starred


@pytest.mark.parametrize(
    ("model", "quality"), [(model, quality) for quality in QUALITIES for model in SIZE_AND_CLOSENESS]
)
def test_parts_of_a_search_keep_their_work_tables_apart(
    database: Database, model: dict[str, Any], quality: str
) -> None:
    """A part still has the classes of its last node when the next part is searched."""
    hierarchy = Hierarchy({"a": ("g10", "*"), "b": ("g11", "*"), "c": ("g11", "*")})
    rows = [*[(None, None)] * 7, (None, 1), (None, 1), ("a", 1), ("b", None), ("c", 1)]
    case = Case((hierarchy,), tuple(rows), (model,), suppression=0.25)
    found = recoded(database, case, quality)
    assert found is not None
    assert found[0]["verified"]


def test_without_a_remainder_there_is_one_pass(database: Database) -> None:
    table = database.create({"a": "VARCHAR(9)", "s": "INTEGER"}, [("x", 1), ("x", 2), ("y", 3), ("y", 4)])
    attributes = {"a": {"role": "quasi-identifier", "hierarchy": "suppress"}, "s": "sensitive"}
    policy = database.policy(table, attributes, algorithm={"name": "optimal"}, remainder="recode", suppression=0.5)
    told = anonymize(policy).as_json()["algorithm"]
    assert told["passes"] == [{"levels": {"a": 0}, "rows": 4}]


def test_each_pass_puts_half_of_the_rest_into_classes_where_it_can(database: Database) -> None:
    rows = [("a1", n) for n in range(5)] + [("b1", 5), ("b2", 6), ("b2", 7), ("c1", 8), ("c2", 9)]
    mapping = {value: [value[0], "*"] for value, _ in rows}
    attributes = {"a": {"role": "quasi-identifier", "hierarchy": {"mapping": mapping}}, "s": "sensitive"}
    table = database.create({"a": "VARCHAR(9)", "s": "INTEGER"}, rows)
    algorithm, models = {"name": "optimal", "quality": "height"}, [{"model": "k-anonymity", "k": 3}]
    policy = database.policy(
        table, attributes, algorithm=algorithm, privacy=models, remainder="recode", suppression=0.5
    )
    outcome = anonymize(policy).as_json()
    assert [made["rows"] for made in outcome["algorithm"]["passes"]] == [5, 3]
    assert outcome["release"]["suppressed"] == 2
