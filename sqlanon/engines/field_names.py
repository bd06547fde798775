"""Names of a file's columns: those in its first line, those that a policy gives, or their places."""

from __future__ import annotations

from collections.abc import Sequence

from sqlanon.engines.read_options import ReadOptions
from sqlanon.errors import PolicyError


def column_names(fields: Sequence[str], options: ReadOptions, path: str) -> list[str]:
    """The names of the columns of a file with these fields in its first line; without a name they go by their places.

    Raises PolicyError for a name given twice, and where `options` name more or fewer columns.
    """
    if options.names and len(options.names) != len(fields):
        raise PolicyError(
            f"source.names: there are {len(options.names)} names, and {len(fields)} fields in the first line of {path}."
        )
    given = options.names or ([""] * len(fields) if options.header is False else fields)
    names = [name or f"column{place}" for place, name in enumerate(given)]
    folded = [name.casefold() for name in names]
    twice = sorted({name for name, low in zip(names, folded, strict=True) if folded.count(low) > 1})
    if twice:
        raise PolicyError(
            f"Columns of {path} have the same name: {', '.join(twice)}. Rename them in its first line, or by the policy"
            " (source: header: true, names: [...])."
        )
    return names
