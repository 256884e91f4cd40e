"""The manifest for Kubernetes says what `sojourn run` understands."""

from pathlib import Path

import typer
import yaml

from sojourn.cli import app
from sojourn.spark.driver.master import Master, read_conf

MANIFEST = Path(__file__).parents[2] / "examples" / "kubernetes" / "orders.yaml"


def _arguments():
    (job,) = [
        each for each in yaml.safe_load_all(MANIFEST.read_text()) if each["kind"] == "Job"
    ]
    (driver,) = job["spec"]["template"]["spec"]["containers"]
    return driver["args"]


def test_its_options_are_those_of_the_command():
    known = {
        name
        for option in typer.main.get_command(app).commands["run"].params
        for name in (*option.opts, *option.secondary_opts)
    }
    options = [text for text in _arguments() if text.startswith("--")]
    assert {text.partition("=")[0] for text in options} <= known


def test_its_settings_of_spark_are_accepted():
    given = [text.removeprefix("--conf=") for text in _arguments() if "--conf=" in text]
    url = next(text for text in _arguments() if text.startswith("--master="))
    master = Master(url=url.removeprefix("--master="), spark=read_conf(given))
    assert master.cores == 4
