"""The models that a draft asks for: k by the size of the table, l below the number of sensitive values.

Beside each stands why, and what it costs where the draft was tried.
"""

from __future__ import annotations

from sqlanon.engines.columns import Kind
from sqlanon.inquiries.profile.column_facts import ColumnFacts, Profile
from sqlanon.inquiries.profile.costs import Attempt, DraftCosts
from sqlanon.inquiries.profile.writing import comment, percent, quoted
from sqlanon.policy import Role

K_FROM = ((0, 3), (100, 5), (100_000, 10), (10_000_000, 20))  # from so many rows on
DIVERSITY = 3
CLOSENESS = 0.3
DEAR = 0.05  # of GCP, that a model adds


def choose_k(rows: int) -> int:
    """The k for a table of so many rows: no more than it has, and never 1, which protects nobody."""
    return max(2, min(rows, next(k for least, k in reversed(K_FROM) if rows >= least)))


def draft_models(profile: Profile, costs: DraftCosts | None) -> list[str]:
    """The lines of the models."""
    k = choose_k(profile.rows)
    among = f"each row is among {k - 1} others or more; the more rows a table has, the less a larger k loses"
    models = [f"  - {{model: k-anonymity, k: {k}}}    # k for {profile.rows:,} rows: {among}{_alone(costs)}"]
    return models + [_model(facts, costs) for facts in profile.named(Role.SENSITIVE)]


def _alone(costs: DraftCosts | None) -> str:
    if costs is None or costs.k_alone is None:
        return ""
    return f"; alone it costs GCP {percent(costs.k_alone.loss)} ({costs.k_alone.classes:,} classes)"


def _model(facts: ColumnFacts, costs: DraftCosts | None) -> str:
    name, attribute = comment(facts.name), quoted(facts.name)
    if facts.column.kind is Kind.OTHER:
        return f"  # no model for {name}: values of its type are not compared; cast it in the source"
    if facts.distinct < 2:  # NULL adds no diversity
        where = "every row" if not facts.nulls else "every row that has a value"
        return f"  # no model for {name}: it is the same in {where}"
    if facts.distinct == 2:
        line = f"  - {{model: t-closeness, attribute: {attribute}, distance: equal, t: {CLOSENESS}}}"
        return f"{line}    # it has 2 values, so that l-diversity would want both in every class{_cost(facts, costs)}"
    l_value = min(DIVERSITY, facts.distinct - 1)
    line = f"  - {{model: distinct-l-diversity, attribute: {attribute}, l: {l_value}}}"
    return f"{line}    # {_advice(facts)}{_cost(facts, costs)}"


def _cost(facts: ColumnFacts, costs: DraftCosts | None) -> str:
    """Say what the model costs: GCP and classes with and without it."""
    without = None if costs is None else costs.without_model.get(facts.name)
    if costs is None or costs.draft is None or without is None:
        return ""
    dear = costs.draft.loss - without.loss >= DEAR
    verdict = "; it costs much: think of a weaker one, or of columns to leave out" if dear else ""
    return f"; with it {_attempt_text(costs.draft)}, without it {_attempt_text(without)}{verdict}"


def _attempt_text(one: Attempt) -> str:
    return f"GCP {percent(one.loss)} ({one.classes:,} classes)"


def _advice(facts: ColumnFacts) -> str:
    if facts.column.kind.is_numeric:
        return "stronger: variance-diversity, or t-closeness with distance: ordered"
    return "stronger: recursive-l-diversity, or t-closeness"
