"""SQL as text: values written into it for a server without parameters, and a check that it only reads."""

import datetime
import json
import math
from collections.abc import Mapping
from typing import Any

import duckdb

from rankscope.ingest.errors import UserError

# Functions that do more than read the store, or hide SQL from this check inside a string.
_REFUSED_PREFIXES = ("quack_", "force_checkpoint", "checkpoint", "ducklake_", "postgres_")
_REFUSED = frozenset(
    {"query", "query_table", "nextval", "json_execute_serialized_sql", "setseed", "which_secret"}
)


def literal(value: object) -> str:
    """`value` as a SQL literal of the type that DuckDB would give it as a parameter.

    Raises:
        TypeError: values of this type have no literal here.
        ValueError: a string with NUL, which ends SQL text.
    """
    if hasattr(value, "item") and not isinstance(value, (list, tuple)):
        value = value.item()  # a numpy scalar
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        kind = "BIGINT" if -(2**63) <= value < 2**63 else "HUGEINT"
        return f"'{value}'::{kind}"
    if isinstance(value, float):
        text = repr(value) if math.isfinite(value) else ("nan" if value != value else f"{value}")
        return f"'{text}'::DOUBLE"
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("a value for SQL must not hold a NUL character")
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, (bytes, bytearray)):
        return "'" + "".join(f"\\x{byte:02X}" for byte in value) + "'::BLOB"
    if isinstance(value, datetime.datetime):
        kind = "TIMESTAMPTZ" if value.tzinfo else "TIMESTAMP"
        return f"'{value.isoformat()}'::{kind}"
    if isinstance(value, datetime.date):
        return f"'{value.isoformat()}'::DATE"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(literal(item) for item in value) + "]"
    raise TypeError(f"a value of type {type(value).__name__} cannot be written into SQL")


def bind(sql: str, params: Mapping[str, object]) -> str:
    """`sql` with every $name replaced by its value as a literal.

    What is a parameter, and what only looks like one inside a string, a quoted name or a comment, is decided
    by DuckDB's own tokenizer.

    Raises:
        KeyError: a parameter has no value.
    """
    text = sql.encode()  # the tokenizer counts bytes
    pieces: list[bytes] = []
    done = 0
    for position, kind in duckdb.tokenize(sql):
        if kind != duckdb.token_type.operator or text[position : position + 1] != b"$":
            continue
        end = position + 1
        while end < len(text) and (chr(text[end]).isalnum() or text[end] == ord("_") or text[end] >= 0x80):
            end += 1
        name = text[position + 1 : end].decode()
        pieces += [text[done:position], literal(params[name]).encode()]
        done = end
    return b"".join([*pieces, text[done:]]).decode()


def check_reads_only(sql: str) -> str:
    """`sql` again, if it is one statement that only reads the store; DuckDB's own parser decides.

    Raises:
        UserError: it is something else, or does not parse.
    """
    try:
        statements = duckdb.extract_statements(sql)
    except duckdb.Error as error:
        raise UserError(clean_message(error)) from error
    if len(statements) != 1:
        raise UserError(f"one SELECT at a time, please: this is {len(statements)} statements")
    parsed = json.loads(_serialized(sql))
    if parsed.get("error"):
        if parsed.get("error_type") == "parser":
            raise UserError(str(parsed.get("error_message")))
        raise UserError("only SELECT is allowed here: the store is open read-only")
    for name in _functions(parsed):
        if name in _REFUSED or name.startswith(_REFUSED_PREFIXES):
            raise UserError(f"the function {name}() is not allowed here: the store is open read-only")
    return sql


def clean_message(error: Exception) -> str:
    """What DuckDB says is wrong, without the class of the error and the wrapping of a remote query."""
    text = str(error).split("\n\nLINE 1: FROM quack_query(")[0].strip()
    while True:
        head, colon, rest = text.partition(": ")
        if not (colon and head.endswith(" Error") and head.replace(" ", "").isalpha()):
            return text
        text = rest


def _serialized(sql: str) -> str:
    with duckdb.connect() as con:
        row = con.execute("SELECT json_serialize_sql($sql)", {"sql": sql}).fetchone()
    assert row is not None
    return str(row[0])


def _functions(node: Any) -> set[str]:
    """Names of all functions in a serialized statement, table functions included."""
    found: set[str] = set()
    stack = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            if isinstance(item.get("function_name"), str):
                found.add(item["function_name"].lower())
            stack += item.values()
        elif isinstance(item, list):
            stack += item
    return found
