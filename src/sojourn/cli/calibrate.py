"""`sojourn calibrate`: fit a correction of the model to measurements."""

import csv
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from sojourn.errors import BadFile, BadInput
from sojourn.model.calibration import FORMS, Pair, fit
from sojourn.report.json.output import print_json
from sojourn.report.json.plans import calibration_report
from sojourn.text import shown


def calibrate(
    pairs: Annotated[
        Path,
        Argument(
            metavar="CSV", help="Columns estimate_s, measured_s, and hops for --form per_hop."
        ),
    ],
    form: Annotated[
        str, Option(help=f"Form of the correction: {', '.join(FORMS)}.")
    ] = "factor",
    degree: Annotated[int, Option(help="Degree, for --form polynomial.")] = 2,
) -> None:
    """Fit a calibration to pairs of predicted and measured mean latency; print it as JSON.

    Example: sojourn calibrate measured.csv --form factor > calibration.json
    """
    print_json(calibration_report(fit(_read_pairs(pairs), form=form, degree=degree)))


def _read_pairs(path: Path) -> list[Pair]:
    try:
        with path.open(encoding="utf-8", newline="") as lines:
            rows = list(csv.DictReader(lines))
    except OSError as error:
        raise BadFile(
            str(path), f"cannot be read: {error.strerror}", "check the path"
        ) from error
    except (ValueError, csv.Error) as error:
        raise BadFile(str(path), f"is not CSV: {error}", "save it as UTF-8 CSV") from error
    return [_pair(path, number, row) for number, row in enumerate(rows, start=2)]


def _pair(path: Path, line: int, row: dict[str, str | None]) -> Pair:
    numbers = {}
    for column in ("estimate_s", "measured_s", "hops"):
        text = row.get(column)
        if text is None and column == "hops":
            text = "1"
        try:
            numbers[column] = float(text or "")
        except ValueError as error:
            raise BadInput(
                f"{path}:{line}: {column} is {shown(text)}, not a number; the file needs the "
                "columns estimate_s and measured_s, and hops for --form per_hop"
            ) from error
    return Pair(**numbers)
