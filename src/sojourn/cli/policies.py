"""`sojourn policies`: policies and their options."""

from typing import Annotated

from typer import Argument

from sojourn.act.policy import names
from sojourn.app.address import import_from_here
from sojourn.cli.options import JsonOption
from sojourn.cli.options.completion import policies as known_policies
from sojourn.report.json.listings import policy_json
from sojourn.report.json.output import print_json
from sojourn.report.terminal.listings import show_policies


def policies(
    name: Annotated[
        list[str] | None,
        Argument(
            metavar="NAME …",
            help="Policies (default: all built-in ones). Your own: package.module:name.",
            autocompletion=known_policies,
        ),
    ] = None,
    json: JsonOption = False,
) -> None:
    """List the policies and their options, for `--set` of `run` and `rehearse`.

    Example: sojourn policies drs
    """
    for each in name or ():
        import_from_here(each)
    described = [policy_json(each) for each in name or names()]
    if json:
        print_json({"policies": described})
    else:
        show_policies(described)
