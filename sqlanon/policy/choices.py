"""Choices for people: the parts that a policy can name, the program's own and those of installed packages."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass

from sqlanon.support.plugins import find_plugins, package_of

TAGS = ("model", "name")  # the keys that name a part, which are no parameters of it


@dataclass(frozen=True)
class Choice:
    """A part that policies can name: its name there, its parameters, its meaning, and the package that adds it."""

    name: str
    parameters: list[str]
    meaning: str
    package: str


def describe_choices(
    group: str, names: Iterable[str], own: Collection[str], parameters_of: Callable[[str], type | None]
) -> list[Choice]:
    """Describe the parts of a kind, of which the program has its own, by the class of the parameters that they take.

    A part without parameters is described by its own class.

    Raises PolicyError where one of them can't be loaded.
    """
    described = []
    for name in names:
        parameters = parameters_of(name)
        assert parameters is not None
        meaning = " ".join((inspect.getdoc(parameters) or "").partition("\n\n")[0].split())
        package = "sqlanon" if name in own else package_of(find_plugins(group)[name])
        fields = getattr(parameters, "model_fields", {})
        keys = [info.alias or key for key, info in fields.items() if key not in TAGS]
        described.append(Choice(name, keys, meaning, package))
    return described
