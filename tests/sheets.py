"""Spreadsheets written by hand, so that a test can write what no program would."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

_MAIN = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
_OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
_TYPES = f"""<Types xmlns="{_PACKAGE}/content-types">
<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>
<Default Extension="xml" ContentType="application/xml"/></Types>"""


def write_sheet(
    path: Path,
    cells: Mapping[str, object],
    strings: Sequence[str] = (),
    *,
    before: str = "",
    dimension: str | None = None,
) -> Path:
    """Write a workbook of one sheet: cells by their places; a cell that begins with `<c` is written as it is.

    strings: its shared texts. before: XML at the head of the sheet. dimension: the area that the sheet claims to have.
    """
    rows: dict[int, str] = {}
    for place, value in sorted(cells.items(), key=lambda cell: int(re.sub("[A-Z]", "", cell[0]))):
        number = int(re.sub("[A-Z]", "", place))
        rows[number] = rows.get(number, "") + _cell(place, value)
    data = "".join(f'<row r="{number}">{row}</row>' for number, row in rows.items())
    claimed = f'<dimension ref="{dimension}"/>' if dimension else ""
    relations = [("worksheet", "worksheets/sheet1.xml"), ("sharedStrings", "sharedStrings.xml")]
    parts = {
        "[Content_Types].xml": _TYPES,
        "_rels/.rels": _relations([("officeDocument", "xl/workbook.xml")]),
        "xl/workbook.xml": f'<workbook {_MAIN} xmlns:r="{_OFFICE}"><sheets>'
        '<sheet name="S" sheetId="1" r:id="rId0"/></sheets></workbook>',
        "xl/_rels/workbook.xml.rels": _relations(relations),
        "xl/sharedStrings.xml": f"<sst {_MAIN}>{''.join(f'<si><t>{text}</t></si>' for text in strings)}</sst>",
        "xl/worksheets/sheet1.xml": f"{before}<worksheet {_MAIN}>{claimed}<sheetData>{data}</sheetData></worksheet>",
    }
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
    return path


def _cell(place: str, value: object) -> str:
    if isinstance(value, str):
        inline = f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
        return value if value.startswith("<c") else inline
    return f'<c r="{place}"><v>{value}</v></c>'


def _relations(targets: Sequence[tuple[str, str]]) -> str:
    listed = (
        f'<Relationship Id="rId{number}" Type="{_OFFICE}/{kind}" Target="{target}"/>'
        for number, (kind, target) in enumerate(targets)
    )
    return f'<Relationships xmlns="{_PACKAGE}/relationships">{"".join(listed)}</Relationships>'
