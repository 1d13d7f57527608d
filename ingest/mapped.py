"""One mapped file of records: a segment, or a ring. Whole on disk from the start, so that a full disk is
met here.

A mapped file whose block cannot be had kills its writer with SIGBUS: hence all of it is allocated before
the first record. Its pages are touched before too, so that no record waits for the kernel to find one.
"""

import contextlib
import errno
import json
import mmap
import os
import time
from pathlib import Path
from typing import Any, Final

from rankscope.ingest.layout import CLOSED_OFFSET, HEADER, MAGIC, PAGE, RECORD_SIZE, SLOTS

_ROOM_FOR_STRINGS: Final = 64 << 10  # for texts that are new between the making of a file and its use
_POPULATE_WRITE: Final = 23  # MADV_POPULATE_WRITE, Linux 5.14
_POPULATED_AT_ONCE: Final = 128 << 10  # the GIL is held meanwhile, so not all of it at once


class MappedFile:
    """A file of `slots` records, not a segment yet before `seal`: readers wait for its magic number."""

    def __init__(
        self, path: Path, index: int, identity: dict[str, Any], strings: list[str], slots: int = SLOTS
    ) -> None:
        """Raises OSError when the file cannot be made whole."""
        self.path, self.index, self.slots = path, index, slots
        self.is_sealed = False
        self._described = len(strings)
        listed = ", ".join(map(json.dumps, strings[: self._described]))
        self._text = f'{{"identity": {json.dumps(identity, default=str)}, "strings": [{listed}'.encode()
        room = HEADER.size + len(self._text) + _ROOM_FOR_STRINGS
        self.header_size = -(-room // PAGE) * PAGE
        size = self.header_size + slots * RECORD_SIZE
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        try:
            _allocate(fd, size)
            self.map = mmap.mmap(fd, size)
        except (OSError, ValueError) as error:
            path.unlink(missing_ok=True)
            raise error if isinstance(error, OSError) else OSError(errno.ENOMEM, str(error)) from error
        finally:
            os.close(fd)
        self.map[HEADER.size : HEADER.size + len(self._text)] = self._text
        self._populate(size)

    def at(self, slot: int) -> int:
        """Where a slot lies in the file."""
        return self.header_size + slot % self.slots * RECORD_SIZE

    def seal(self, strings: list[str], clocks: tuple[int, int] | None = None) -> bool:
        """Finish the header with the texts known by now; False when they have no room.

        Args:
            clocks: wall and monotonic clock of the process whose records these are; by default those of now.
        """
        more = "".join(", " + json.dumps(text) for text in strings[self._described :]).encode() + b"]}"
        at, length = HEADER.size + len(self._text), len(self._text) + len(more)
        if at + len(more) > self.header_size:
            return False
        self.map[at : at + len(more)] = more
        head = HEADER.pack(
            MAGIC, RECORD_SIZE, 0, self.header_size, self.index, self.slots, self.index * self.slots,
            *(clocks or (time.time_ns(), time.monotonic_ns())), 0, os.getpid(), length,
        )  # fmt: skip
        dropped = self.map[48:56]
        self.map[8 : HEADER.size] = head[8:48] + dropped + head[56:]
        self.map[0:8] = MAGIC  # last: a reader takes the header as whole from here on
        self.is_sealed = True
        return True

    def close(self) -> None:
        """Say that nothing more will come."""
        self.map[CLOSED_OFFSET : CLOSED_OFFSET + 1] = b"\x01"

    def delete(self) -> None:
        """Take the file away; who still writes to it does no harm."""
        with contextlib.suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _populate(self, size: int) -> None:
        for start in range(0, size, _POPULATED_AT_ONCE):
            try:
                self.map.madvise(_POPULATE_WRITE, start, min(_POPULATED_AT_ONCE, size - start))
            except OSError:
                return  # an older kernel: each page costs its first record some microseconds


def _allocate(fd: int, size: int) -> None:
    try:
        os.posix_fallocate(fd, 0, size)
    except OSError as error:
        if error.errno not in (errno.EOPNOTSUPP, errno.EINVAL):
            raise
        for start in range(0, size, 1 << 20):  # where the file system cannot allocate, writing does
            os.pwrite(fd, bytes(min(1 << 20, size - start)), start)
