"""Places on a plane in whole centimetres, their cells, and speeds between them.

All of it is in whole numbers, so that another program gets the same results to the last digit.
"""

from dataclasses import dataclass
from math import cos, isqrt, radians
from typing import Self, TypeAlias

from sojourn_papers.apps.traffic.settings import Settings

FASTEST_CM_S = 5_000
"""180 km/h: where reports are further apart, one of the positions is wrong."""
LONGEST_GAP_S = 120
"""After more than that nobody knows where the vehicle was in between, or whether it stood."""

Place: TypeAlias = tuple[int, int]
"""Centimetres to the east and to the north."""

# In 0.1 mm: a millionth of a degree on a sphere with a radius of 6,371 km.
_NORTH = 1_112
_UNITS_OF_A_CM = 100
_MOST_NORTH_E6, _MOST_EAST_E6 = 90_000_000, 180_000_000


@dataclass(frozen=True, slots=True)
class Plane:
    """Where things are near a latitude: *east* is 0.1 mm per millionth degree of longitude."""

    cell_cm: int
    east: int
    north: int = _NORTH

    @classmethod
    def of_settings(cls, settings: Settings) -> Self:
        """Return the plane at a latitude.

        >>> Plane.of_settings(Settings(cell_m=250, latitude=38))
        Plane(cell_cm=25000, east=876, north=1112)
        """
        return cls(100 * settings.cell_m, round(_NORTH * cos(radians(settings.latitude))))

    def place(self, lat_e6: int, lon_e6: int) -> Place:
        """Return where a position is; raise `ValueError` if it is nowhere on earth.

        >>> Plane(cell_cm=25_000, east=876).place(37_775_807, -122_446_484)
        (-1072631200, 420066973)
        """
        if abs(lat_e6) > _MOST_NORTH_E6 or abs(lon_e6) > _MOST_EAST_E6:
            raise ValueError(f"{lat_e6}, {lon_e6} are not millionths of degrees on earth")
        return lon_e6 * self.east // _UNITS_OF_A_CM, lat_e6 * self.north // _UNITS_OF_A_CM

    def cell(self, place: Place) -> tuple[int, int]:
        """Return the column and the row of the cell in which a place is."""
        x_cm, y_cm = place
        return x_cm // self.cell_cm, y_cm // self.cell_cm

    @staticmethod
    def speed_cm_s(one: Place, other: Place, lasts_s: int) -> int | None:
        """Return the speed on the straight line, rounded down; None if it cannot be.

        >>> Plane.speed_cm_s((0, 0), (3_000, 4_000), 4)
        1250
        >>> Plane.speed_cm_s((0, 0), (3_000, 4_000), 121)
        """
        if lasts_s > LONGEST_GAP_S:
            return None
        cm = isqrt((other[0] - one[0]) ** 2 + (other[1] - one[1]) ** 2)
        speed = cm // lasts_s
        return speed if speed <= FASTEST_CM_S else None
