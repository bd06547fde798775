"""Secret keys of a policy, which names where each is kept: in the environment, or in a file.

A policy never holds a key, neither as it is written nor in memory: whoever uses one reads it then.
"""

from __future__ import annotations

import os
import re
import secrets
import stat
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, PrivateAttr, model_serializer

from sqlanon.errors import PolicyError
from sqlanon.policy.part import Part, Reference, broken
from sqlanon.support.environment import require_set

LEAST_KEY = 16  # bytes
DRAWN = "drawn"
_MOST_KEY = 4096  # bytes of a file that holds a key
_VARIABLE = re.compile(r"\$\{([^}]+)\}")
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class KeyFile(Part):
    """A file that holds a secret key, and that nobody but its owner reads."""

    file: Reference
    """The file, relative to the policy; a line's end behind the key is no part of it."""


class DrawnKey(Part):
    """A key that is drawn when a policy is read, and kept nowhere: `drawn`, as policies and records write it."""

    _secret: bytes = PrivateAttr(default_factory=lambda: secrets.token_bytes(64))

    @property
    def secret(self) -> bytes:
        """Return the bytes of the key."""
        return self._secret

    @model_serializer
    def _write(self) -> str:
        return DRAWN


def _named(given: Any) -> Any:
    """Refuse a key that is written out, in a sentence that does not repeat it."""
    if given == DRAWN:
        return DrawnKey()
    if given is None or isinstance(given, Part) or (isinstance(given, dict) and list(given) == ["file"]):
        return given
    if isinstance(given, str) and _VARIABLE.fullmatch(given):
        return given
    raise broken(
        'must name where the key is kept, and not hold it: key: "${NAME}" of the environment, or key: {file: …}; or'
        " key: drawn, for one that is kept nowhere. A key that was written here is none any more; make another one."
    )


Key = Annotated[str | KeyFile | DrawnKey | None, BeforeValidator(_named)]


def place_of_key(key: str | KeyFile) -> str:
    """Name the place of a key for people."""
    if isinstance(key, KeyFile):
        return f"the file {key.file}"
    return f"the environment variable '{_variable(key)}'"


def read_key(key: str | KeyFile | DrawnKey) -> bytes:
    """Read a secret key: the UTF-8 bytes of a variable, or those of a file but for the end of its line; or a drawn one.

    Raises PolicyError where there is none, it is shorter than 16 bytes, or others may read the file.
    """
    if isinstance(key, DrawnKey):
        return key.secret
    secret = _of_file(key) if isinstance(key, KeyFile) else _of_environment(key)
    if len(secret) < LEAST_KEY:
        raise PolicyError(
            f"{place_of_key(key)} holds a key of fewer than {LEAST_KEY} bytes; `openssl rand -hex 32` makes a good one."
        )
    return secret


def _variable(key: str) -> str:
    match = _VARIABLE.fullmatch(key)
    assert match is not None
    return match[1]


def _of_environment(key: str) -> bytes:
    value = os.environ.get(_variable(key))
    if not value:
        raise PolicyError(f"{place_of_key(key)} is not set; it is to hold the key.")
    return os.fsencode(value)


def _of_file(key: KeyFile) -> bytes:
    require_set(key.file)
    path = Path(key.file).expanduser()
    try:
        with path.open("rb") as file:
            mode, content = os.fstat(file.fileno()).st_mode, file.read(_MOST_KEY + 1)
    except OSError as error:
        raise PolicyError(f"{place_of_key(key)} can't be read: {error.strerror}.") from None
    if os.name == "posix" and mode & _OTHERS:
        raise PolicyError(f"{place_of_key(key)} may be read by others; `chmod 600` it.")
    if len(content) > _MOST_KEY:
        raise PolicyError(f"{place_of_key(key)} holds more than {_MOST_KEY:,} bytes, which is no key.")
    return content.removesuffix(b"\n").removesuffix(b"\r")
