"""Calls for programs that mine association rules of tables."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.engines.dialects import find_dialect
from sqlanon.engines.read_options import ReadOptions
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.inquiries.risk.association_mining import AssociationOptions, mine_associations
from sqlanon.inquiries.risk.measured_table import risk_source
from sqlanon.models import largest_k, models_of
from sqlanon.models.confidence_bound import ConfidenceBound
from sqlanon.plan.connecting import connect_to_table, open_source
from sqlanon.plan.lookup import require_columns
from sqlanon.policy import Policy, Role
from sqlanon.results.associations import Associations


def table_associations(
    url: str | None,
    table: str,
    quasi_identifiers: Sequence[str],
    sensitive: Sequence[str],
    asked: AssociationOptions,
    *,
    subject: str | None = None,
    options: EngineOptions | None = None,
    reading: ReadOptions | None = None,
    trusts_owner: bool = False,
) -> Associations:
    """Mine the rules of any table, or of a file, from quasi-identifiers to sensitive values. Nothing is changed.

    subject: the column that tells whose each row is: distinct persons are counted then.
    reading: how a file is read.
    trusts_owner: whether code of the table's owner may run, on PostgreSQL, with the rights of the role that reads.

    Raises PolicyError: there is no such table or column, or too many subsets of columns.
    """
    _require_engine(url)
    with connect_to_table(url, table, options, trusts_owner, reading, makes_tables=True) as (engine, relation):
        require_columns(engine, relation, sensitive)
        there = {column.name: column for column in engine.columns(relation)}
        source = risk_source(engine, relation, quasi_identifiers, subject=subject)
        return mine_associations(source, [there[name] for name in sensitive], asked)


def policy_associations(
    policy: Policy,
    *,
    support: int = 1,
    confidence: float = 0.8,
    most: int = 3,
    limit: int = 100,
    options: EngineOptions | None = None,
) -> Associations:
    """Mine the rules of a policy's source, from its quasi-identifiers to its sensitive columns. Nothing is changed.

    The policy says k, whose rows these are (its subject), and by its least `confidence-bound` the confidence above
    which a rule gives people away; without one it is `confidence`.

    Raises PolicyError: the policy has no sensitive column, or the source lacks a column.
    """
    _require_engine(policy.source.url)
    models = models_of(policy)
    bounds = [model.alpha for model in models if isinstance(model, ConfidenceBound)]
    asked = AssociationOptions(largest_k(models), support, confidence, min(bounds, default=None), most, limit)
    quasi, sensitive = (
        [name for name, one in policy.attributes.items() if one.role is role]
        for role in (Role.QUASI_IDENTIFIER, Role.SENSITIVE)
    )
    if not sensitive or not quasi:
        raise PolicyError("Rules lead from quasi-identifiers to sensitive columns, and the policy has not both.")
    with open_source(policy, options, read_only=False) as (engine, relation):
        require_columns(engine, relation, [*quasi, *sensitive])
        there = {column.name: column for column in engine.columns(relation)}
        source = risk_source(engine, relation, quasi, subject=policy.person)
        return mine_associations(source, [there[name] for name in sensitive], asked)


def _require_engine(url: str | None) -> None:
    """Raise PolicyError, before anybody connects, where the database of a URL does not code columns."""
    dialect = None if url is None else find_dialect(url)
    if dialect is not None:
        dialect.codes_columns.require()
