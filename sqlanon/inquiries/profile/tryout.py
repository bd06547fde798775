"""A drafted policy tried on a sample of its table: what each model and each column costs, before anybody decides.

The sample is a temporary table of the session: it, and what is made of it, ends with the session. It holds a part of
the table's combinations of values, or all where they are few; rows of frequent combinations are thinned out. Searches
are carried out where its rows are, which for Spark is a task of an executor.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from markupsafe import Markup

from sqlanon.algorithms.tree.groups import groups_of
from sqlanon.algorithms.tree.partitioning import partition_at_medians
from sqlanon.encoding.coded_table import CodedTable, encode
from sqlanon.encoding.distinct_tuples import count_tuples
from sqlanon.engines.base import Engine
from sqlanon.engines.embedded import MEMORY_URL
from sqlanon.errors import PolicyError
from sqlanon.inquiries.profile.column_facts import Profile
from sqlanon.inquiries.profile.costs import Attempt, DraftCosts
from sqlanon.measures.certainty_penalty import measure_loss
from sqlanon.models import PrivacyModel, models_of
from sqlanon.plan.measurements import in_part
from sqlanon.plan.plan import resolve_source
from sqlanon.plan.trust import hold_trusted
from sqlanon.policy import Policy, ReleaseSection, Role, Source
from sqlanon.policy.algorithms import default_algorithm
from sqlanon.sql import Identifier, Relation, free_name, macro
from sqlanon.work.workspace import TemporaryWorkspace, Workspace, carry_out_keeping

MOST_TUPLES = 10_000  # combinations of values in a sample, about
MOST_ROWS = 200_000  # that they are in, about
LEAST_ROWS = 20  # of a combination that are kept at least, where the table has so many
MOST_MODELS = 3  # that are left out in turn: each costs a search, of a second or two
MANY_MODELS = 10  # about attributes; of more none is left out, as each makes all searches dearer
MOST_JUDGED = 50  # models about attributes that a draft is tried with
WIDE = 10  # quasi-identifiers; of more no column is left out, as each makes all searches dearer


def try_draft(engine: Engine, profile: Profile, draft: Policy) -> DraftCosts | None:
    """Try the policy that was drafted from a profile; None where it names no quasi-identifier, or has no rows.

    engine: a session with the table's database that may make temporary tables, and is used for nothing else later.

    Raises SqlanonError for whatever keeps the draft from being tried.
    """
    if profile.combination is None or not profile.rows:
        return None
    judged = len(_about_attributes(models_of(draft)))
    if judged > MOST_JUDGED:
        raise PolicyError(f"it has {judged} models about columns, and is tried with {MOST_JUDGED} at most.")
    began = time.perf_counter()
    costs = _Sample(engine, profile, draft).tried()
    return replace(costs, seconds=time.perf_counter() - began)


def _about_attributes(models: Sequence[PrivacyModel]) -> list[PrivacyModel]:
    return [model for model in models if model.attribute is not None]


@dataclass(frozen=True)
class _Sample:
    """The sample on which a draft is tried."""

    engine: Engine
    profile: Profile
    draft: Policy

    def tried(self) -> DraftCosts:
        """Make the sample, and try the draft on it where its rows are."""
        table = TemporaryWorkspace(self.engine).table("sample")
        policy = self._policy(str(table))
        modulus = max(1, -(-self.profile.tuples // MOST_TUPLES))
        with self.engine.transaction():
            hold_trusted(policy, self.engine, self.profile.relation)
            self._create(table, list(policy.attributes), modulus)
        return self.engine.carry_out_with_rows((), (table,), _SampleSearch(policy, table, modulus == 1))

    def _policy(self, table: str) -> Policy:
        """The draft for a table of the columns that are generalized, and of those that a model is about."""
        judged = {model.attribute for model in models_of(self.draft)}
        attributes = {
            name: attribute
            for name, attribute in self.draft.attributes.items()
            if attribute.role is Role.QUASI_IDENTIFIER or name in judged
        }
        places = {"source": Source(url=MEMORY_URL, table=table), "release": ReleaseSection(table="released")}
        return self.draft.model_copy(update={**places, "attributes": attributes})

    def _create(self, table: Relation, names: Sequence[str], modulus: int) -> None:
        columns = [Identifier(name) for name in names]
        count = free_name("n", names)
        share = min(1.0, MOST_ROWS * modulus / self.profile.rows)
        copies = macro("measures.copies", count, LEAST_ROWS, share)
        self.engine.run(
            "inquiries/profile/create_sample",
            table=table,
            relation=self.profile.relation,
            columns=columns,
            count=count,
            copy=free_name("copy", [*names, count.name]),
            copies=copies,
            sampled=in_part(self.engine, [Markup(column) for column in columns], modulus),
        )


@dataclass(frozen=True)
class _SampleSearch:
    """Searches of a sample in the session that holds it; see `DraftCosts`."""

    policy: Policy
    table: Relation
    is_whole: bool

    def __call__(self, engine: Engine) -> DraftCosts:
        """Code the sample once, search it with the draft and with parts of it, and leave no table."""
        workspace = TemporaryWorkspace(engine)
        return carry_out_keeping(workspace, lambda: self._tried(engine, workspace))

    def _tried(self, engine: Engine, workspace: Workspace) -> DraftCosts:
        engine.stay_small()
        engine.analyze(self.table)
        plan = resolve_source(self.policy, engine)
        with engine.transaction():
            coded = encode(engine, plan, workspace)
        return _Attempts(engine, self.policy, coded).all(DraftCosts(plan.rows, self.is_whole, 0.0))


@dataclass(frozen=True)
class _Attempts:
    """Searches of one coded sample."""

    engine: Engine
    policy: Policy
    coded: CodedTable

    def all(self, costs: DraftCosts) -> DraftCosts:
        """The draft, then without each of few models about attributes, then without the column that costs most."""
        models = models_of(self.policy)
        draft = self._attempt(self.coded, models)
        others = _about_attributes(models)
        basic = [model for model in models if model.attribute is None]
        k_alone = self._attempt(self.coded, basic) if others else None
        without = {
            str(one.attribute): k_alone or draft
            if len(others) == 1
            else self._attempt(self.coded, [model for model in models if model is not one])
            for one in (others[:MOST_MODELS] if len(others) <= MANY_MODELS else ())
        }
        result = replace(costs, draft=draft, k_alone=k_alone, without_model=without)
        name = result.costliest
        if name is None or not 1 < len(draft.of) <= WIDE:
            return result
        return replace(result, without_column={name: self._attempt(self._without(name), models)})

    def _without(self, name: str) -> CodedTable:
        """The coded sample with a quasi-identifier that nobody generalizes."""
        fields = tuple(
            replace(one, coding=replace(one.coding, attribute=replace(one.attribute, role=Role.INSENSITIVE)))
            if one.attribute.name == name
            else one
            for one in self.coded.fields
        )
        return replace(self.coded, fields=fields)

    def _attempt(self, coded: CodedTable, models: Sequence[PrivacyModel]) -> Attempt:
        workspace = TemporaryWorkspace(self.engine)
        return carry_out_keeping(workspace, lambda: self._searched(workspace, coded, models))

    def _searched(self, workspace: Workspace, coded: CodedTable, models: Sequence[PrivacyModel]) -> Attempt:
        algorithm = default_algorithm()  # which drafts name
        tuples = count_tuples(self.engine, workspace, coded, groups_of(algorithm, models).fields(coded))
        release = partition_at_medians(self.engine, workspace, coded, tuples, models, lambda _: None)
        loss = measure_loss(self.engine, release)
        (classes,) = self.engine.query_one("count_rows", table=macro("measures.aliased", release.leaves))
        return Attempt(loss.gcp, loss.of, int(classes))
