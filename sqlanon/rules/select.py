"""Rules as one SELECT that a DBA can own: the tree and what rules show as VALUES, and a join a level to a row's rule.

It recodes row by row and judges nothing: whether the classes of its result satisfy a model is not its business.
"""

from __future__ import annotations

from markupsafe import Markup

from sqlanon.catalog import RulesKind, Run
from sqlanon.engines.base import Engine
from sqlanon.errors import PolicyError
from sqlanon.policy import Policy, Show
from sqlanon.policy.loading import parse_stored
from sqlanon.rules.row_spelling import RowSpelling
from sqlanon.rules.select_levels import LevelsSelect
from sqlanon.rules.select_tree import TreeSelect
from sqlanon.rules.store import StoredRules
from sqlanon.sql import Relation

MOST_RULES = 100_000  # of one statement


def rules_select(
    engine: Engine, stored: StoredRules, run: Run, source: str | None = None, row_filter: Markup | None = None
) -> str:
    """The rules of a run as a SELECT over its source, or over another table; `engine` is where the rules are.

    row_filter: a condition on rows `s` of that table; others are left out.

    Raises PolicyError where there are too many rules, or where they cannot be said in one statement.
    """
    policy = parse_stored(run.policy)
    table = source if source is not None else policy.source.table
    if table is None:
        raise PolicyError("The source of the run is a file; name a table with --source.")
    return sayable_rules(engine, stored, policy).text(Relation.parse(table), row_filter)


def sayable_rules(engine: Engine, stored: StoredRules, policy: Policy) -> TreeSelect | LevelsSelect:
    """The rules of a run with this policy, to be said in one statement, or in two; `engine` is where they are.

    Raises PolicyError where there are too many, or where they cannot be said.
    """
    if stored.record.leaves > MOST_RULES:
        raise PolicyError(
            f"There are {stored.record.leaves:,} rules, and a statement holds {MOST_RULES:,} at most: `sqlanon apply` "
            "recodes with any number."
        )
    _require_sayable(stored, policy)
    kind = TreeSelect if stored.record.kind is RulesKind.TREE else LevelsSelect
    return kind(engine, stored, RowSpelling(stored, policy))


def _require_sayable(stored: StoredRules, policy: Policy) -> None:
    """Refuse shows that need another table."""
    wrong = []
    for attribute in stored.attributes:
        hierarchy = policy.attributes[attribute.name].hierarchy
        if attribute.show is not Show.LABEL and (hierarchy is not None or stored.record.leaves == 0):
            wrong.append(
                f"'{attribute.name}': show: {attribute.show.value} of a hierarchy can't be said in one SELECT."
            )
    if wrong:
        raise PolicyError([*wrong, "`sqlanon apply` recodes with these rules."])
