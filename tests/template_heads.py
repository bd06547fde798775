"""Heads of templates: what each says that it needs, and what it does need by its text and that of what it includes.

`python -m tests.template_heads --write` writes into the first comment of every template which variables it needs.
"""

from __future__ import annotations

import functools
import re
import sys
import textwrap
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, meta, nodes
from jinja2.visitor import NodeTransformer

from sqlanon.sql import DialectRenderer, listed
from sqlanon.support.template_files import template_directory

WIDTH = 140
ENDING = ".sql.j2"
DIALECTS = ("", ".duckdb", ".postgres", ".spark")
FOLDER = template_directory()
_ENVIRONMENT = Environment()
_ENVIRONMENT.filters["listed"] = listed
_GLOBALS = {"d", "common", *_ENVIRONMENT.globals}
_HEAD = re.compile(r"\A\{#(.*?)#\}\n?", re.DOTALL)
_NEEDS = re.compile(r"\s*\bNeeds: ([\w\s,]+)\.")
_GIVES = re.compile(r"\s*\b(Gives: [^.]*\.)")
_DRY = re.compile(r"\s*\b((?:In a dry run|To readers of a dry run): .*?\.)(?=\s|\Z)", re.DOTALL)


def template_files() -> list[str]:
    """The files of all templates; those in `dialects/` and `macros/` are macros, not templates."""
    files = (path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob(f"*{ENDING}"))
    return sorted(file for file in files if not file.startswith(("dialects/", "macros/")))


@functools.cache
def files_of(template: str) -> tuple[str, ...]:
    """The files of a template: one of all dialects, and those of one."""
    files = (f"{template}{dialect}{ENDING}" for dialect in DIALECTS)
    return tuple(file for file in files if (FOLDER / file).is_file())


@functools.cache
def needs(file: str) -> frozenset[str]:
    """The variables that a template file, or a file that it includes, takes from the call."""
    tree = _ENVIRONMENT.parse((FOLDER / file).read_text(encoding="utf-8"))
    _NamesInsteadOfIncludes().visit(tree)
    return frozenset(meta.find_undeclared_variables(tree) - _GLOBALS)


class _NamesInsteadOfIncludes(NodeTransformer):
    """Replaces an include by the names that it needs: what the includer itself sets or loops over is no need of it."""

    def visit_Include(self, node: nodes.Include) -> nodes.Output:
        assert isinstance(node.template, nodes.Const), "the name of an included file is written out"
        return nodes.Output([nodes.Name(name, "load") for name in sorted(needs(node.template.value))])


def includes(file: str) -> list[tuple[str, set[str]]]:
    """The files that a file includes, each with the names that a `with` around it sets."""
    found: list[tuple[str, set[str]]] = []
    left: list[tuple[nodes.Node, set[str]]] = [(_ENVIRONMENT.parse((FOLDER / file).read_text(encoding="utf-8")), set())]
    while left:
        node, given = left.pop()
        if isinstance(node, nodes.Include):
            assert isinstance(node.template, nodes.Const)
            found.append((node.template.value, given))
        if isinstance(node, nodes.With):
            given = given | {target.name for target in node.targets if isinstance(target, nodes.Name)}
        left += [(child, given) for child in node.iter_child_nodes()]
    return found


def needs_of(template: str) -> frozenset[str]:
    """The variables that a template needs for some dialect."""
    return frozenset[str]().union(*map(needs, files_of(template)))


def with_head(file: str) -> str:
    """The text of a file, with a head that says what it needs; what it says of its columns and of dry runs stays."""
    text = (FOLDER / file).read_text(encoding="utf-8")
    head = _HEAD.match(text)
    assert head, f"{file} opens with no comment"
    purpose = _NEEDS.sub("", head[1]).strip()
    given = [" ".join(found.split()) for part in (_GIVES, _DRY) for found in part.findall(purpose)]
    purpose = _DRY.sub("", _GIVES.sub("", purpose)).strip()
    if any(len(line) > WIDTH - 3 for line in purpose.split("\n")):
        purpose = textwrap.fill(" ".join(purpose.split()), WIDTH - 3, break_on_hyphens=False)
    closed = purpose if purpose.endswith((".", "!", "?", ".)")) else f"{purpose}."
    needed = f"Needs: {', '.join(sorted(needs(file))) or 'nothing'}."
    line = f"{{# {closed} {needed} #}}"
    if given or "\n" in closed or len(line) > WIDTH:
        said = "\n".join(map(_wrapped, [*given, needed]))
        purpose = "\n".join(f"   {part.strip()}" if part else "" for part in closed.split("\n"))
        line = f"{{# {purpose.strip()}\n{said} #}}"
        if len(line.rpartition("\n")[2]) > WIDTH:
            line = f"{line.removesuffix(' #}')}\n#}}"
    return f"{line}\n{text[head.end() :]}"


def _wrapped(sentence: str) -> str:
    return textwrap.fill(sentence, WIDTH - 3, initial_indent="   ", subsequent_indent="   ")


@functools.cache
def needs_of_folder(folder: str) -> frozenset[str]:
    """The variables that some template of a folder needs."""
    return frozenset[str]().union(*(needs(file) for file in template_files() if file.rpartition("/")[0] == folder))


@functools.cache
def _unneeded(template: str, names: tuple[str, ...]) -> list[str]:
    """The names that neither a template nor another one of its folder has a use for."""
    known = needs_of(template) | needs_of_folder(template.rpartition("/")[0])
    return sorted(set(names) - known) if files_of(template) else []


def refuse_unneeded_values() -> None:
    """Let rendering fail where a call passes what its template has no use for; what it lacks fails by itself.

    The statements of a step may be handed the same values: what another template of the folder needs is let pass.
    """
    render = DialectRenderer.unfolded

    def checked(self: DialectRenderer, template: str, values: Mapping[str, Any]) -> str:
        unneeded = _unneeded(template, tuple(values))
        assert not unneeded, f"{template} has no use for {', '.join(unneeded)}"
        return render(self, template, values)

    DialectRenderer.unfolded = checked  # type: ignore[method-assign]


def main() -> None:
    """List the templates whose heads are not as they should be; write them with `--write`."""
    for file in template_files():
        text = with_head(file)
        if text != (FOLDER / file).read_text(encoding="utf-8"):
            print(file)
            if "--write" in sys.argv[1:]:
                (FOLDER / file).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
