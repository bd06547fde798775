"""Parts of the program by name, loaded when they are first used: engines and searches bring libraries of their own."""

from __future__ import annotations

import importlib
from typing import Any


def load_part(path: str) -> Any:
    """Load the part `module:name`."""
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
