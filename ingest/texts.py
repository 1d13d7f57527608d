"""What is written over several records: texts in chunks, roll-ups in halves. Put together, or waited for."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from rankscope.ingest.layout import CHUNK_BYTES, Kind
from rankscope.ingest.segments import CHUNK_DTYPE, Records

Ints = npt.NDArray[np.int64]


@dataclass
class Text:
    """A text and the places, within the records read, of its first and last chunk."""

    kind: int
    id: int
    count: int
    first: int
    last: int
    parts: dict[int, bytes] = field(default_factory=dict)

    @property
    def is_whole(self) -> bool:
        return len(self.parts) == self.count

    @property
    def text(self) -> str:
        """Bytes that are no UTF-8 are replaced."""
        return b"".join(self.parts[index] for index in range(self.count)).decode("utf-8", "replace")


def gather_texts(records: Records) -> tuple[list[Text], list[Text], list[int]]:
    """Texts that are whole, texts that are not, and the places of chunks that fit nowhere."""
    places = np.flatnonzero((records["kind"] == Kind.STRING) | (records["kind"] == Kind.EVENT))
    if not len(places):
        return [], [], []
    chunks = records[places].view(CHUNK_DTYPE)
    payloads = chunks["payload"].tobytes()
    whole: list[Text] = []
    pending: dict[tuple[int, int], Text] = {}
    misfits: list[int] = []
    columns = zip(
        places.tolist(),
        chunks["kind"].tolist(),
        chunks["id"].tolist(),
        chunks["index"].tolist(),
        chunks["count"].tolist(),
        chunks["length"].tolist(),
        strict=True,
    )
    for row, (place, kind, number, index, count, length) in enumerate(columns):
        if length > CHUNK_BYTES or index >= count:
            misfits.append(place)
            continue
        text = pending.get((kind, number))
        if text is None:
            text = pending[kind, number] = Text(kind, number, count, place, place)
        if text.count != count or index in text.parts:
            misfits.append(place)
            continue
        text.parts[index] = payloads[row * CHUNK_BYTES : row * CHUNK_BYTES + length]
        text.last = place
        if text.is_whole:
            whole.append(pending.pop((kind, number)))
    return whole, list(pending.values()), misfits


def pair_rollups(records: Records) -> tuple[Ints, Ints, Ints]:
    """Places of the first halves and of their second halves, and places of halves that are alone."""
    first = np.flatnonzero(records["kind"] == Kind.COLL_ROLLUP)
    second = np.flatnonzero(records["kind"] == Kind.COLL_ROLLUP2)
    if not len(first) and not len(second):
        return first, second, first
    _, one, two = np.intersect1d(records["attr"][first], records["attr"][second], return_indices=True)
    alone = np.concatenate([np.delete(first, one), np.delete(second, two)])
    return first[one], second[two], alone
