"""Files of templates: of the program and of other packages, and what they compile to."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import re
import sys
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from jinja2.bccache import Bucket


def template_directory() -> Path:
    """Return the directory of the templates: in the wheel inside the package, in a checkout beside it."""
    inside = Path(str(resources.files("sqlanon"))) / "sql_templates"
    return inside if inside.is_dir() else inside.parent.parent / "sql_templates"


def of_package(name: str) -> str | None:
    """Read the template `package:name` of another package; None where there is none."""
    package, colon, path = name.partition(":")
    return read_template(package, path) if colon else None


def read_template(package: str, path: str) -> str | None:
    """Read a template of a package; None where it has none of this name."""
    file_of_template = resources.files(package) / "sql_templates" / path
    return file_of_template.read_text(encoding="utf-8") if file_of_template.is_file() else None


def has_file(packages: Sequence[str], name: str) -> bool:
    """Tell whether the program or one of some packages has a file of templates."""
    of_packages = (of_package(name), *(read_template(package, name) for package in packages))
    return (template_directory() / name).is_file() or any(text is not None for text in of_packages)


_HEAD = re.compile(r"\A\{#-?\s*(.*?)(?:\.\s|:\s|;\s|\.?\s*#\})", re.DOTALL)


@functools.cache
def headline(template: str) -> str | None:
    """Read the first sentence of a template's head, which says what the statement does; None where it has none.

    A template that an earlier version had in another folder is found by its name, if no other has this name. None too
    where the package of the template is not installed any more.
    """
    package, colon, path = template.rpartition(":")
    try:
        folder = Path(str(resources.files(package))) / "sql_templates" if colon else template_directory()
    except ModuleNotFoundError:
        return None
    name = path.rpartition("/")[2]
    files = _named(folder.glob(f"{path}*.sql.j2"), name) or _named(folder.rglob(f"{name}*.sql.j2"), name)
    head = _HEAD.match(files[0].read_text(encoding="utf-8")) if len({file.parent for file in files}) == 1 else None
    return None if head is None else re.sub(r"\{\{ (\w+) \}\}", r"\1", " ".join(head[1].split()))


def _named(files: Iterable[Path], name: str) -> list[Path]:
    """Sort the files of a template: the one of all engines, and those of single engines."""
    return sorted(file for file in files if file.name.split(".")[0] == name)


class CompiledTemplates(FileSystemBytecodeCache):
    """Compiled templates, kept as Python keeps compiled modules: beside the sources, where these can be written to."""

    @classmethod
    def in_package(cls) -> CompiledTemplates:
        kept = Path(importlib.util.cache_from_source(str(template_directory() / "templates.py"))).parent
        return cls(str(kept), f"%s.{sys.implementation.cache_tag}")

    def dump_bytecode(self, bucket: Bucket) -> None:
        if sys.dont_write_bytecode:
            return
        with contextlib.suppress(OSError):
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            super().dump_bytecode(bucket)
