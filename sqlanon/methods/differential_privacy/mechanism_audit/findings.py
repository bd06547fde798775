"""Findings of an audit of differential privacy: trials, measured results, and the results that are allowed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlanon.results.codec import to_json


@dataclass(frozen=True)
class Finding:
    """A trial of an audit, and its result.

    audit: `ledger`, `neighbours`, `samples` or `structure`. measured, allowed: for people; numbers as far as they are.
    """

    audit: str
    tried: str
    measured: str
    allowed: str
    passed: bool


@dataclass(frozen=True)
class MechanismsAudit:
    """All findings about a policy's differential privacy.

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
        """Tell whether every trial had an allowed result."""
        return all(one.passed for one in self.findings)

    def as_json(self) -> Any:
        """The audit as plain values."""
        return {**to_json(self), "passed": self.passed}
