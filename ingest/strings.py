"""Interned strings of all processes that a collector reads, each kept once, as columns for Arrow."""

import json

import numpy as np
import numpy.typing as npt
import pyarrow as pa

EMPTY = 0
UNKNOWN = 1  # what stands for an id that no record explained

Ints = npt.NDArray[np.int64]


class Strings:
    """A table of strings that only grows; a string is known by its number."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {"": EMPTY, "?": UNKNOWN}
        self._texts: list[str] = ["", "?"]
        self._array = pa.array([], pa.string())
        self._json: dict[int, int] = {EMPTY: EMPTY}  # number of an attrs text -> number of it as clean JSON
        self._parts: dict[int, tuple[int, ...]] = {}

    def __len__(self) -> int:
        return len(self._texts)

    def number(self, text: str) -> int:
        """The number of a string, a new one at first sight."""
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self._texts)
            self._texts.append(text)
        return found

    def text(self, number: int) -> str:
        """The string with this number."""
        return self._texts[number]

    def column(self, numbers: Ints) -> pa.Array:
        """Strings as a column; the empty string becomes ''."""
        if len(self._array) != len(self._texts):
            self._array = pa.array(self._texts, pa.string())
        return pa.DictionaryArray.from_arrays(pa.array(numbers.astype(np.int32)), self._array)

    def json_column(self, numbers: Ints) -> pa.Array:
        """Attribute texts as JSON; null without any, {"text": …} for what is no JSON."""
        for number in np.unique(numbers).tolist():
            if number not in self._json:
                self._json[number] = self.number(clean_json(self._texts[number]))
        return self._mapped(numbers, self._json)

    def split_columns(self, numbers: Ints, parts: int) -> list[pa.Array]:
        """Texts of the form 'a|b|c' as a column a part: the last takes the rest, missing ones are null."""
        distinct = np.unique(numbers).tolist()
        for number in distinct:
            if number not in self._parts:
                pieces = self._texts[number].split("|", parts - 1)
                pieces += [""] * (parts - len(pieces))
                self._parts[number] = tuple(self.number(piece) for piece in pieces)
        return [
            self._mapped(numbers, {number: self._parts[number][part] for number in distinct})
            for part in range(parts)
        ]

    def _mapped(self, numbers: Ints, mapping: dict[int, int]) -> pa.Array:
        if not len(numbers):
            return pa.nulls(0, pa.string())
        distinct, place = np.unique(numbers, return_inverse=True)
        mapped = np.array([mapping[number] for number in distinct.tolist()], dtype=np.int64)[place]
        if not mapped.any():
            return pa.nulls(len(numbers), pa.string())
        if len(self._array) != len(self._texts):
            self._array = pa.array(self._texts, pa.string())
        indices = pa.array(mapped.astype(np.int32), mask=mapped == EMPTY)
        return pa.DictionaryArray.from_arrays(indices, self._array)


def clean_json(text: str) -> str:
    """`text` as JSON that DuckDB accepts: without NaN, infinities and lone surrogates."""
    try:
        value = json.loads(text, parse_constant=lambda _: None)
        clean = json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (ValueError, RecursionError):
        clean = json.dumps({"text": text}, ensure_ascii=False)
    return clean.encode("utf-8", "replace").decode()
