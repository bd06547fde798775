"""The lowest versions that pyproject.toml allows, as constraints for pip: `make test-lowest` tries them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

_ALLOWED = re.compile(r"(?P<name>[\w.-]+)(\[[^\]]*\])?>=(?P<version>[\w.]+)")


def constraints() -> list[str]:
    """One line for each dependency of the package itself."""
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    found = [(text, _ALLOWED.match(text)) for text in project["dependencies"]]
    unbounded = [text for text, match in found if match is None]
    if unbounded:
        raise SystemExit(f"No lowest version is said of {', '.join(unbounded)}.")
    return [f"{match['name']}=={match['version']}" for _, match in found if match is not None]


if __name__ == "__main__":
    print("\n".join(constraints()))
