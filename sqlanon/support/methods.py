"""The registry of methods of protection: each is a package that says where its parts are.

The program's own are the packages of `sqlanon.methods`; installed packages add theirs by entry points of the group
`sqlanon.methods`. A package gives its `Method` under the name `METHOD`, and loads nothing for it: parts are named as
`module:name`, within the package, and loaded when they are used. Nobody else imports a method.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib.metadata import EntryPoint
from typing import Any

from sqlanon.errors import PolicyError
from sqlanon.support.plugins import METHODS, find_plugins, load_value, package_of

_HOME = "sqlanon.methods"


@dataclass(frozen=True)
class Method:
    """The parts of a method, each by its name as `module:name` within the package.

    package: the name of the package. place: in lists for people, which name lower ones first.
    algorithms: by the names that policies give them, the parameters that they take there.
    searches: the classes of those that search for classes of rows (`algorithms.base.Algorithm`).
    guarantees: by name, the parameters of models that promise how a release is drawn.
    rules: a function that gives the problems of a policy which names an algorithm or guarantee of the method; it takes
        the policy, and a function that writes the path of a key for people.
    search_picture: draws what a search looked at, for the report of its run; a function of the result.
    commands: of the command line, by the module that registers them.
    The parts of a method whose releases show no classes:
    source: the class of its release source, made of a policy; check: finds why a run would be refused.
    audit: holds a published release against its record. result: the class of its results; key: of their records.
    text: its texts for the command line (`cli.release_texts.ReleaseTexts`). page: renders the report of a run.
    """

    package: str
    place: int
    algorithms: Mapping[str, str] = field(default_factory=dict)
    searches: Mapping[str, str] = field(default_factory=dict)
    guarantees: Mapping[str, str] = field(default_factory=dict)
    rules: str | None = None
    search_picture: str | None = None
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str | None = None
    check: str | None = None
    audit: str | None = None
    result: str | None = None
    key: str | None = None
    text: str | None = None
    page: str | None = None

    @property
    def is_own(self) -> bool:
        """Tell whether the program brings the method."""
        return self.package.startswith(f"{_HOME}.")

    def load(self, part: str) -> Any:
        """Load a part that the method names.

        Raises PolicyError where a method of an installed package can't be loaded.
        """
        module, _, name = part.partition(":")
        try:
            return getattr(importlib.import_module(f"{self.package}.{module}"), name)
        except (ImportError, AttributeError) as error:
            if self.is_own:
                raise
            raise PolicyError(f"{part} of the package {self.package} can't be loaded: {error}") from error


@functools.cache
def methods() -> tuple[Method, ...]:
    """List all methods, those of installed packages last.

    Raises PolicyError where one of these can't be loaded, or two methods add parts of one name.
    """
    home = importlib.import_module(_HOME)
    own = [importlib.import_module(f"{_HOME}.{module.name}").METHOD for module in pkgutil.iter_modules(home.__path__)]
    added = [_added(name) for name in find_plugins(METHODS)]
    listed = (*sorted(own, key=lambda method: method.place), *added)
    _require_names(listed)
    return listed


def _added(name: str) -> Method:
    entry = find_plugins(METHODS)[name]
    method = load_value(METHODS, name)
    if not isinstance(method, Method):
        raise PolicyError(f"'{name}' of the package {package_of(entry)} is no Method.")
    return method


def _require_names(listed: tuple[Method, ...]) -> None:
    owners: dict[str, str] = {}
    for method in listed:
        for name in (*method.algorithms, *method.guarantees):
            other = owners.setdefault(name, method.package)
            if other != method.package:
                raise PolicyError(f"Two methods add '{name}': {other} and {method.package}; uninstall one of them.")


def method_of(algorithm: str) -> Method | None:
    """Find the method that adds an algorithm; None where none does."""
    return next((method for method in methods() if algorithm in method.algorithms), None)


def entry_of(name: str) -> EntryPoint:
    """Find the entry point of the method that adds an algorithm or a guarantee of this name."""
    return next(
        entry
        for entry in find_plugins(METHODS).values()
        for method in (load_value(METHODS, entry.name),)
        if name in method.algorithms or name in method.guarantees
    )


def methods_of_policy(algorithm: str, models: list[str]) -> Iterator[Method]:
    """List the methods whose algorithm or guarantees a policy names, each once."""
    for method in methods():
        if algorithm in method.algorithms or not method.guarantees.keys().isdisjoint(models):
            yield method
