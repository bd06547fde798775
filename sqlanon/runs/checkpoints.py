"""The checkpoint of a run, written as soon as its search is over, so that another can go on if the run is stopped.

It is the recoding function, in tables that outlive the session and a crash of the server, and by what it was found: the
policy, the versions of program and database, the source's rows as a digest. It goes when the run clears up.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from sqlanon import __version__
from sqlanon.algorithms.search_options import SearchOptions
from sqlanon.catalog import RulesKind, RulesRecord
from sqlanon.engines.base import Engine
from sqlanon.engines.columns import Column
from sqlanon.hierarchies.digests import describe_costs, describe_hierarchies
from sqlanon.models import models_of
from sqlanon.plan.plan import Plan
from sqlanon.policy.writer import policy_text
from sqlanon.results.codec import to_json
from sqlanon.results.search_facts import Facts, facts_of, kind_of
from sqlanon.runs.result_builder import ResultBuilder


@dataclass(frozen=True)
class CheckpointBasis:
    """The inputs of a search: searches with equal inputs find the same. Digests, but for the version."""

    policy: str
    hierarchies: str
    versions: str
    source: str

    def differences(self, other: CheckpointBasis) -> list[str]:
        """List the differences from the other, in words."""
        words = {
            "policy": "the policy, or an option of the search, is another",
            "hierarchies": "a file of a hierarchy has changed",
            "versions": "sqlanon or the database is of another version",
            "source": "the source has changed",
        }
        return [text for name, text in words.items() if getattr(self, name) != getattr(other, name)]


@dataclass(frozen=True)
class Checkpoint:
    """The rules that a search came to, with their digest, what it had to say of itself, and what it went by."""

    basis: CheckpointBasis
    rules: RulesRecord
    digest: str
    rounds: int
    facts: Facts
    chart: Mapping[str, Any] | None

    def as_json(self) -> str:
        return json.dumps({**asdict(self), "facts": to_json(self.facts), "kind": self.facts.kind})

    @classmethod
    def from_json(cls, text: str) -> Checkpoint:
        values = json.loads(text)
        rules, facts = values["rules"], values.get("facts", values.get("found"))  # `found` in earlier versions
        return cls(
            CheckpointBasis(**values["basis"]),
            RulesRecord(**{**rules, "kind": RulesKind(rules["kind"])}),
            values["digest"],
            values["rounds"],
            facts_of(values.get("kind") or kind_of(facts), facts),
            values["chart"],
        )


def looked_at(plan: Plan) -> list[Column]:
    """List the columns of the source that the search or a model looks at."""
    judged = {plan.policy.target, *(model.attribute for model in models_of(plan.policy))}
    quasi = plan.quasi_identifiers
    columns = [a.column for a in plan.attributes if a in quasi or a.name in judged]
    return columns if plan.person is None else [*columns, plan.person.column]


def basis_of(engine: Engine, plan: Plan, search_options: SearchOptions, source: str) -> CheckpointBasis:
    """Digest the inputs of a search over this plan.

    source: the digest of the source's rows in the columns that are `looked_at`, of the snapshot that is coded.
    """
    policy = plan.policy
    return CheckpointBasis(
        policy=_digest(policy_text(policy) + json.dumps(asdict(search_options))),
        hierarchies=_digest(json.dumps([describe_hierarchies(policy), describe_costs(policy)])),
        versions=f"sqlanon {__version__}, {engine.version}",
        source=_digest(f"{plan.source_place} {source}"),
    )


def checkpoint_of(basis: CheckpointBasis, rules: RulesRecord, digest: str, outcome: ResultBuilder) -> Checkpoint:
    """The checkpoint of a run whose search is over."""
    return Checkpoint(basis, rules, digest, outcome.rounds, outcome.facts, outcome.lattice)


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
