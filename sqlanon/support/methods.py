"""The registry of methods of protection: each is a package that says where its parts are.

The program's own are the packages of `sqlanon.methods`. Installed packages add theirs by the entry points of their
algorithms and guarantees, which lead to the method. A package gives its `Method` under the name `METHOD`, and loads
nothing for it: parts are named as `module:name`, within the package, and loaded when they are used. Nobody else imports
a method.
"""

from __future__ import annotations

import functools
import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlanon.errors import PolicyError
from sqlanon.support.plugins import ALGORITHMS, GUARANTEES, find_plugins, load_value

_HOME = "sqlanon.methods"

T = TypeVar("T")


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
        except Exception as error:  # whatever another package's code raises
            if self.is_own:
                raise
            raise PolicyError(
                f"{part} of the package {self.package} can't be loaded: {type(error).__name__}: {error}"
            ) from error

    def load_class(self, parts: Mapping[str, str], name: str, kind: type[T]) -> type[T]:
        """Load the class that one of the method's tables has under a name.

        kind: the class that it must be derived from.

        Raises PolicyError where the table has no such name, or where the class can't be loaded or is of another kind.
        """
        if name not in parts:
            raise PolicyError(f"The package {self.package} adds '{name}', and its METHOD does not say where it is.")
        loaded = self.load(parts[name])
        if not (isinstance(loaded, type) and issubclass(loaded, kind)):
            raise PolicyError(f"{parts[name]} of the package {self.package} is no {kind.__name__}.")
        return loaded


@functools.cache
def own_methods() -> tuple[Method, ...]:
    """List the program's own methods."""
    home = importlib.import_module(_HOME)
    own = [importlib.import_module(f"{_HOME}.{module.name}").METHOD for module in pkgutil.iter_modules(home.__path__)]
    return tuple(sorted(own, key=lambda method: method.place))


def added_method(group: str, name: str) -> Method | None:
    """Load the method of an installed package that adds a part of this name; None where none does.

    group: of the part, `ALGORITHMS` or `GUARANTEES`.

    Raises PolicyError where the package can't be loaded.
    """
    added = load_value(group, name) if name in find_plugins(group) else None
    return added if isinstance(added, Method) else None


def added_methods(broken: Callable[[PolicyError], None]) -> list[Method]:
    """Load the methods of installed packages, each once; `broken` takes the errors of those that can't be loaded."""
    added: dict[str, Method] = {}
    for group in (ALGORITHMS, GUARANTEES):
        for name in _unless(broken, find_plugins, group) or ():
            method = _unless(broken, added_method, group, name)
            if method is not None:
                added[method.package] = method
    return list(added.values())


def _unless(broken: Callable[[PolicyError], None], call: Callable[..., T], *arguments: str) -> T | None:
    try:
        return call(*arguments)
    except PolicyError as error:
        broken(error)
        return None


def method_of(algorithm: str) -> Method | None:
    """Find the method that adds an algorithm; None where none does.

    Raises PolicyError where an installed package adds it, but can't be loaded.
    """
    own = next((method for method in own_methods() if algorithm in method.algorithms), None)
    return own or added_method(ALGORITHMS, algorithm)


def _method_of_guarantee(name: str) -> Method | None:
    own = next((method for method in own_methods() if name in method.guarantees), None)
    return own or added_method(GUARANTEES, name)


def methods_of_policy(algorithm: str, guarantees: Sequence[str]) -> list[Method]:
    """List the methods of an algorithm and of guarantees, each once."""
    named = (method_of(algorithm), *map(_method_of_guarantee, guarantees))
    return list({method.package: method for method in named if method is not None}.values())
