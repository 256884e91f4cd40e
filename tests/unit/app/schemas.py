"""Schemas, and records that fit them, for property tests."""

import datetime as dt
from decimal import Decimal

from hypothesis import strategies as st

from sojourn.app import datatype
from sojourn.app.datatype import Array, Atom, Field, Map, Struct
from sojourn.app.schema import Schema

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
# all that is printable
NAMES = st.text(
    st.characters(exclude_categories=["C", "Z"], include_characters=" "),
    min_size=1,
    max_size=8,
)
ZONES = st.integers(-14 * 60, 14 * 60).map(lambda m: dt.timezone(dt.timedelta(minutes=m)))
# a day from the ends of the calendar, where another time zone would be beyond them
TIMES = {"min_value": dt.datetime(1, 1, 2), "max_value": dt.datetime(9999, 12, 30)}  # noqa: DTZ001
VALUES = {
    "string": TEXT,
    "boolean": st.booleans(),
    "tinyint": st.integers(-(2**7), 2**7 - 1),
    "smallint": st.integers(-(2**15), 2**15 - 1),
    "int": st.integers(-(2**31), 2**31 - 1),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "float": st.floats(width=32, allow_nan=False),
    "double": st.floats(allow_nan=False) | st.integers(-(2**53), 2**53),
    "date": st.dates(),
    "timestamp": st.datetimes(**TIMES, timezones=ZONES),
    "timestamp_ntz": st.datetimes(**TIMES),
    "binary": st.binary(max_size=20),
}
ATOMS = st.sampled_from(sorted(VALUES)).map(Atom)
DECIMALS = st.integers(1, 38).flatmap(
    lambda precision: st.builds(datatype.Decimal, st.just(precision), st.integers(0, precision))
)


def structs(types):
    fields = st.lists(
        st.builds(Field, NAMES, types, st.booleans()),
        min_size=1,
        max_size=5,
        unique_by=lambda field: field.name.lower(),
    )
    return fields.map(tuple)


TYPES = st.recursive(
    ATOMS | DECIMALS,
    lambda inner: (
        inner.map(Array) | st.builds(Map, ATOMS | DECIMALS, inner) | structs(inner).map(Struct)
    ),
    max_leaves=6,
)
SCHEMAS = structs(TYPES).map(Schema)


def values(kind):
    """Return values that fit *kind*."""
    match kind:
        case Atom(name):
            return VALUES[name]
        case datatype.Decimal(precision, scale):
            most = 10**precision - 1
            # not Decimal.scaleb, which rounds to the digits of the context
            return st.integers(-most, most).map(lambda whole: Decimal(f"{whole}E-{scale}"))
        case Array(element):
            return st.lists(values(element) | st.none(), max_size=3)
        case Map(key, value):
            return st.dictionaries(values(key), values(value) | st.none(), max_size=3)
        case Struct(fields):
            return records(fields)


def records(fields):
    """Return records of *fields*."""
    return st.tuples(
        *(
            values(field.type) | st.none() if field.nullable else values(field.type)
            for field in fields
        )
    )
