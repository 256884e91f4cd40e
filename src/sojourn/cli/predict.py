"""`sojourn predict`: the latency of an allocation."""

from sojourn.cli.options.address import AddressArgument, RateOption, read_address
from sojourn.cli.options.allocation import RequiredAllocationOption, read_allocation
from sojourn.cli.options.model import CalibrationOption, ModelOption
from sojourn.cli.options.output import JsonOption
from sojourn.model import network
from sojourn.report.json.output import print_json
from sojourn.report.json.plans import prediction_report
from sojourn.report.terminal.progress import working
from sojourn.report.terminal.tables import show_prediction

__all__ = ["predict"]


def predict(
    address: AddressArgument,
    allocation: RequiredAllocationOption,
    *,
    rate: RateOption = None,
    model: ModelOption,
    calibration: CalibrationOption,
    json: JsonOption = False,
) -> None:
    """Predict the latency of an allocation: mean, percentiles, each operator's share.

    Example: sojourn predict examples/vld.yaml --allocation extract=10,match=11,aggregate=1
    """
    topology, counts = read_address(address, rate), read_allocation(allocation)
    with working(f"predicting {topology.name}"):
        predicted = network.predict(topology, counts, model=model, calibration=calibration)
    if json:
        print_json(prediction_report(predicted))
    else:
        show_prediction(predicted)
