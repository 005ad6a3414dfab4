# SPDX-License-Identifier: Apache-2.0
"""What a byte GPT is made of: sizes, presets, and the tensors in the order of a .tinygpt file.

Everything that writes or compares weights walks `manifest(config)`. The order decides two things:
where a tensor lies in a file, and which random stream fills it (its ordinal in this list).

    letters   V vocabulary (256)   T context   C width   M hidden width of the MLP (4C)   L layers

Shapes here are the shapes of the bytes. A linear layer computes y = x W with W stored [in, out];
PyTorch keeps the transpose, [out, in], and the manifest inside a .tinygpt file states that one.
Standard library only: the fixture writer runs where numpy may be missing.
"""

from typing import NamedTuple

VOCAB = 256


class Config(NamedTuple):
    """Sizes of one model, with the batch it is trained with by default."""

    layers: int
    width: int
    heads: int
    ctx: int
    batch: int = 16

    @property
    def mlp(self):
        return 4 * self.width


PRESETS = {
    "tiny": Config(layers=2, width=48, heads=3, ctx=32, batch=16),
    "small": Config(layers=3, width=96, heads=3, ctx=64, batch=16),
    "medium": Config(layers=4, width=128, heads=4, ctx=96, batch=16),
    "large": Config(layers=6, width=192, heads=6, ctx=128, batch=12),
    "xl": Config(layers=8, width=256, heads=8, ctx=128, batch=8),
    "huge": Config(layers=12, width=256, heads=8, ctx=256, batch=8),
}


class Tensor(NamedTuple):
    """One weight tensor: its name, the shape of its bytes, and how it is treated."""

    name: str
    shape: tuple
    linear: bool  # a linear weight: PyTorch and the file's manifest state the transposed shape

    @property
    def elems(self):
        n = 1
        for d in self.shape:
            n *= d
        return n

    @property
    def stated_shape(self):
        """The shape that PyTorch and the manifest of a file give."""
        return tuple(reversed(self.shape)) if self.linear else self.shape


def manifest(config):
    """All tensors of a model, in file order: embeddings, final norm, then block after block."""
    c, m = config.width, config.mlp
    tensors = [
        Tensor("token_embedding.weight", (VOCAB, c), False),
        Tensor("position_embedding.weight", (config.ctx, c), False),
        Tensor("ln_final.weight", (c,), False),
        Tensor("ln_final.bias", (c,), False),
    ]

    def norm(name):
        tensors.append(Tensor(name + ".weight", (c,), False))
        tensors.append(Tensor(name + ".bias", (c,), False))

    def linear(name, n_in, n_out):
        tensors.append(Tensor(name + ".weight", (n_in, n_out), True))
        tensors.append(Tensor(name + ".bias", (n_out,), False))

    for i in range(config.layers):
        block = f"blocks.{i}."
        norm(block + "ln1")
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            linear(block + "attn." + part, c, c)
        norm(block + "ln2")
        linear(block + "mlp.fc_in", c, m)
        linear(block + "mlp.fc_out", m, c)
    return tensors


def param_count(config):
    """Closed form, so that the list above can be checked against it."""
    c = config.width
    return VOCAB * c + config.ctx * c + 2 * c + config.layers * (12 * c * c + 13 * c)


def _check():
    stated = {"tiny": 70464, "small": 366432, "medium": 838400, "large": 2743296, "xl": 6416896,
              "huge": 9608704}
    for name, config in PRESETS.items():
        total = sum(t.elems for t in manifest(config))
        assert total == param_count(config) == stated[name], (name, total)
    print("spec: parameter counts of", ", ".join(PRESETS), "agree")


if __name__ == "__main__":
    _check()
