"""A plan as text for people, and the words that plans and summaries share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sqlanon.cli.layout import table
from sqlanon.engines.urls import redacted
from sqlanon.policy import Policy, Role
from sqlanon.support.quantities import quantity

if TYPE_CHECKING:
    from sqlanon.plan.plan import Plan


def source_text(policy: Policy) -> str:
    """The source as the policy names it."""
    return _place(policy.source.table, policy.source.file, policy.source.url)


def release_text(policy: Policy) -> str:
    """The release as the policy names it."""
    return _place(policy.release.table, policy.release.file, policy.release.url)


def _place(name: str | None, file: str | None, url: str | None) -> str:
    return str(name or file) + (f" ({redacted(url)})" if url else "")


def plan_text(plan: Plan) -> str:
    """The plan: what becomes of which column, under which models, and what is worth a warning."""
    rows = [
        [
            a.name,
            a.column.type,
            plan.policy.attributes[a.name].role.value,
            a.hierarchy.kind if a.hierarchy else "",
            _shown(plan, a.name),
        ]
        for a in plan.attributes
    ]
    rows += [[name, "", Role.IDENTIFIER.value, "", "left out"] for name in plan.identifiers]
    rows += [[name, "", Role.OMIT.value, "", "left out"] for name in plan.omitted]
    parts = [
        f"Source:  {source_text(plan.policy)}, {quantity(plan.rows, 'row')}\nRelease: {release_text(plan.policy)}",
        table(["column", "type", "role", "hierarchy", "in the release"], rows),
        "" if plan.reading is None else listed("Read from the file", plan.reading.lines()),
        "\n".join(["Models:", *(f"  {spec_text(model.shown())}" for model in plan.policy.privacy)])
        if plan.policy.privacy
        else "",
        (plan.repetition.sentence or "") if plan.policy.algorithm.recodes.makes_classes else "",
        listed("Warnings", plan.warnings),
    ]
    return "\n\n".join(part for part in parts if part)


def _shown(plan: Plan, name: str) -> str:
    attribute = plan.attribute(name)
    shown = attribute.role is Role.QUASI_IDENTIFIER or attribute.show.is_mask
    return attribute.show.value if shown else "kept"


def spec_text(values: Mapping[str, Any]) -> str:
    """A model with its parameters."""
    parameters = ", ".join(f"{key}: {value}" for key, value in values.items() if key != "model")
    return f"{values['model']} ({parameters})"


def listed(title: str, lines: Sequence[str]) -> str:
    """Lines under a title; nothing where there are none."""
    return f"{title}:\n" + "\n".join(f"  - {line}" for line in lines) if lines else ""
