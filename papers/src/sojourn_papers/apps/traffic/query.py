"""The same rows by a batch query of Spark, in SQL."""

from sojourn_papers.apps.traffic.panes import FREE_CM_S, LEAST_ENTRIES, SLOW_CM_S
from sojourn_papers.apps.traffic.plane import FASTEST_CM_S, LONGEST_GAP_S, Plane
from sojourn_papers.apps.traffic.settings import Settings


def batch_query(table: str, settings: Settings) -> str:
    """Return a query that gives the rows of all reports in *table*.

    It has the columns of the source. Spark itself makes the windows, by times as timestamps.
    """
    plane = Plane.of_settings(settings)
    return f"""
WITH placed AS (
  SELECT DISTINCT trip, at_s,
    floor(CAST(lon_e6 AS bigint) * {plane.east} / 100) AS x_cm,
    floor(CAST(lat_e6 AS bigint) * {plane.north} / 100) AS y_cm
  FROM {table}
), moved AS (
  SELECT trip, at_s, x_cm, y_cm,
    at_s - lag(at_s) OVER trips AS lasts_s,
    CAST(floor(sqrt(pow(x_cm - lag(x_cm) OVER trips, 2)
                  + pow(y_cm - lag(y_cm) OVER trips, 2))) AS bigint) AS cm
  FROM placed WINDOW trips AS (PARTITION BY trip ORDER BY at_s)
), timed AS (
  SELECT trip, at_s,
    floor(x_cm / {plane.cell_cm}) AS x, floor(y_cm / {plane.cell_cm}) AS y,
    CASE WHEN lasts_s <= {LONGEST_GAP_S} AND cm div lasts_s <= {FASTEST_CM_S}
         THEN cm div lasts_s END AS speed
  FROM moved
), entered AS (
  SELECT at_s, x, y, speed,
    CASE WHEN lag(x) OVER trips != x OR lag(y) OVER trips != y
         THEN lag(speed) OVER trips END AS entry
  FROM timed WINDOW trips AS (PARTITION BY trip ORDER BY at_s)
)
SELECT CAST(x AS int) AS x, CAST(y AS int) AS y,
  unix_seconds(window.start) AS start_s,
  count(speed) AS count, sum(speed) div count(speed) AS average, max(speed) AS highest,
  avg(speed) <= {SLOW_CM_S} AND count(entry) >= {LEAST_ENTRIES}
    AND coalesce(avg(entry), 0) >= {FREE_CM_S} AS queue_end
FROM entered
WHERE speed IS NOT NULL
GROUP BY x, y, window(timestamp_seconds(at_s),
  '{settings.window_s} seconds', '{settings.slide_s} seconds')
"""  # noqa: S608 - the table is named by the caller, the rest is numbers
