"""The bytes of a segment file: what a writer puts there and a reader may rely on.

A *stream* is the sequence of records of one process, numbered by *slot* from 0 and cut into segment files
of `SLOTS` records each, `<stem>.<k>.seg` with k = slot // SLOTS. A file is a header, then fixed-size
records:

    | header (header_size bytes, page-aligned) | record | record | ... | zeros |

A record is *published* when its last four bytes, the marker, hold `(slot + 1) & 0xFFFFFFFF`; files start as
zeros, so an unpublished record has another marker. Writers claim a slot first and publish when the record
is whole: threads may publish out of order, so a reader consumes only up to the first unpublished record,
and steps over a hole only when nothing more can come from the thread that left it (its process is gone, or
the stream went on for long): it is then counted as dropped.

Everything is little-endian. Times in records are CLOCK_MONOTONIC nanoseconds of the writing host; the
header holds the pair (wall, monotonic) with which a reader turns them into nanoseconds since the epoch.
Times in the JSON of EVENT blobs are nanoseconds since the epoch already.

The next file is made before it is needed; it has no magic number until its first record is due.

Two speeds of detail. Where not all collectives are kept, COLL_BEGIN and COLL_END go to a *ring*,
`<stem>.ring`: one file of the same form with `RING_SLOTS` records, in which slot s lies at place s %
RING_SLOTS and is written over when the ring comes round; a record is whole and the newest of its place when
its marker says a slot that belongs there. Its texts are those of the stream, by the same ids; the d of a
COLL_END is a slot of the ring. The stream gets a COLL_ROLLUP and COLL_ROLLUP2 per step and group (messages
between two ranks are not summed up), when the step ends or, if something of it is still under way, when the
one after it does; what ends later still is not in the sums. When something fails, its process copies the
ring into the stream as ordinary records (Recorder.flush_ring). The ring of a process that is gone is put at
the end of its stream by ring.recover(), before the end of the stream is read; it needs the lock of the
collector, and deletes the ring. An orderly end deletes the ring as well. The last 16 bytes of the ring's
header are its state: the first slot that was not copied, and, plus one, the slot of the stream that its
copy is about to go to, 0 when none is under way. Who finds that slot published knows that the copy was
made. In a COLL_BEGIN that was copied, d is the slot of its copy plus one. The header's `dropped` counts
records that were written over before they could be copied when somebody wanted them.
"""

import struct
from enum import IntEnum, IntFlag
from typing import Final

MAGIC: Final = b"RSKSEG01"
RECORD_SIZE: Final = 64
SLOTS: Final = 65_536  # records a file: 4 MiB
PAGE: Final = 4096
RING_SLOTS: Final = 8192  # of a ring: 512 KiB, 4096 collectives; a power of two
RING_STATE: Final = struct.Struct("<QQ")  # first slot not copied | slot of the stream under way, plus one

# Header, fixed part. `closed` is set by an orderly end: no record will follow in this stream.
#   magic 8s | record_size H | closed B | pad B | header_size I | index I | slots I |
#   base_slot Q | wall_ns q | mono_ns q | dropped Q | pid I | json_size I
HEADER: Final = struct.Struct("<8sHBxIIIQqqQII")
CLOSED_OFFSET: Final = 10
DROPPED_OFFSET: Final = 48
# Behind it json_size bytes of JSON:
#   {"identity": {...see identity.py...}, "strings": ["", "all_reduce", ...]}
# with all strings interned before this file was begun, in order of their ids; id 0 is the empty string.

# t, a, b, c, d | name, pg, step, attr | tag, kind, flags | marker. The meaning of a..d is per kind, below.
RECORD: Final = struct.Struct("<qqqqqIIiIHBBI")
# A blob is cut into chunks, one a record: id | index, count | payload | length, kind, flags(0) | marker
CHUNK: Final = struct.Struct("<IHH49sBBBI")
CHUNK_BYTES: Final = 49
KIND_OFFSET: Final = 58
MARKER_OFFSET: Final = 60
NO_STEP: Final = -1

assert RECORD.size == CHUNK.size == RECORD_SIZE and HEADER.size == 64


class Kind(IntEnum):
    """What a record says. Interned strings are given by id.

    SPAN_BEGIN  t begin; name; pg = category; step; attr = JSON text; tag = thread
    SPAN_END    t end; a = begin time; b = slot of its SPAN_BEGIN, -1 without one; the rest as SPAN_BEGIN.
                All a closed row needs is in the end record, so a reader never has to look a begin up.
    COLL_BEGIN  published before the call: t enqueue; a = seq; b = bytes; c = peer rank, -1 none; name = op;
                pg = group name; step; attr = 'dtype|sizes|site'; tag = thread
    COLL_END    t end; a = seq; b = bytes; c = enqueue time; d = slot of its COLL_BEGIN, -1 without one
    COLL_ROLLUP t last end; a = count; b = bytes; c = total ns; d = max ns; pg; step; attr = a counter
                that pairs it with the next
    COLL_ROLLUP2  its other half (same attr): t last enqueue; a = first enqueue; b = last seq; pg; step
    SCALAR      t; a = IEEE-754 bits of the value; name; step
    CLOCK       t; a = wall ns taken together with t; step = current step. Doubles as a sign of life.
    STRING      chunk of an interned string; blob id = string id
    EVENT       chunk of a JSON object {"type": table, column: value, ...}; blob id counts from 0
    """

    SPAN_BEGIN = 1
    SPAN_END = 2
    COLL_BEGIN = 3
    COLL_END = 4
    COLL_ROLLUP = 5
    COLL_ROLLUP2 = 6
    SCALAR = 7
    CLOCK = 8
    STRING = 9
    EVENT = 10


class Flag(IntFlag):
    """Bits of a record's `flags`."""

    ERROR = 1  # span or collective ended by an exception
    COMMITTED = 2  # step: the update was applied
    NOT_COMMITTED = 4  # step: it was not; neither bit: unknown
    ASYNC = 8
    P2P = 16
