"""The catalog's records of a run: its end, its release, its quasi-identifiers, its hierarchies."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlanon.catalog import Catalog, HierarchyRecord, ReleaseKind, ReleaseRecord, Status, Step
from sqlanon.catalog.sources import SOURCE_DIGEST, path_digest
from sqlanon.encoding.fields import Field
from sqlanon.engines.base import Engine
from sqlanon.errors import SqlanonError
from sqlanon.hierarchies.digests import hierarchy_digest
from sqlanon.plan.plan import Plan
from sqlanon.policy import Policy
from sqlanon.policy.writer import put_back
from sqlanon.releases.rules.store_rules import StoredRules
from sqlanon.results.codec import to_json
from sqlanon.results.run_result import QuasiIdentifier
from sqlanon.runs.result_builder import ResultBuilder
from sqlanon.sql import Relation
from sqlanon.support.environment import named
from sqlanon.values.digest import FILE


class PublishedRecord:
    """The catalog's record of a release: made in the transaction that publishes it, or after one that is elsewhere."""

    def __init__(
        self, catalog: Catalog, run: str, relation: Relation, release: ReleaseRecord, rules: StoredRules | None = None
    ) -> None:
        self._catalog, self._run, self._relation = catalog, run, relation
        self._release, self._rules = release, rules
        self._is_late = False

    def make_within(self, session: Engine) -> None:
        """Record the release and its rules if the session's transaction can; again, where an attempt was undone."""
        self._is_late = not self._catalog.record_release_within(session, self._run, self._relation, self._release)
        if not self._is_late and self._rules is not None:
            self._catalog.record_rules_within(session, self._run, self._rules.record, self._rules.relations)

    def make_up_for(self) -> None:
        """Record what no transaction could, once the release is published."""
        if not self._is_late:
            return
        self._catalog.record_release(self._run, self._release)
        if self._rules is not None:
            self._catalog.record_rules(self._run, self._rules.record, self._rules.relations)


def record_end(
    catalog: Catalog,
    policy: Policy,
    run: str,
    status: Status,
    *,
    steps: Sequence[Step],
    rows: int | None = None,
    result: str | None = None,
    error: BaseException | None = None,
    kept: BaseException | None = None,
) -> None:
    """Record how a run ended, and its statements, with the names of files as the policy writes them.

    error: that ended it; what fails here is noted on it, and must not hide it. kept: the error as it is recorded.
    """
    try:
        reword = functools.partial(put_back, policy=policy)
        catalog.add_steps(run, [replace(step, statement=reword(step.statement)) for step in steps])
        catalog.finish_run(run, status, result=result, error=kept, source_rows=rows, reword=reword)
    except SqlanonError as failure:
        if error is None:
            raise
        error.add_note(f"The run's end could not be recorded ({failure}).")


def release_record(outcome: ResultBuilder, digest: str | None, plan: Plan) -> ReleaseRecord:
    """The release of a run that was verified; `digest`: of its rules, if they are stored."""
    assert outcome.verification is not None
    statistics = outcome.verification.statistics
    recoding = json.dumps(
        {"algorithm": outcome.algorithm, "rounds": outcome.rounds, **to_json(outcome.facts), **_origin(plan)}
    )
    return ReleaseRecord(
        relation=outcome.release,
        kind=ReleaseKind.REGIONS,
        row_count=statistics.rows,
        suppressed=outcome.suppressed,
        classes=statistics.classes,
        recoding=recoding,
        digest=digest or hashlib.sha256(recoding.encode()).hexdigest(),
        content_digest=outcome.digest,
    )


def record_without_rules(
    relation: str, kind: ReleaseKind, *, rows: int, classes: int, recoding: Mapping[str, Any]
) -> ReleaseRecord:
    """Record a release of all rows that leaves no rules; its digest is of what says how it was made."""
    text = json.dumps(recoding, ensure_ascii=False)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return ReleaseRecord(relation, kind, row_count=rows, suppressed=0, classes=classes, recoding=text, digest=digest)


def _origin(plan: Plan) -> dict[str, str]:
    """Return the digest that tells a source file from others where its name refers to the environment."""
    if plan.source_name == plan.source_place:
        return {}
    return {SOURCE_DIGEST: path_digest(plan.source_place)}


def quasi_identifier(
    coded: Field, values: Mapping[str, int], labels: Mapping[str, int], losses: Mapping[str, float]
) -> QuasiIdentifier:
    """Record an attribute in source and release; by attribute: different values before, labels after, loss."""
    attribute, name, hierarchy = coded.attribute, coded.attribute.name, coded.coding.hierarchy
    return QuasiIdentifier(
        name=name,
        type=attribute.column.type,
        show=attribute.show.value,
        hierarchy=None if attribute.hierarchy is None else attribute.hierarchy.kind,
        height=None if hierarchy is None else hierarchy.height,
        values=values.get(name),
        labels=labels[name],
        loss=losses.get(name),
    )


def hierarchy_record(coded: Field) -> HierarchyRecord:
    """The hierarchy of an attribute that has one."""
    hierarchy, specification = coded.coding.hierarchy, coded.attribute.hierarchy
    assert hierarchy is not None
    assert specification is not None
    content = specification.model_dump(mode="json", exclude_defaults=True)
    if specification.csv is not None:
        content["csv"] = named(specification.csv)
    text = json.dumps(content, ensure_ascii=False)
    digest = hierarchy_digest(coded.attribute.name, specification).removeprefix(FILE)
    return HierarchyRecord(coded.attribute.name, digest, text, hierarchy.height, hierarchy.leaves)
