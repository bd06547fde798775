"""Templates say what they need, in their heads, and calls pass that and nothing else."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from jinja2 import Environment, nodes

from sqlanon.engines.duckdb.dialect import DuckDB
from sqlanon.engines.postgres.dialect import PostgreSQL
from sqlanon.engines.spark.dialect import SparkSQL
from sqlanon.engines.spark.unplaced import Place, PlacesRenderer
from sqlanon.errors import EngineError
from sqlanon.sql import Identifier, Renderer, macro, renderer
from sqlanon.support.template_files import headline
from tests.template_heads import FOLDER, WIDTH, includes, needs, needs_of, template_files, with_head

PROGRAM = Path(__file__).parent.parent / "sqlanon"
TEMPLATES = {
    file.removesuffix(".sql.j2").removesuffix(".duckdb").removesuffix(".postgres") for file in template_files()
}

_GLUED = re.compile(r"^.*\w.*\{% endfor %\}\n\w", re.MULTILINE)
_JOIN = re.compile(r"\bJOIN\b")
_LETTERS = re.compile(r"(?<![\w.%])([a-z]\w?)\.(?=[\w*])|\b(?:FROM|JOIN) \w+ AS ([a-z]\w?)\b")
_MOVED_OUT = re.compile(r" +\{% (?!set |include |import )[^%]*%\}.*\S")


AGREED = {
    # `r` is a coded row and `v` an entry of its dictionary: `macros/codes`, and callers of `Field.code`.
    "algorithms/tree/scan/count_avs_groups.sql.j2": {"r"},
    "algorithms/tree/scan/count_persons.sql.j2": {"r"},
    "methods/clustering/gathering/describe_clusters.sql.j2": {"r"},
    "methods/clustering/search/create_centres.sql.j2": {"r"},
    "releases/rules/route_rows.sql.j2": {"r"},
    "staging/stage_values.sql.j2": {"r", "v"},
    # `s` is a row of the source, `r` the rule of its leaf: `macros/codes` and `macros/rules`.
    "releases/rules/select_tree.sql.j2": {"r", "s"},
    # `s` is a row of the release, `w` one of the witness: `macros/verification`.
    "methods/clustering/count_untrue_medians.sql.j2": {"w"},
    "methods/clustering/gathering/count_outside.sql.j2": {"s", "w"},
    "report/release_audit/count_lacking.sql.j2": {"s", "w"},
    # `t` is a tuple of codes: `macros/risk` and the keys of subsets of columns.
    "inquiries/risk/mine_majorities.sql.j2": {"t"},
    "inquiries/risk/mine_rules.sql.j2": {"t"},
    # `x` is a class and `m` its measure: what privacy models of other packages write of them.
    "encoding/frequency/failing_classes.sql.j2": {"m", "x"},
    # `a` and `o` are coded rows, before they are looked up and after, `g` regions: `macros/rows`.
    "staging/select_rows.sql.j2": {"a", "g", "o"},
}
"""Of statements with several joins, the aliases of one or two letters that are agreed with macros and with callers."""


def test_every_head_says_what_its_template_needs() -> None:
    """Also by what is included: that a file takes another variable of its includer shows in the heads of both."""
    stale = [file for file in template_files() if with_head(file) != (FOLDER / file).read_text(encoding="utf-8")]
    assert stale == [], "python -m tests.template_heads --write"


def test_no_line_of_a_template_is_longer_than_one_reads() -> None:
    lines = [(path, line) for path in FOLDER.rglob("*.j2") for line in path.read_text(encoding="utf-8").splitlines()]
    assert [f"{path.name}: {line}" for path, line in lines if len(line) > WIDTH] == []


def test_statements_with_several_joins_name_their_relations_by_words() -> None:
    """Single letters do not say there of which relation a column is."""
    letters = {
        file: found
        for file in template_files()
        if len(_JOIN.findall(text := _text_of(file))) > 1 and (found := _letters_of(text))
    }
    assert letters == AGREED


def _letters_of(text: str) -> set[str]:
    """The aliases of one or two letters that columns are qualified with, or that a relation has."""
    return {alias for found in _LETTERS.findall(text) for alias in found if alias}


def _text_of(file: str) -> str:
    """Write what a template file says itself, in which a digit stands for each expression, and the texts of these."""
    tree = Environment().parse((FOLDER / file).read_text(encoding="utf-8"))
    shown = (part for output in tree.find_all(nodes.Output) for part in output.nodes)
    said = "".join(part.data if isinstance(part, nodes.TemplateData) else "0" for part in shown)
    return " ".join([said, *(one.value for one in tree.find_all(nodes.Const) if isinstance(one.value, str))])


def test_tags_do_not_take_the_spaces_before_what_stands_behind_them() -> None:
    """`{%+ if` keeps the spaces at the beginning of its line, which `{% if` takes away."""
    lines = [(path, line) for path in FOLDER.rglob("*.j2") for line in path.read_text(encoding="utf-8").splitlines()]
    assert [f"{path.name}: {line}" for path, line in lines if _MOVED_OUT.match(line)] == []


def test_ends_of_loops_do_not_take_the_line_break_before_a_word() -> None:
    """`endfor +%}` keeps the line break behind it, which `endfor %}` takes away."""
    texts = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.rglob("*.j2")}
    assert [f"{name}: {found[0]}" for name, text in texts.items() for found in _GLUED.finditer(text)] == []


def test_calls_pass_what_templates_need() -> None:
    """Calls by a template's name pass no argument without use; those of a dictionary are checked when tests call."""
    unneeded = {
        f"{path.name}: {template}": sorted(left)
        for path in sorted(PROGRAM.rglob("*.py"))
        for template, passed in _calls(ast.parse(path.read_text(encoding="utf-8")))
        if (left := min((passed - needs_of(name) for name in _of_name(template)), key=len, default=set()))
    }
    assert unneeded == {}


