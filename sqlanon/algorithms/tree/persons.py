"""Check candidates where a person may be in several classes: each child counts everybody who has a tuple in it once.

The sizes of children, which add up, are numbers of tuples, and no child has more persons than tuples. So sizes rule
out what is too small, and where a child has so many tuples that they can't be of too few persons, nothing is counted.
"""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from sqlanon.algorithms.tree.task import Branch
from sqlanon.encoding.axes import masked_value
from sqlanon.encoding.distinct_tuples import WEIGHT, Persons
from sqlanon.encoding.domains import Sensitive
from sqlanon.models.base import Groups, PrivacyModel
from sqlanon.models.solver import settle_groups
from sqlanon.sql import Expression, Identifier, Relation, macro

CLASS, VALUE = Identifier("class"), Identifier("s")


def list_splits_short_of_persons(
    branch: Branch, rows: Relation | Expression, values: dict[str, Any], several: Persons
) -> tuple[Relation, list[Relation]]:
    """List the candidate splits of which some child violates a model by its persons, and the tables used for it.

    values: the tables of the candidates, their cuts and the candidate splits, whose children have tuples enough.
    """
    task = branch.task
    fewest = max(model.least_rows for model in task.models)
    named = {name: values[name] for name in ("candidates", "candidate_splits")}
    children = branch.table("children")
    counted: dict[str, Any] = {"rows": rows, "bits": task.bits, "value": masked_value("tried", task.words), **named}
    counted["person"] = several.code
    branch.scan(
        "count_persons", counted=children, weight=WEIGHT, sensitive=None, enough=fewest * several.most, **counted
    )
    groups = [branch.table(f"avs{place}_") for place in range(len(task.sensitive))]
    for table, one in zip(groups, task.sensitive, strict=True):
        value = macro("bits.masked", one.word, one.mask)
        branch.scan("count_persons", counted=table, weight=one.weight, sensitive=value, enough=None, **counted)
    short = branch.table("violating_splits")
    branch.decide(
        "list_splits_short_of_persons",
        violating_splits=short,
        children=children,
        fewest=fewest,
        bits=task.bits,
        measures=_measures(
            branch,
            dict(zip((one.name for one in task.sensitive), zip(groups, task.sensitive, strict=True), strict=True)),
        ),
    )
    return short, [short, children, *groups]


def _measures(branch: Branch, of: dict[str, tuple[Relation, Sensitive]]) -> list[Expression]:
    """Write what each model measures of the children, which it sees with everybody who has a value in its place."""

    def groups_of(model: PrivacyModel) -> Groups:
        groups, one = of[str(model.attribute)]
        assert one.total is not None
        sizes = macro("tree.sizes_of_groups", groups)
        return Groups(sizes, Markup(groups), Markup(one.domain), one.total, one.height)

    models = settle_groups(branch.engine, branch.task.models_of_content, groups_of)
    return [model.measure(branch.engine.render, groups_of(model)) for model in models]
