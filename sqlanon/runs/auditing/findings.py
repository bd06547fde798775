"""Findings of an audit: what was tried, what came of it, and what was allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.results.codec import to_json


@dataclass(frozen=True)
class Finding:
    """One thing that was tried.

    audit: `ledger`, `neighbours`, `samples` or `structure`. measured, allowed: for people; numbers as far as they are.
    """

    audit: str
    tried: str
    measured: str
    allowed: str
    passed: bool


@dataclass(frozen=True)
class MechanismsAudit:
    """All findings about a policy.

    confidence: of each lower bound of epsilon. samples: that each bound is made from, half of them to choose its event.
    """

    source: str
    algorithm: str
    epsilon: str
    library: str
    confidence: float
    samples: int
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Tell whether nothing was more than is allowed."""
        return all(one.passed for one in self.findings)

    def as_json(self) -> Any:
        """The audit as plain values."""
        return {**to_json(self), "passed": self.passed}