def _calls(tree: ast.Module) -> Iterator[tuple[str, set[str]]]:
    """The literal first arguments of calls, and the names of the other arguments."""
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and call.args:
            match call.args[0]:
                case ast.Constant(value=str() as template):
                    yield template, {argument.arg for argument in call.keywords if argument.arg}


def test_calls_give_macros_all_their_arguments() -> None:
    """An argument that is missing ends the statement only when it is rendered, which few tests may do."""
    wrong = [
        f"{path.name}:{call.lineno}: {name}"
        for path in sorted(PROGRAM.rglob("*.py"))
        for call, name in _macro_calls(ast.parse(path.read_text(encoding="utf-8")))
        if not any(least <= len(call.args) - 1 + len(call.keywords) <= most for least, most in MACROS.get(name, ()))
    ]
    assert wrong == []


def _macros() -> dict[str, set[tuple[int, int]]]:
    """The fewest and the most arguments of each macro, by the name that calls use; dialects may differ."""
    found: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for folder in ("macros", "dialects"):
        for path in (FOLDER / folder).glob("*.j2"):
            for one in Environment().parse(path.read_text(encoding="utf-8")).find_all(nodes.Macro):
                name = f"{path.name.partition('.')[0]}.{one.name}" if folder == "macros" else one.name
                found[name].add((len(one.args) - len(one.defaults), len(one.args)))
    return found


MACROS = _macros()


def _macro_calls(tree: ast.Module) -> Iterator[tuple[ast.Call, str]]:
    """The calls of `macro` by a literal name whose arguments can be counted."""
    for call in ast.walk(tree):
        match call:
            case ast.Call(
                func=ast.Name(id="macro") | ast.Attribute(attr="macro"),
                args=[ast.Constant(value=str() as name), *more],
                keywords=named,
            ) if not any(isinstance(one, ast.Starred) for one in more) and all(one.arg for one in named):
                yield call, name


def test_templates_call_macros_that_a_dialect_has() -> None:
    """A macro that no dialect has ends the statement only when it is rendered, which few tests may do."""
    wrong = {
        f"{path.relative_to(FOLDER)}: d.{call.attr}"
        for path in FOLDER.rglob("*.j2")
        for call in Environment().parse(path.read_text(encoding="utf-8")).find_all(nodes.Getattr)
        if call.node == nodes.Name("d", "load") and call.attr not in MACROS
    }
    assert wrong == set()


ENGINES: dict[str, Callable[[], Renderer]] = {
    "duckdb": DuckDB.renderer,
    "postgres": PostgreSQL.renderer,
    "spark": SparkSQL.renderer,
    "spark, by place": lambda: PlacesRenderer(DuckDB.renderer(), SparkSQL.renderer()),
}


def texts_of(render: Renderer, template: str, **values: Any) -> list[str]:
    """Write a statement for every place that it may go to."""
    statement = render(template, **values)
    return [render.finished(statement, place).text for place in Place] if isinstance(render, PlacesRenderer) else []


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", ["colate", "relations.colum", "relation.column"])
def test_a_misspelt_macro_is_an_error_of_every_engine(engine: str, name: str) -> None:
    render = ENGINES[engine]()
    with pytest.raises(EngineError, match=f"no macro `{name}` in {render.dialects[0]}"):
        render.macro(name, Identifier("a"))
    with pytest.raises(EngineError, match=f"no macro `{name}` in {render.dialects[0]}"):
        texts_of(render, "count_rows", table=macro("relations.aliased", macro(name, Identifier("a")), Identifier("x")))


@pytest.mark.parametrize("engine", ENGINES)
def test_a_macro_that_a_template_misspells_is_an_error_of_every_engine(
    engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / tmp_path.name  # a name of its own, as modules are imported once
    (package / "sql_templates").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "sql_templates" / "calling.sql.j2").write_text("{# Calls it. Needs: a. #}\nSELECT {{ d.colate(a) }}")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(EngineError, match="no macro `colate` in"):
        texts_of(ENGINES[engine](), f"{package.name}:calling", a=Identifier("a"))


def _of_name(name: str) -> list[str]:
    """The templates that a call may mean; callers within a part leave its folder out."""
    return [name] if name in TEMPLATES else [one for one in TEMPLATES if one.endswith(f"/{name}")]


def test_what_a_template_has_no_use_for_is_refused() -> None:
    """The tests hold every call to it, see `refuse_unneeded_values`."""
    with pytest.raises(AssertionError, match="engines/set_setting has no use for budget"):
        renderer("duckdb")("engines/set_setting", name=1, value=2, budget=3)


def test_what_an_includer_sets_for_an_include_stands_around_it() -> None:
    """In a `with`, so that no file sees by accident what its includer loops over or sets for itself."""
    unsaid = {
        f"{file} includes {included}": sorted(left)
        for file in template_files()
        for included, given in includes(file)
        if (left := needs(included) - needs(file) - given)
    }
    assert unsaid == {}


def test_every_template_says_in_its_first_sentence_what_it_does() -> None:
    names = {file.split(".")[0] for file in template_files()}
    assert [name for name in sorted(names) if not headline(name)] == []
    assert headline("no/such_template") is None


def test_a_template_of_an_earlier_version_or_of_a_package_that_is_gone_stops_nobody() -> None:
    """Runs are recorded with the names that their templates had then."""
    assert headline("lattice/create_first_edges") == headline("methods/generalization/lattice/create_first_edges")
    assert headline("lattice/count_rows") is None  # two have this name
    assert headline("package_that_is_gone:folder/measure") is None
    assert headline("package_that_is_gone.part:measure") is None
