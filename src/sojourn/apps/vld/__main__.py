"""`python -m sojourn.apps.vld OUT.png`: a picture of what is detected in four frames."""

import argparse

import cv2

from sojourn.apps.vld.picture import sample_picture


def main() -> None:
    """Write the picture."""
    parser = argparse.ArgumentParser(prog="python -m sojourn.apps.vld", description=__doc__)
    parser.add_argument("out", metavar="OUT.png", help="the picture; .jpg works too")
    parser.add_argument("--seed", type=int, default=1, help="other logos in other places")
    options = parser.parse_args()
    cv2.imwrite(options.out, sample_picture(options.seed))


if __name__ == "__main__":
    main()
