"""The names that a module gives and loads when they are used, as its stub lists them for type checkers."""

from __future__ import annotations

import re
from pathlib import Path

_LISTED = re.compile(r"^from (\S+) import (\w+) as (\w+)$", re.MULTILINE)


def listed_in(module: str) -> dict[str, tuple[str, str]]:
    """Read the stub beside a module: each name, with the module that it comes from and its name there.

    module: the path of the module's file. The stub has a line `from package import name as name` for each.
    """
    text = Path(module).with_suffix(".pyi").read_text(encoding="utf-8")
    return {name: (package, original) for package, original, name in _LISTED.findall(text)}
