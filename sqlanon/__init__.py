"""sqlanon anonymizes a relational table where it lives.

    from sqlanon import load_policy, run

    result = run(load_policy("policy.yml"))
    print(result.release.rows)

Everything named in `__all__` is the library's public interface; it is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from sqlanon.api.calls import check_policy, check_table, draft_policy, profile_table, table_loss
    from sqlanon.api.frames.anonymizing import anonymize
    from sqlanon.api.frames.result import Anonymized
    from sqlanon.api.labels.label_columns import read_labels
    from sqlanon.api.risk import policy_risk, table_risk
    from sqlanon.catalog.budget_records import Budget
    from sqlanon.engines import connect
    from sqlanon.engines.read_options import ReadOptions
    from sqlanon.engines.session_limits import EngineOptions
    from sqlanon.errors import (
        AccessError,
        BudgetError,
        Cancelled,
        ConflictError,
        EngineError,
        PolicyError,
        ProtectionError,
        SqlanonError,
        VerificationError,
    )
    from sqlanon.inquiries.profile.facts import Profile
    from sqlanon.measures.workload.utility import Utility, release_utility
    from sqlanon.methods.differential_privacy.check import PrivateCheck
    from sqlanon.methods.differential_privacy.granting import close_budget, grant_budget, list_budgets
    from sqlanon.methods.differential_privacy.mechanism_audit.findings import MechanismsAudit
    from sqlanon.methods.differential_privacy.mechanism_audit.mechanisms_audit import audit_mechanisms
    from sqlanon.methods.differential_privacy.result import PrivateResult
    from sqlanon.methods.randomization.reconstruction.classification import Classification
    from sqlanon.methods.randomization.reconstruction.compare_classifiers import compare_classifiers
    from sqlanon.methods.randomization.reconstruction.measure_filter import measure_noise_filter
    from sqlanon.methods.randomization.reconstruction.reconstruct import reconstruct
    from sqlanon.methods.randomization.reconstruction.result import Reconstruction
    from sqlanon.methods.randomization.result import RandomizedResult
    from sqlanon.methods.randomization.source import RandomizedCheck
    from sqlanon.methods.rule_hiding.result import HidingResult
    from sqlanon.methods.rule_hiding.source import HidingCheck
    from sqlanon.models import (
        AlphaK,
        AverageRisk,
        BetaLikeness,
        ConfidenceBound,
        DeltaDisclosure,
        DeltaPresence,
        DistinctLDiversity,
        EntropyLDiversity,
        KAnonymity,
        KMap,
        PopulationUniques,
        RecursiveLDiversity,
        VarianceDiversity,
    )
    from sqlanon.models.closeness import EqualTCloseness, KlTCloseness, OrderedTCloseness
    from sqlanon.plan.plan import Plan
    from sqlanon.policy import Policy
    from sqlanon.policy.loading import build_policy, load_policy, parse_policy
    from sqlanon.report.audit.auditing import Audit
    from sqlanon.report.audit.audits import audit_release
    from sqlanon.report.audit.recorded_audit import RecordedAudit
    from sqlanon.report.difference import Difference
    from sqlanon.report.explore_page import render_explore
    from sqlanon.report.queries import diff_runs, run_record, run_report
    from sqlanon.report.risk_page import render_risk
    from sqlanon.report.run_record.check import RecordCheck, check_record, read_record
    from sqlanon.results.masking import Masking
    from sqlanon.results.risk import PolicyRisk, TableRisk
    from sqlanon.results.run_result import RunResult
    from sqlanon.runs.resuming import resume_run
    from sqlanon.runs.runner import run
    from sqlanon.runs.tradeoffs.comparing import compare_policies
    from sqlanon.runs.tradeoffs.exploration import Exploration
    from sqlanon.runs.tradeoffs.explore_lattice import explore
    from sqlanon.runs.tradeoffs.explore_tradeoff import explore_tradeoff
    from sqlanon.runs.tradeoffs.sweeping import Sweep, sweep
    from sqlanon.runs.tradeoffs.tradeoff import Tradeoff
    from sqlanon.verification.release import verify_release
    from sqlanon.verification.verdict import Verification
    from sqlanon.work.journal import Observer, Silent

_HOMES = {
    "api.calls": ("check_policy", "check_table", "draft_policy", "profile_table", "table_loss"),
    "report.audit.auditing": ("Audit",),
    "report.audit.audits": ("audit_release",),
    "report.audit.recorded_audit": ("RecordedAudit",),
    "report.difference": ("Difference",),
    "engines": ("connect",),
    "engines.read_options": ("ReadOptions",),
    "engines.session_limits": ("EngineOptions",),
    "errors": (
        "AccessError",
        "BudgetError",
        "Cancelled",
        "ConflictError",
        "EngineError",
        "PolicyError",
        "ProtectionError",
        "SqlanonError",
        "VerificationError",
    ),
    "runs.auditing.mechanisms_audit": ("audit_mechanisms",),
    "runs.auditing.findings": ("MechanismsAudit",),
    "runs.tradeoffs.exploration": ("Exploration",),
    "runs.tradeoffs.explore_lattice": ("explore",),
    "runs.tradeoffs.comparing": ("compare_policies",),
    "runs.tradeoffs.explore_tradeoff": ("explore_tradeoff",),
    "runs.tradeoffs.tradeoff": ("Tradeoff",),
    "report.explore_page": ("render_explore",),
    "report.risk_page": ("render_risk",),
    "api.frames.anonymizing": ("anonymize",),
    "api.classifying": ("compare_classifiers",),
    "api.filtering": ("measure_noise_filter",),
    "api.reconstructing": ("reconstruct",),
    "api.granting": ("close_budget", "grant_budget", "list_budgets"),
    "catalog.budget_records": ("Budget",),
    "api.frames.result": ("Anonymized",),
    "api.labels.label_columns": ("read_labels",),
    "api.risk": ("policy_risk", "table_risk"),
    "work.journal": ("Observer", "Silent"),
    "models": (
        "AlphaK",
        "AverageRisk",
        "BetaLikeness",
        "ConfidenceBound",
        "DeltaDisclosure",
        "DeltaPresence",
        "DistinctLDiversity",
        "EntropyLDiversity",
        "KAnonymity",
        "KMap",
        "PopulationUniques",
        "RecursiveLDiversity",
        "VarianceDiversity",
    ),
    "models.closeness": ("EqualTCloseness", "KlTCloseness", "OrderedTCloseness"),
    "plan.plan": ("Plan",),
    "policy": ("Policy",),
    "policy.loading": ("build_policy", "load_policy", "parse_policy"),
    "profile.facts": ("Profile",),
    "report.queries": ("diff_runs", "run_record", "run_report"),
    "results.classification": ("Classification",),
    "results.hiding": ("HidingResult",),
    "results.masking": ("Masking",),
    "results.run_result": ("RunResult",),
    "results.private": ("PrivateResult",),
    "results.randomized": ("RandomizedResult",),
    "results.reconstruction": ("Reconstruction",),
    "results.risk": ("PolicyRisk", "TableRisk"),
    "runs.private_check": ("PrivateCheck",),
    "runs.randomizing": ("RandomizedCheck",),
    "runs.rule_hiding": ("HidingCheck",),
    "runs.resuming": ("resume_run",),
    "runs.runner": ("run",),
    "report.run_record.check": ("RecordCheck", "check_record", "read_record"),
    "runs.tradeoffs.sweeping": ("Sweep", "sweep"),
    "verification.release": ("verify_release",),
    "verification.verdict": ("Verification",),
    "measures.workload.utility": ("Utility", "release_utility"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "AccessError",
    "AlphaK",
    "Anonymized",
    "Audit",
    "AverageRisk",
    "BetaLikeness",
    "Budget",
    "BudgetError",
    "Cancelled",
    "Classification",
    "ConfidenceBound",
    "ConflictError",
    "DeltaDisclosure",
    "DeltaPresence",
    "Difference",
    "DistinctLDiversity",
    "EngineError",
    "EngineOptions",
    "EntropyLDiversity",
    "EqualTCloseness",
    "Exploration",
    "HidingCheck",
    "HidingResult",
    "KAnonymity",
    "KMap",
    "KlTCloseness",
    "Masking",
    "MechanismsAudit",
    "Observer",
    "OrderedTCloseness",
    "Plan",
    "Policy",
    "PolicyError",
    "PolicyRisk",
    "PopulationUniques",
    "PrivateCheck",
    "PrivateResult",
    "Profile",
    "ProtectionError",
    "RandomizedCheck",
    "RandomizedResult",
    "ReadOptions",
    "Reconstruction",
    "RecordCheck",
    "RecordedAudit",
    "RecursiveLDiversity",
    "RunResult",
    "Silent",
    "SqlanonError",
    "Sweep",
    "TableRisk",
    "Tradeoff",
    "Utility",
    "VarianceDiversity",
    "Verification",
    "VerificationError",
    "__version__",
    "anonymize",
    "audit_mechanisms",
    "audit_release",
    "build_policy",
    "check_policy",
    "check_record",
    "check_table",
    "close_budget",
    "compare_classifiers",
    "compare_policies",
    "connect",
    "diff_runs",
    "draft_policy",
    "explore",
    "explore_tradeoff",
    "grant_budget",
    "list_budgets",
    "load_policy",
    "measure_noise_filter",
    "parse_policy",
    "policy_risk",
    "profile_table",
    "read_labels",
    "read_record",
    "reconstruct",
    "release_utility",
    "render_explore",
    "render_risk",
    "resume_run",
    "run",
    "run_record",
    "run_report",
    "sweep",
    "table_loss",
    "table_risk",
    "verify_release",
]


def __getattr__(name: str) -> Any:
    """Import what is asked for, so that `import sqlanon` loads no database driver."""
    if name not in _HOME_OF:
        raise AttributeError(f"module 'sqlanon' has no attribute '{name}'")
    return getattr(importlib.import_module(f"sqlanon.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    """List the public names, those too that were not used yet."""
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
