"""Text to learn that is on every machine: the sources of Python's own standard library, as bytes.

The order in which samples are seen is exact: it depends on the seed, the rank and the step only, so a run
that resumes at step k sees what it would have seen without the interruption.
"""

import sysconfig
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.utils.data import Dataset, Sampler

CORPUS_BYTES = 2_000_000


def load_corpus(size_bytes: int = CORPUS_BYTES) -> torch.Tensor:
    """The first `size_bytes` of the standard library's modules in alphabetical order, shape [size], uint8."""
    stdlib = Path(sysconfig.get_paths()["stdlib"])
    text = bytearray()
    for path in sorted(stdlib.glob("*.py")):
        text += path.read_bytes()
        if len(text) >= size_bytes:
            break
    return torch.frombuffer(text[:size_bytes], dtype=torch.uint8)


class Windows(Dataset[torch.Tensor]):
    """Pieces of `length` bytes, one after the other, shape [length], int64."""

    def __init__(self, corpus: torch.Tensor, length: int) -> None:
        self.corpus = corpus
        self.length = length

    def __len__(self) -> int:
        return len(self.corpus) // self.length

    def __getitem__(self, index: int) -> torch.Tensor:
        start = index * self.length
        return self.corpus[start : start + self.length].long()


class ExactOrder(Sampler[int]):
    """This rank's share of a shuffled order without end, from `first_step` on.

    Each epoch is a permutation of the samples, cut into global batches of world_size × batch_size.
    """

    def __init__(
        self, samples: int, batch_size: int, rank: int, world_size: int, first_step: int, seed: int = 0
    ) -> None:
        self.samples = samples
        self.batch_size = batch_size
        self.rank = rank
        self.world_size = world_size
        self.first_step = first_step
        self.seed = seed

    def __iter__(self) -> Iterator[int]:
        batches = self.samples // (self.batch_size * self.world_size)
        step = self.first_step
        while True:
            epoch, batch = divmod(step, batches)
            order = torch.randperm(self.samples, generator=torch.Generator().manual_seed(self.seed + epoch))
            for position in range(batch, batches):
                start = (position * self.world_size + self.rank) * self.batch_size
                yield from order[start : start + self.batch_size].tolist()
                step += 1
