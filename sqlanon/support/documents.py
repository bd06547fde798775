"""Files that people wrote, or that others may have altered: read within bounds, refused where they can't be meant.

Python's readers take what attackers write: keys that occur twice (of which the last counts, so that a person reads
another document than the program), text that is no Unicode, and nestings that exhaust the stack.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sqlanon.errors import PolicyError, unreadable

DEEPEST = 64  # levels; policies and records have fewer than ten


def read_bounded(path: str | os.PathLike[str], what: str, most: int) -> str:
    """Read a file of text in UTF-8 with at most so many bytes.

    Raises AccessError where it may not be read, PolicyError where there is none, it is longer or no such text.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(most + 1)
    except OSError as error:
        raise unreadable(f"The {what} {path}", error) from None
    except ValueError:
        raise PolicyError(f"The {what} {path} can't be read: this is no name of a file.") from None
    if len(data) > most:
        raise PolicyError(
            f"The {what} {path} has more than {most // 2**20} MiB, the most that is read: is it the right file?"
        )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise PolicyError(f"The {what} {path} is not text in UTF-8.") from None


def parse_json(text: str) -> Any:
    """Parse JSON as strictly as a signature needs it; PolicyError says what is refused, and no value."""
    try:
        data = json.loads(text, object_pairs_hook=_refuse_doubled_keys)
    except RecursionError:
        raise PolicyError(_TOO_DEEP) from None
    except ValueError:
        raise PolicyError("It isn't JSON.") from None
    refuse_odd_data(data)
    return data


_TOO_DEEP = f"It nests deeper than {DEEPEST} levels."


def _refuse_doubled_keys(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        twice, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise PolicyError(f"The key {json.dumps(twice)} is given twice in one object.")
    return data


def refuse_odd_data(data: Any) -> None:
    """Refuse plain data that nests too deep or holds text that is no Unicode, as keys or as values."""
    level = [data]
    for _ in range(DEEPEST):
        level = [part for whole in level for part in _parts(whole)]
        if not level:
            return
    raise PolicyError(_TOO_DEEP)


def _parts(data: Any) -> Iterator[Any]:
    """Yield the values that data holds directly; keys are text, and hold nothing."""
    if isinstance(data, str) and not is_text(data):
        raise PolicyError(f"It holds {NO_TEXT}.")
    if isinstance(data, dict):
        yield from data.keys()
        yield from data.values()
    elif isinstance(data, (list, tuple)):
        yield from data


NO_TEXT = "half a character (a lone surrogate) or a NUL, which is no text to a database"


def is_path_in_text(path: str | os.PathLike[str]) -> bool:
    """Tell whether a path, and that of the file that it leads to, is text, as databases need it."""
    return is_text(os.fspath(path)) and is_text(os.path.realpath(path))


def is_text(text: str) -> bool:
    """Tell whether databases and files can hold a text: Python, JSON and YAML may hold lone surrogates and NULs."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False
