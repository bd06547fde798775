"""The modules that commands call, each loaded when something of it is first used.

So help and completion come at once, and a command loads only what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlanon import algorithms as algorithms
    from sqlanon import catalog as catalog
    from sqlanon import hierarchies as hierarchies
    from sqlanon import models as models
    from sqlanon import sql as sql
    from sqlanon.algorithms.lattice import options as options
    from sqlanon.algorithms.lattice import refusal as refusal
    from sqlanon.algorithms.lattice.quality import qualities as qualities
    from sqlanon.api import associations as associations
    from sqlanon.api import calls as calls
    from sqlanon.api import demo as demo
    from sqlanon.api import risk as risk
    from sqlanon.catalog import location as location
    from sqlanon.cli import plans as plans
    from sqlanon.cli import progress as progress
    from sqlanon.cli import risk_text as risk_text
    from sqlanon.cli import summary as summary
    from sqlanon.cli import watch as watch
    from sqlanon.engines import dialects as dialects
    from sqlanon.engines import embedded as embedded
    from sqlanon.engines import files as files
    from sqlanon.engines import read_options as read_options
    from sqlanon.engines import session_limits as session_limits
    from sqlanon.inquiries.federation import federation_plan as federation_plan
    from sqlanon.inquiries.federation import lacking as lacking
    from sqlanon.inquiries.federation import serving as serving
    from sqlanon.inquiries.federation import support as support
    from sqlanon.inquiries.questions import ask_function as ask_function
    from sqlanon.inquiries.risk import association_mining as association_mining
    from sqlanon.jobs import cron as cron
    from sqlanon.jobs import environment as environment
    from sqlanon.jobs import forms as forms
    from sqlanon.jobs import freezing as freezing
    from sqlanon.jobs import pg_cron as pg_cron
    from sqlanon.jobs import running as running
    from sqlanon.jobs import schedulers as schedulers
    from sqlanon.jobs.dbt import project as project
    from sqlanon.measures.workload import utility as utility
    from sqlanon.methods.differential_privacy import granting as granting
    from sqlanon.methods.differential_privacy.drawing import units as units
    from sqlanon.methods.differential_privacy.mechanism_audit import mechanisms_audit as mechanisms_audit
    from sqlanon.plan import connecting as connecting
    from sqlanon.policy import grants as grants
    from sqlanon.policy import loading as loading
    from sqlanon.policy import schema as schema
    from sqlanon.releases.rules import box_labels as box_labels
    from sqlanon.releases.rules import export_sql as export_sql
    from sqlanon.releases.rules import store_rules as store_rules
    from sqlanon.report import difference as difference
    from sqlanon.report import explore_page as explore_page
    from sqlanon.report import material as material
    from sqlanon.report import page as page
    from sqlanon.report import queries as queries
    from sqlanon.report import risk_page as risk_page
    from sqlanon.report import sample as sample
    from sqlanon.report.audit import audits as audits
    from sqlanon.report.drawing import picture as picture
    from sqlanon.report.drawing import tradeoff as tradeoff
    from sqlanon.report.run_record import check as check
    from sqlanon.results import codec as codec
    from sqlanon.runs import applying as applying
    from sqlanon.runs import dry_run as dry_run
    from sqlanon.runs import linking as linking
    from sqlanon.runs import resuming as resuming
    from sqlanon.runs import runner as runner
    from sqlanon.runs import sources as sources
    from sqlanon.runs.tradeoffs import comparing as comparing
    from sqlanon.runs.tradeoffs import explore_lattice as explore_lattice
    from sqlanon.runs.tradeoffs import explore_tradeoff as explore_tradeoff
    from sqlanon.runs.tradeoffs import sweeping as sweeping
    from sqlanon.work import session as session
    from sqlanon.work import workspace as workspace

MODULES = {
    "algorithms": "sqlanon.algorithms",
    "applying": "sqlanon.runs.applying",
    "ask_function": "sqlanon.inquiries.questions.ask_function",
    "asking": "sqlanon.inquiries.questions.ask",
    "asking_with_noise": "sqlanon.inquiries.questions.ask_with_noise",
    "association_mining": "sqlanon.inquiries.risk.association_mining",
    "associations": "sqlanon.api.associations",
    "condensing": "sqlanon.methods.clustering.streams",
    "audits": "sqlanon.report.audit.audits",
    "session_limits": "sqlanon.engines.session_limits",
    "sample": "sqlanon.report.sample",
    "box_labels": "sqlanon.releases.rules.box_labels",
    "calls": "sqlanon.api.calls",
    "classifying": "sqlanon.methods.randomization.reconstruction.compare_classifiers",
    "filtering": "sqlanon.methods.randomization.reconstruction.measure_filter",
    "catalog": "sqlanon.catalog",
    "check": "sqlanon.report.run_record.check",
    "codec": "sqlanon.results.codec",
    "comparing": "sqlanon.runs.tradeoffs.comparing",
    "connecting": "sqlanon.plan.connecting",
    "cron": "sqlanon.jobs.cron",
    "demo": "sqlanon.api.demo",
    "dialects": "sqlanon.engines.dialects",
    "difference": "sqlanon.report.difference",
    "distribution": "sqlanon.methods.randomization.reconstruction.picture",
    "dry_run": "sqlanon.runs.dry_run",
    "embedded": "sqlanon.engines.embedded",
    "environment": "sqlanon.jobs.environment",
    "explore_lattice": "sqlanon.runs.tradeoffs.explore_lattice",
    "explore_page": "sqlanon.report.explore_page",
    "risk_page": "sqlanon.report.risk_page",
    "explore_tradeoff": "sqlanon.runs.tradeoffs.explore_tradeoff",
    "export_sql": "sqlanon.releases.rules.export_sql",
    "federation_plan": "sqlanon.inquiries.federation.federation_plan",
    "files": "sqlanon.engines.files",
    "forms": "sqlanon.jobs.forms",
    "freezing": "sqlanon.jobs.freezing",
    "granting": "sqlanon.methods.differential_privacy.granting",
    "grants": "sqlanon.policy.grants",
    "hierarchies": "sqlanon.hierarchies",
    "linking": "sqlanon.runs.linking",
    "loading": "sqlanon.policy.loading",
    "location": "sqlanon.catalog.location",
    "mechanisms_audit": "sqlanon.methods.differential_privacy.mechanism_audit.mechanisms_audit",
    "material": "sqlanon.report.material",
    "models": "sqlanon.models",
    "options": "sqlanon.algorithms.lattice.options",
    "page": "sqlanon.report.page",
    "pg_cron": "sqlanon.jobs.pg_cron",
    "picture": "sqlanon.report.drawing.picture",
    "plans": "sqlanon.cli.plans",
    "private": "sqlanon.methods.differential_privacy.text",
    "private_check": "sqlanon.methods.differential_privacy.check",
    "progress": "sqlanon.cli.progress",
    "project": "sqlanon.jobs.dbt.project",
    "qualities": "sqlanon.algorithms.lattice.quality.qualities",
    "queries": "sqlanon.report.queries",
    "hiding": "sqlanon.methods.rule_hiding.text",
    "randomized": "sqlanon.methods.randomization.text",
    "randomizing": "sqlanon.methods.randomization.source",
    "read_options": "sqlanon.engines.read_options",
    "reconstructing": "sqlanon.methods.randomization.reconstruction.reconstruct",
    "refusal": "sqlanon.algorithms.lattice.refusal",
    "resuming": "sqlanon.runs.resuming",
    "risk": "sqlanon.api.risk",
    "risk_text": "sqlanon.cli.risk_text",
    "runner": "sqlanon.runs.runner",
    "sources": "sqlanon.runs.sources",
    "running": "sqlanon.jobs.running",
    "schedulers": "sqlanon.jobs.schedulers",
    "schema": "sqlanon.policy.schema",
    "lacking": "sqlanon.inquiries.federation.lacking",
    "serving": "sqlanon.inquiries.federation.serving",
    "support": "sqlanon.inquiries.federation.support",
    "session": "sqlanon.work.session",
    "sql": "sqlanon.sql",
    "store_rules": "sqlanon.releases.rules.store_rules",
    "summary": "sqlanon.cli.summary",
    "tradeoff": "sqlanon.report.drawing.tradeoff",
    "sweeping": "sqlanon.runs.tradeoffs.sweeping",
    "units": "sqlanon.methods.differential_privacy.drawing.units",
    "utility": "sqlanon.measures.workload.utility",
    "watch": "sqlanon.cli.watch",
    "workspace": "sqlanon.work.workspace",
}


class _Later:
    """Stands for a module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def __getattr__(name: str) -> Any:
    """Return the stand-in for the module of that name."""
    if name not in MODULES:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return _Later(MODULES[name])
