"""A small byte-level transformer: a few hundred thousand weights, enough to learn what code looks like."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional as F

BYTES = 256


@dataclass(frozen=True)
class Shape:
    """Size of the model: about 12 · layers · width² weights, and 2 · 256 · width for the bytes."""

    width: int = 96
    layers: int = 3
    heads: int = 4
    context: int = 96


class Block(nn.Module):
    """Causal self-attention and a perceptron, each normalised before and added after."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads = shape.heads
        self.norm_attention = nn.LayerNorm(shape.width)
        self.qkv = nn.Linear(shape.width, 3 * shape.width)
        self.out = nn.Linear(shape.width, shape.width)
        self.norm_mlp = nn.LayerNorm(shape.width)
        self.up = nn.Linear(shape.width, 4 * shape.width)
        self.down = nn.Linear(4 * shape.width, shape.width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """[batch, time, width] to the same."""
        batch, time, width = x.shape
        qkv = self.qkv(self.norm_attention(x)).view(batch, time, 3, self.heads, width // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).reshape(batch, time, width))
        hidden: torch.Tensor = x + self.down(F.gelu(self.up(self.norm_mlp(x))))
        return hidden


class ByteTransformer(nn.Module):
    """Predicts the next byte."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.embed = nn.Embedding(BYTES, shape.width)
        self.position = nn.Parameter(0.02 * torch.randn(shape.context, shape.width))
        self.blocks = nn.Sequential(*(Block(shape) for _ in range(shape.layers)))
        self.norm = nn.LayerNorm(shape.width)
        self.head = nn.Linear(shape.width, BYTES)

    def forward(self, window: torch.Tensor) -> torch.Tensor:
        """Mean cross-entropy in nats a byte of `window`, shape [batch, context + 1], int64."""
        given, wanted = window[:, :-1], window[:, 1:]
        x = self.embed(given) + self.position[: given.shape[1]]
        logits = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(logits.flatten(0, 1), wanted.flatten())
