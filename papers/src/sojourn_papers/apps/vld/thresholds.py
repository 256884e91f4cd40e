"""What a feature, a match and a logo take."""

MOST_FEATURES = 1500
"""The strongest of a frame: 204,000 bytes, far from the mebibyte that Kafka takes."""
RATIO = 0.75
"""A feature matches the nearest of a logo if it is nearer than this part of the second."""
TOLERANCE_PX = 4.0
"""An inlier lies no further from where the homography puts it."""
RANSAC_ROUNDS = 200
"""More find no more logos: most matches of a logo that is there are inliers."""
LEAST_INLIERS = 18
"""A logo is there if it has as many: logos that were not there reached 15."""
