"""References to the environment in texts that people write: `${NAME}`, and `$$` for a `$`."""

from __future__ import annotations

import os
import re

_REFERENCE = re.compile(r"\$\$|\$\{([^}]*)\}")


def expand(text: str) -> tuple[str, list[str]]:
    """The text with every `${NAME}` replaced by the environment's value, and the names that are not set."""
    missing: list[str] = []

    def value(found: re.Match[str]) -> str:
        name = found.group(1)
        if name is None:
            return "$"
        if name not in os.environ:
            missing.append(name)
        return os.environ.get(name, "")

    return _REFERENCE.sub(value, text), missing


def references(text: str) -> list[str]:
    """The names that a text refers to as `${NAME}`."""
    return sorted({found.group(1) for found in _REFERENCE.finditer(text) if found.group(1)})
