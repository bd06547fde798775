"""The process from which Spark on this machine forks the workers of its tasks.

It has loaded what their work needs, which takes a worker some four seconds of its own. Spark ends workers that have
nothing to do for a minute, so that most works get a new one.
"""

from __future__ import annotations

import contextlib
import importlib

NEEDED = (
    "pandas",
    "pyspark.worker",
    "sqlanon.engines.spark.tasks",
    "sqlanon.measures.coded_figures",
    "sqlanon.algorithms.placement",
    "sqlanon.algorithms.tree.partitioning",
    "sqlanon.methods.generalization.lattice.search",
)
"""Modules that works name when they are unpickled, which load all others."""

if __name__ == "__main__":
    for name in NEEDED:
        with contextlib.suppress(ImportError):  # a task says what it lacks
            importlib.import_module(name)
    importlib.import_module("pyspark.daemon").manager()
