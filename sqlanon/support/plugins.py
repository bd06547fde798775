"""Parts that installed packages add to the program by entry points, loaded when a policy names them.

A package names its parts in groups, one for each kind: `sqlanon.guarantees` for privacy models,
`sqlanon.algorithms` for algorithms, alone or of a whole method (`support.methods`), `sqlanon.qualities` for quality
models, `sqlanon.hierarchies` for kinds of hierarchies, `sqlanon.engines` for engines. docs/extending.md shows a whole
package.
"""

from __future__ import annotations

import functools
from importlib.metadata import EntryPoint, entry_points
from typing import Any, TypeVar

from sqlanon.errors import PolicyError

T = TypeVar("T")

GUARANTEES = "sqlanon.guarantees"
ALGORITHMS = "sqlanon.algorithms"
QUALITIES = "sqlanon.qualities"
HIERARCHIES = "sqlanon.hierarchies"
ENGINES = "sqlanon.engines"


@functools.cache
def find_plugins(group: str) -> dict[str, EntryPoint]:
    """List the parts of a kind that installed packages add, by name.

    Raises PolicyError where two packages add parts of one name: which of them is meant can't be told.
    """
    plugins: dict[str, EntryPoint] = {}
    for entry in sorted(entry_points(group=group), key=lambda entry: (entry.name, package_of(entry))):
        other = plugins.get(entry.name)
        if other is not None and other.value != entry.value:
            raise PolicyError(
                f"Two installed packages add '{entry.name}' ({group}): {package_of(other)} and {package_of(entry)}; "
                "uninstall one of them."
            )
        plugins[entry.name] = entry
    return plugins


def load_plugin(group: str, name: str, kind: type[T]) -> type[T] | None:
    """Load the part of this name; None where no package adds it.

    kind: the class that the part must be derived from.

    Raises PolicyError where the part can't be loaded or is of another kind.
    """
    entry = find_plugins(group).get(name)
    if entry is None:
        return None
    part = load_value(group, name)
    if not (isinstance(part, type) and issubclass(part, kind)):
        raise PolicyError(f"'{name}' of the package {package_of(entry)} is no {kind.__name__}.")
    return part


def load_value(group: str, name: str) -> Any:
    """Load what the entry point of this name stands for.

    Raises PolicyError where it can't be loaded.
    """
    entry = find_plugins(group)[name]
    try:
        return entry.load()
    except Exception as error:  # whatever another package's code raises
        raise PolicyError(
            f"'{name}' of the package {package_of(entry)} can't be loaded: {type(error).__name__}: {error}"
        ) from error


def load_parameters(group: str, name: str, kind: type[T]) -> type[T] | None:
    """Load the parameters, as policies give them, of the part of this name; None where no package adds it.

    kind: the class that the part's class `Parameters` must be derived from.

    Raises PolicyError where the part can't be loaded, or has no such class.
    """
    part = load_plugin(group, name, object)
    if part is None:
        return None
    parameters = getattr(part, "Parameters", None)
    if not (isinstance(parameters, type) and issubclass(parameters, kind)):
        raise PolicyError(f"'{name}' ({group}) has no class Parameters derived from {kind.__name__}.")
    return parameters


def package_of(entry: EntryPoint) -> str:
    """Name the package, and its version, that an entry point belongs to."""
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist is not None else entry.value
