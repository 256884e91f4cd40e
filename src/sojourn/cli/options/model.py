"""`--model` and `--calibration`."""

import json
from pathlib import Path
from typing import Annotated

from typer import Option

from sojourn.app.address import import_from_here
from sojourn.cli.options.completion import completing
from sojourn.cli.options.group import Group
from sojourn.errors import BadFile
from sojourn.model.calibration import Calibration
from sojourn.model.station import names, station

__all__ = ["CalibrationOption", "ModelOption"]


def _read_model(
    *,
    model: Annotated[
        str,
        Option(
            help=f"Station model: {', '.join(names())}, or your own: package.module:name. gigk "
            "uses the scv of arrivals and service, and equals mmk if both are 1. Operators "
            "with dispatch: round_robin always use round_robin.",
            autocompletion=completing(names),
        ),
    ] = "gigk",
) -> str:
    """Return the name of the station model, having checked that it exists."""
    import_from_here(model)
    station(model)
    return model


ModelOption = Annotated[str, Group(_read_model)]


def _read_calibration(
    *,
    calibration: Annotated[
        Path | None,
        Option(metavar="FILE", help="Correction of the model, written by `sojourn calibrate`."),
    ] = None,
) -> Calibration | None:
    """Return the calibration in the file; None without a file."""
    if calibration is None:
        return None
    try:
        values = json.loads(calibration.read_text(encoding="utf-8"))
        high_s = values.get("high_s")
        return Calibration(
            coefficients=tuple(float(c) for c in values["coefficients"]),
            per_hop_s=float(values["per_hop_s"]),
            low_s=float(values["low_s"]),
            high_s=float("inf") if high_s is None else float(high_s),
        )
    except OSError as error:
        raise BadFile(
            str(calibration), f"cannot be read: {error.strerror}", "check the path"
        ) from error
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        problem = f"is not output of `sojourn calibrate`: {error!r}"
        raise BadFile(str(calibration), problem, "fit it again") from error


CalibrationOption = Annotated[Calibration | None, Group(_read_calibration)]
