"""References to the environment in texts that people write: `${NAME}`, and `$$` for a `$`."""

from __future__ import annotations

import os
import re
from typing import Self

from sqlanon.errors import PolicyError

_REFERENCE = re.compile(r"\$\$|\$\{([^}]*)\}")


def expand(text: str) -> tuple[str, list[str]]:
    """The text with every `${NAME}` replaced by the environment's value, and the names that are not set."""
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        name = match.group(1)
        if name is None:
            return "$"
        if name not in os.environ:
            missing.append(name)
        return os.environ.get(name, "")

    return _REFERENCE.sub(value, text), missing


class Expanded(str):
    """A text out of a policy with its references replaced, which is kept as it was written.

    missing: the names that are not set. The text is as it was written then, and `require_set` refuses it.
    """

    written: str
    missing: tuple[str, ...]

    def __new__(cls, text: str, written: str, missing: tuple[str, ...] = ()) -> Self:
        made = super().__new__(cls, text)
        made.written, made.missing = written, missing
        return made

    def __getnewargs__(self) -> tuple[str, str, tuple[str, ...]]:  # type: ignore[override]
        return str(self), self.written, self.missing


def expanded(text: str) -> str:
    """The text with its references replaced: an `Expanded` if it has any."""
    if not references(text):
        return expand(text)[0]
    value, missing = expand(text)
    return Expanded(text if missing else value, text, tuple(dict.fromkeys(missing)))


def written(text: str) -> str:
    """A text as a policy writes it: with its references, and each other `$` doubled."""
    return text.written if isinstance(text, Expanded) else text.replace("$", "$$")


def without_references(text: str) -> str:
    """Leave the references to the environment out of a text as a policy writes it."""
    return _REFERENCE.sub(lambda match: match[0] if match[1] is None else "", text)


def named(text: str) -> str:
    """A text as it may be recorded and shown: with references as they were written."""
    return text.written if isinstance(text, Expanded) else text


def resolved(name: str) -> str:
    """Return the value that a name given by `named` stands for."""
    return expanded(name) if references(name) else name


def require_set(*texts: str | None) -> None:
    """Raise PolicyError if a text refers to a variable that is not set."""
    missing = {name for text in texts if isinstance(text, Expanded) for name in text.missing}
    if missing:
        raise PolicyError([missing_variable(name) for name in sorted(missing)])


def missing_variable(name: str) -> str:
    """The message about a variable."""
    return f"The environment variable '{name}' is not set."


def references(text: str) -> list[str]:
    """The names that a text refers to as `${NAME}`."""
    return sorted({match.group(1) for match in _REFERENCE.finditer(text) if match.group(1)})
