"""The modules that commands call, each loaded when something of it is first used.

So help and completion come at once, and a command loads only what it needs.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sqlanon import (
        algorithms,
        api,
        before_after,
        catalog,
        demo,
        difference,
        dry_run,
        grants,
        hierarchies,
        models,
        reading,
        sql,
    )
    from sqlanon.audit import auditing
    from sqlanon.catalog import location
    from sqlanon.cli import plans, progress, summary, watch
    from sqlanon.dbt import project
    from sqlanon.drawing import picture, tradeoff
    from sqlanon.engines import base, dialects, embedded, files
    from sqlanon.exploring import explorer, trials
    from sqlanon.jobs import cron, environment, freezing, pg_cron, running, schedulers
    from sqlanon.lattice import options, qualities, refusal
    from sqlanon.policy import loading, schema
    from sqlanon.report import material, page
    from sqlanon.results import codec
    from sqlanon.rules import box_labels, export_sql, store_rules
    from sqlanon.runs import applying, linking, resuming, runner
    from sqlanon.signoff import check
    from sqlanon.work import session, workspace
    from sqlanon.workload import utility

_PARTS = {
    "sqlanon.audit": ("auditing",),
    "sqlanon.catalog": ("location",),
    "sqlanon.cli": ("plans", "progress", "summary", "watch"),
    "sqlanon.dbt": ("project",),
    "sqlanon.drawing": ("picture", "tradeoff"),
    "sqlanon.engines": ("base", "dialects", "embedded", "files"),
    "sqlanon.exploring": ("explorer", "trials"),
    "sqlanon.jobs": ("cron", "environment", "freezing", "pg_cron", "running", "schedulers"),
    "sqlanon.lattice": ("options", "qualities", "refusal"),
    "sqlanon.policy": ("loading", "schema"),
    "sqlanon.report": ("material", "page"),
    "sqlanon.results": ("codec",),
    "sqlanon.rules": ("box_labels", "export_sql", "store_rules"),
    "sqlanon.runs": ("applying", "linking", "resuming", "runner"),
    "sqlanon.signoff": ("check",),
    "sqlanon.work": ("session", "workspace"),
    "sqlanon.workload": ("utility",),
}
_PACKAGE_OF = {module: package for package, modules in _PARTS.items() for module in modules}  # the others: sqlanon

__all__ = [
    "algorithms",
    "api",
    "applying",
    "auditing",
    "base",
    "before_after",
    "box_labels",
    "catalog",
    "check",
    "codec",
    "cron",
    "demo",
    "dialects",
    "difference",
    "dry_run",
    "embedded",
    "environment",
    "explorer",
    "export_sql",
    "files",
    "freezing",
    "grants",
    "hierarchies",
    "linking",
    "loading",
    "location",
    "material",
    "models",
    "options",
    "page",
    "pg_cron",
    "picture",
    "plans",
    "progress",
    "project",
    "qualities",
    "reading",
    "refusal",
    "resuming",
    "runner",
    "running",
    "schedulers",
    "schema",
    "session",
    "sql",
    "store_rules",
    "summary",
    "tradeoff",
    "trials",
    "utility",
    "watch",
    "workspace",
]


class _Later:
    """Stands for a module."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        return getattr(importlib.import_module(self._name), name)


def __getattr__(name: str) -> Any:
    """Return the stand-in for the module of that name."""
    if name not in __all__:
        raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
    return _Later(f"{_PACKAGE_OF.get(name, 'sqlanon')}.{name}")
