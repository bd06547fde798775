"""What the catalog keeps of a run: its release, its quasi-identifiers, its hierarchies."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

from sqlanon.catalog import HierarchyRecord, ReleaseKind, ReleaseRecord
from sqlanon.digest import FILE
from sqlanon.encoding.fields import Field
from sqlanon.hierarchies.digests import hierarchy_digest
from sqlanon.runs.outcome import Outcome, QuasiIdentifier


def release_record(outcome: Outcome, digest: str | None) -> ReleaseRecord:
    """The release of a run that was verified; `digest`: of its rules, if they are stored."""
    assert outcome.verification is not None
    statistics = outcome.verification.statistics
    recoding = json.dumps({"algorithm": outcome.algorithm, "rounds": outcome.rounds, **outcome.found})
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


def quasi_identifier(
    coded: Field, values: Mapping[str, int], labels: Mapping[str, int], lost: Mapping[str, float]
) -> QuasiIdentifier:
    """What became of an attribute; by attribute: its different values before, its labels after, its loss."""
    attribute, name, hierarchy = coded.attribute, coded.attribute.name, coded.coding.hierarchy
    return QuasiIdentifier(
        name=name,
        type=attribute.column.type,
        show=attribute.show.value,
        hierarchy=None if attribute.hierarchy is None else attribute.hierarchy.kind,
        height=None if hierarchy is None else hierarchy.height,
        values=values.get(name),
        labels=labels[name],
        loss=lost.get(name),
    )


def hierarchy_record(coded: Field) -> HierarchyRecord:
    """The hierarchy of an attribute that has one."""
    hierarchy, specification = coded.coding.hierarchy, coded.attribute.hierarchy
    assert hierarchy is not None
    assert specification is not None
    text = specification.model_dump_json(exclude_defaults=True)
    digest = hierarchy_digest(coded.attribute.name, specification).removeprefix(FILE)
    return HierarchyRecord(coded.attribute.name, digest, text, hierarchy.height, hierarchy.leaves)
