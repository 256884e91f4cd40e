"""Video logo detection: which of 16 logos are in the frames of a video, and where.

It is the application of the DRS papers, a chain of three operators: `extract` finds the SIFT
features of a frame, `match` compares them with those of the logos, and `aggregate` reports the
logos with enough matches. In `bulk` each feature is a record of its own, as in the papers. The
frames are those of video clips, with logos composited onto them, so that it is known what
should be found.
"""

from sojourn_papers.apps.vld.application import app
from sojourn_papers.apps.vld.bulk_application import app as bulk

__all__ = ["app", "bulk"]
