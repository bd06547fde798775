"""The values of a column that a hierarchy lacks, at all sites together, so that they can add them to it."""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from sqlanon.engines import connect
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column, Kind
from sqlanon.engines.session_limits import EngineOptions
from sqlanon.errors import PolicyError
from sqlanon.hierarchies.digests import hierarchy_digest
from sqlanon.hierarchies.taxonomy import read_taxonomy
from sqlanon.methods.generalization.federation.agreement import describe_plan, digest_part, require_same_parts
from sqlanon.methods.generalization.federation.federation_plan import FederationPlan
from sqlanon.methods.generalization.federation.party import Party
from sqlanon.methods.generalization.federation.shares import Sharing
from sqlanon.methods.generalization.federation.union import Union, require_fit
from sqlanon.plan.opening import open_source_table
from sqlanon.policy import Hierarchy, Policy
from sqlanon.policy.document import path_text
from sqlanon.sql import Identifier, Relation
from sqlanon.values.expressions import comparable, text_of


def unite_lacking(
    plan: FederationPlan, policy: Policy, site: str, key: Path, column: str, options: EngineOptions | None = None
) -> list[str]:
    """Open the values of a column, at any site of a plan, that its hierarchy lacks; NULL is none.

    Nobody learns at which sites a value is, at how many, or how often.

    Raises PolicyError where the column has no such hierarchy, values are too many or too long, or the sites differ in
    plan or hierarchy; AccessError where a site can't be reached or leaves.
    """
    hierarchy = _hierarchy_of(policy, column)
    with connect(policy.source.url or "", options) as engine, open_source_table(engine, policy) as source:
        own = list_lacking(engine, source, column, hierarchy)
    require_fit(own, column)
    with Party(plan, site, key) as party:
        return unite(party, own, column, hierarchy_digest(column, hierarchy))


def unite(party: Party, own: list[str], column: str, digest: str) -> list[str]:
    """Put this site's values together with those of the other sites; digest: of the hierarchy that lacks them."""
    parts = {**describe_plan(party), "the column": digest_part(column), f"the hierarchy of column '{column}'": digest}
    require_same_parts(party, parts)
    return Union(Sharing(party)).of(own)


def _hierarchy_of(policy: Policy, column: str) -> Hierarchy:
    attribute = policy.attributes.get(column)
    if attribute is None or attribute.hierarchy is None or attribute.hierarchy.kind not in ("csv", "mapping"):
        raise PolicyError(
            f"{path_text(('attributes', column))}: --column is one that has a hierarchy of kind csv or mapping, which"
            " lists values."
        )
    if policy.source.table is None:
        raise PolicyError("source.file: values are put together from tables; load the file into one.")
    return attribute.hierarchy


def list_lacking(engine: Engine, source: Relation, name: str, hierarchy: Hierarchy) -> list[str]:
    """List the values of a table's column that a hierarchy lacks."""
    columns: dict[str, Column] = {one.name: one for one in engine.columns(source)}
    if name not in columns:
        raise PolicyError(f"{path_text(('attributes', name))}: the table has no such column.")

    def error(what: str) -> PolicyError:
        return PolicyError(f"Hierarchy of column '{name}': {what}")

    lines = read_taxonomy(hierarchy, None, error)
    listed = engine.temporary("listed_values")
    engine.run("hierarchies/create_values", values=listed)
    engine.load(listed, ["value"], [[line.value] for line in lines])
    column = columns[name]
    text = text_of(engine.render, Markup(Identifier(name)), column.kind, column.type)
    text = comparable(engine, text, Kind.TEXT)
    return [
        value
        for (value,) in engine.query(
            "methods/generalization/federation/list_lacking", source=source, text=text, listed=listed
        )
    ]
