"""`python -m sojourn_papers.apps.vld OUT.png`: a picture of what is detected in four frames."""

import argparse
from collections.abc import Sequence

import cv2

from sojourn_papers.apps.vld.picture import sample_picture


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(
        prog="python -m sojourn_papers.apps.vld", description=__doc__
    )
    parser.add_argument("out", metavar="OUT.png", help="the picture; .jpg works too")
    parser.add_argument("--seed", type=int, default=1, help="other logos in other places")
    options = parser.parse_args(arguments)
    if not cv2.haveImageWriter(options.out):
        parser.error(f"{options.out} is not a kind of picture; write OUT.png or OUT.jpg")
    if not cv2.imwrite(options.out, sample_picture(options.seed)):
        parser.error(f"{options.out} cannot be written; its folder must exist")


if __name__ == "__main__":
    main()
