"""SQL and names in files that dbt reads as Jinja templates."""

from __future__ import annotations

import re

from sqlanon.errors import PolicyError

_OPENING = re.compile(r"\{[{%#]")
_UNSAYABLE = re.compile(r'["`\\\x00-\x1f]|\{[{%#]')


def escaped(text: str) -> str:
    """The text as a Jinja template that gives it: what would begin a tag is written as an expression."""
    return _OPENING.sub(lambda match: "{{ '" + match[0] + "' }}", text)


def sayable(name: str) -> str:
    """A table's or schema's name as dbt can be told of it: it puts quotes around it, and doubles none inside.

    Raises PolicyError for a name with quotes, backticks, backslashes, control characters or what begins a Jinja tag.
    """
    if _UNSAYABLE.search(name):
        raise PolicyError(f"dbt can't read the name '{name}': make a view of it with a plainer name (--source).")
    return name
