"""loss: what a release lost of its source, and what its numbers risk."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sqlanon.cli.call import Call, Header, Panel, TrustOwner, command, expanded, listed, reading_by
from sqlanon.cli.deferred import calls as api
from sqlanon.cli.deferred import files, loading
from sqlanon.cli.layout import number, percent, table
from sqlanon.cli.release_texts import texts_of_policy
from sqlanon.errors import PolicyError

if TYPE_CHECKING:
    from sqlanon.policy import Policy
    from sqlanon.results.masking import CategoriesLoss, Masking, MaskingRisk, NumbersLoss

UNPAIRED = (
    "Rows are not paired, so only the tables as wholes are compared. Tables have no order: the n-th rows of two need"
    " not belong together. Name columns that tell the rows of both apart by --by."
)

_Place = Annotated[
    str,
    typer.Argument(
        metavar="URL|FILE|POLICY",
        help="A database, with two tables; or the file of the source; or alone, a policy that adds noise.",
        show_default=False,
    ),
]
_First = Annotated[
    str | None, typer.Argument(metavar="SOURCE|FILE", help="The table of the source; or the file of the release.")
]
_Second = Annotated[str | None, typer.Argument(metavar="RELEASE", help="The table of the release, after a URL.")]
_By = Annotated[
    list[str] | None,
    typer.Option(
        help="Columns that tell the rows of both apart, separated by commas; repeat it for names with commas."
    ),
]
_Columns = Annotated[
    list[str] | None, typer.Option(help="Columns to compare, as --by; all that both have if not given.")
]
_Order = Annotated[
    list[str] | None,
    typer.Option(help="All categories of an ordinal column in order, such as grade=A,B,C; may be repeated."),
]

_ReleaseHeader = Annotated[
    bool | None,
    typer.Option(
        "--release-header/--no-release-header",
        help="The same of the first line of the release's file.",
        rich_help_panel="How a file is read",
    ),
]


def register(app: typer.Typer) -> None:
    """Add the command."""
    command(app, "loss", Panel.CHOICE, limits=True)(loss_command)


def loss_command(
    call: Call,
    place: _Place,
    first: _First = None,
    second: _Second = None,
    by: _By = None,
    columns: _Columns = None,
    order: _Order = None,
    dimension: Annotated[int, typer.Option(min=1, help="The most columns of a contingency table.")] = 2,
    sample: Annotated[int, typer.Option(min=1, help="The most rows that are linked by their numbers.")] = 500,
    header: Header = None,
    release_header: _ReleaseHeader = None,
    trust_owner: TrustOwner = False,
) -> None:
    """Measure what any release lost of its source, and the risk of masked numbers. Nothing is changed.

    The release may be another program's. docs/metrics.md says what the measures mean. With a policy of algorithm:
    randomize alone, measure how much of the noise of its release a filter by principal components takes away.
    """
    where = expanded(place)
    is_url = "://" in where
    if first is None and not is_url and not files.is_data_file(where):
        headers = [one for one in (header, release_header) if one is not None]
        if any((by, columns, order, headers)) or trust_owner:
            raise PolicyError(
                "The policy says all itself; leave --by, --columns, --order, --header and --trust-owner out."
            )
        _tell_filter(call, loading.load_policy(where))
        return
    if (
        first is None
        or is_url is (second is None)
        or not (is_url or (files.is_data_file(where) and files.is_data_file(first)))
    ):
        raise PolicyError("Write URL SOURCE RELEASE, or two files: sqlanon loss URL people people_masked --by id.")
    source, release = (first, second or "") if is_url else (where, first)
    measured = api.table_loss(
        where if is_url else None,
        source,
        release,
        by=listed(by),
        columns=listed(columns),
        orders=dict(map(_order, order or [])),
        dimension=dimension,
        sample=sample,
        options=call.options,
        reading=reading_by(header),
        release_reading=reading_by(release_header),
        trusts_owner=trust_owner,
    )
    if call.json:
        call.emit({"source": source, "release": release, "by": listed(by), **measured.as_json()})
    else:
        print(loss_text(measured, source, release, listed(by)))


def _order(text: str) -> tuple[str, list[str]]:
    name, equals, categories = text.partition("=")
    if not name or not equals or not categories:
        raise PolicyError("--order names a column and its categories from the least to the greatest: grade=A,B,C.")
    return name, [category.strip() for category in categories.split(",")]


def loss_text(measured: Masking, source: str, release: str, by: list[str]) -> str:
    """The measures, for people."""
    rows = f"{source} ({measured.source_rows:,} rows) and {release} ({measured.release_rows:,} rows)"
    parts = [f"{rows}, {measured.paired_rows:,} paired by {', '.join(by)}:" if by else f"{rows}:"]
    if measured.numbers is not None:
        parts.append(_numbers_text(measured.numbers))
    if measured.categories is not None:
        parts.append(_categories_text(measured.categories))
    if measured.risk is not None:
        parts.append(_risk_text(measured.risk))
    if not by:
        parts.append(UNPAIRED)
    for which, names in (("source", measured.only_in_source), ("release", measured.only_in_release)):
        if names:
            parts.append(f"Not compared, as only the {which} has them: {', '.join(names)}.")
    return "\n\n".join(parts)


def _numbers_text(numbers: NumbersLoss) -> str:
    headings = ["numbers", "IL1", "IL1s", "IL2 (mean)", "IL3 (variance)", "SSE/SST, %"]
    rows: list[list[object]] = [[one.name, one.il1, one.il1s, one.il2, one.il3, one.sse] for one in numbers.columns]
    rows.append(["all", numbers.il1, numbers.il1s, numbers.il2, numbers.il3, numbers.sse])
    more = f"IL4 (covariances) {number(numbers.il4)}, IL5 (correlations) {number(numbers.il5)}"
    return table(headings, rows) + "\n  " + more + ("" if numbers.il6 is None else f", IL6 {number(numbers.il6)} %")


def _categories_text(categories: CategoriesLoss) -> str:
    rows: list[list[object]] = [[one.name, one.values, one.distance, one.ebil] for one in categories.columns]
    rows.append(["all", None, categories.distance, categories.ebil])
    tables = f"{categories.tables:,} contingency tables of up to {categories.dimension} columns"
    more = f"CTBIL' {categories.ctbil:,} over {tables}, ACTBIL' {number(categories.actbil)} a cell"
    return table(["categories", "values", "distance", "EBIL, bits"], rows) + "\n  " + more


def _risk_text(risk: MaskingRisk) -> str:
    lines = [] if risk.linkage is None else [risk.linkage.sentence]
    lines.append(
        f"Of the source's numbers in {risk.intervals.rows:,} rows {percent(risk.intervals.rank)} lie within 1 to 10 %"
        f" of the ranks around the released ones, {percent(risk.intervals.deviation)} within 1 to 10 % of the standard"
        " deviation."
    )
    if risk.score is not None:
        lines.append(f"Score (½ IL6 + ¼ linkage + ¼ intervals): {number(risk.score)}")
    return "\n".join(lines)


def _tell_filter(call: Call, policy: Policy) -> None:
    """Print what a filter takes away of the noise of a policy's release."""
    texts = texts_of_policy(policy)
    if texts is None or texts.tell_loss is None:
        raise PolicyError(
            "sqlanon loss POLICY is for policies with algorithm: randomize; of others `run` tells the loss."
        )
    texts.tell_loss(call, policy)
