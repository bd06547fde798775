"""The modules that commands call, each loaded when something of it is first used; deferred.pyi lists them.

So help and completion come at once, and a command loads only what it needs.
"""

from __future__ import annotations

import importlib
from typing import Any

from sqlanon.support.stubs import listed_in

MODULES = {name: f"{package}.{module}" for name, (package, module) in listed_in(__file__).items()}


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
