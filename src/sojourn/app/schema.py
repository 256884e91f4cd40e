"""The schema of a stream: its columns, in Spark's DDL."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from sojourn.app.datatype import SYNONYMS, Array, Atom, DataType, Decimal, Field, Map, Struct
from sojourn.errors import BadSchema
from sojourn.text import shown

_TOKEN = re.compile(r"\s*(`(?:[^`]|``)*`|\w+|[<>(),:]|.)", re.DOTALL)
_TYPES = ", ".join(
    (*dict.fromkeys(SYNONYMS.values()), "decimal(p,s)", "array<…>", "map<…, …>", "struct<a: …>")
)
_DECIMALS = ("decimal", "dec", "numeric")
_Made = TypeVar("_Made")
# Real tables are less deep, and deeper recursion could overflow the stack.
_DEEPEST = 50


@dataclass(frozen=True)
class Schema:
    """The columns of a stream.

    >>> schema = parse_schema("word STRING, n long, parts array<struct<a int>>")
    >>> print(schema)
    word string, n bigint, parts array<struct<a: int>>
    >>> schema.names
    ('word', 'n', 'parts')
    """

    # No slots: the hash is cached, because codecs are looked up by schema for every record.

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        Struct(self.fields)  # the same rules apply
        object.__setattr__(self, "_hash", hash(self.fields))

    def __hash__(self) -> int:
        return self.__dict__["_hash"]  # type: ignore[no-any-return]

    def __str__(self) -> str:
        return ", ".join(map(str, self.fields))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(field.name for field in self.fields)

    @property
    def binaries(self) -> tuple[str, ...]:
        """The binary columns, which JSON messages carry in Kafka headers."""
        return tuple(field.name for field in self.fields if field.type == Atom("binary"))


def parse_schema(text: object, *, place: str = "schema") -> Schema:
    """Parse a schema in Spark's DDL.

    Raise a `BadSchema` that begins with *place* and gives the position of the error.

    >>> parse_schema("word strng", place="streams.words")
    Traceback (most recent call last):
    ...
    sojourn.errors.BadSchema: streams.words: at character 6 of 'word strng': 'strng' is ...
    """
    return Schema(parse_fields(text, place))


def parse_fields(text: object, place: str) -> tuple[Field, ...]:
    """Parse a list of columns. Raise a `BadSchema` that begins with *place*.

    Only names and types: no comments, defaults or collations. As in Spark, names are
    case-preserving and case-insensitive, and backticks quote any name.
    """
    if not isinstance(text, str):
        problem = f"{shown(text)} is not a schema"
        raise BadSchema(place, problem, "write Spark's DDL as text: 'word string, n bigint'")
    parser = _Parser(place, text)
    fields = parser.fields()
    if parser.token:
        parser.refuse(f"unexpected {parser.token!r}", "separate columns by commas")
    return fields


@dataclass
class _Parser:
    """A recursive-descent parser. *token* is the next one, from *start* to *end* in *text*."""

    place: str
    text: str
    token: str = ""
    start: int = 0
    end: int = 0
    depth: int = 0

    def __post_init__(self) -> None:
        self._next()

    def refuse(self, problem: str, way_out: str) -> NoReturn:
        at = f"at character {self.start + 1} of" if self.token else "at the end of"
        raise BadSchema(self.place, f"{at} {shown(self.text)}: {problem}", way_out)

    def _next(self) -> str:
        taken, found = self.token, _TOKEN.match(self.text, self.end)
        self.token = found[1] if found and not found[1].isspace() else ""
        self.start, self.end = found.span(1) if found else (len(self.text), len(self.text))
        return taken

    def _takes(self, token: str) -> bool:
        """Consume *token* if it is next; return whether it was."""
        if self.token.lower() != token:
            return False
        self._next()
        return True

    def _expect(self, token: str, way_out: str) -> None:
        if not self._takes(token):
            found = repr(self.token) if self.token else "nothing"
            self.refuse(f"expected {token!r}, found {found}", way_out)

    def fields(self) -> tuple[Field, ...]:
        fields = [self._field()]
        while self._takes(","):
            fields.append(self._field())
        return self._sound(lambda: Struct(tuple(fields))).fields

    def _sound(self, made: Callable[[], _Made]) -> _Made:
        """Call *made*, and add the position to a `BadSchema` that it raises."""
        try:
            return made()
        except BadSchema as error:
            self.refuse(error.problem, error.way_out)

    def _field(self) -> Field:
        name = self._name()
        self._takes(":")
        kind = self._type()
        nullable = not self._takes("not")
        if not nullable:
            self._expect("null", "write not null")
        return Field(name, kind, nullable=nullable)

    def _name(self) -> str:
        if not self.token:
            self.refuse("a column is missing", "write a name and a type: word string")
        if self.token.startswith("`") and len(self.token) > 1:
            name = self.token[1:-1].replace("``", "`")
            self._sound(lambda: Field(name, Atom("string")))
        else:
            name = self.token
            if not (name.isascii() and name.replace("_", "a").isalnum()) or name.isdigit():
                self.refuse(f"{name!r} is not a valid name", "put it in backticks")
        self._next()
        return name

    def _type(self) -> DataType:
        name = self.token.lower()
        if name in SYNONYMS:
            self._next()
            return Atom(SYNONYMS[name])
        if name in _DECIMALS:
            return self._decimal()
        if name not in ("array", "map", "struct"):
            self._refuse_type()
        self._next()
        self._expect("<", f"write {name}<…>")
        self.depth += 1
        if self.depth > _DEEPEST:
            self.refuse(f"it is nested deeper than {_DEEPEST} types", "flatten it")
        kind = self._parts(name)
        self.depth -= 1
        self._expect(">", f"close {name}<…")
        return kind

    def _refuse_type(self) -> NoReturn:
        if not self.token:
            self.refuse("the type is missing", f"write one of {_TYPES}")
        if not self.token.isalnum():
            problem = f"expected a type, found {self.token!r}"
            self.refuse(problem, "put names with special characters in backticks")
        self.refuse(f"{self.token!r} is not a type", f"write one of {_TYPES}")

    def _parts(self, name: str) -> DataType:
        if name == "array":
            return Array(self._type())
        if name == "struct":
            return Struct(self.fields())
        key = self._type()
        self._expect(",", "write map<key, value>")
        value = self._type()
        return self._sound(lambda: Map(key, value))

    def _decimal(self) -> Decimal:
        self._next()
        if not self._takes("("):
            return Decimal()
        precision, scale = self._digits(), 0
        if self._takes(","):
            scale = self._digits()
        self._expect(")", "write decimal(10,2)")
        return self._sound(lambda: Decimal(precision, scale))

    def _digits(self) -> int:
        # isdigit alone is not enough: it accepts ², and int() rejects thousands of digits
        if not (self.token.isascii() and self.token.isdigit() and len(self.token) < 4):
            self.refuse(f"{self.token!r} is not a number of digits", "write decimal(10,2)")
        return int(self._next())
