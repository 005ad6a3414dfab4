# SPDX-License-Identifier: Apache-2.0
"""Check that transformers opens what `tinygpt convert` writes, and keep what it says and writes.

    python transformers_gpt2.py --program build/tinygpt --data stories.txt [--out DIR]

A small model with sharp weights goes the way that a user's goes: .tinygpt file, `tinygpt convert`,
AutoModelForCausalLM.from_pretrained(folder). Its logits there must be those of gpt.py, and the ids
that AutoTokenizer.from_pretrained(folder) gives must be the bytes of the text. Then transformers
saves it, and that is what test/golden/transformers holds:

    model.safetensors, config.json   as save_pretrained wrote them
    logits.txt                       what it answered, in float64, at every position

test_transformers.c reads the files, and compares every tensor with the one that our own writer
makes of the same model. So the way is tested in both directions without transformers.
"""

import argparse
import json
import os
import shutil
import struct
import subprocess
import tempfile

import torch
import transformers

from golden import SEED, VAL_FRACTION, sizes, write
from gpt import Text, make_model
from philox import init_weights
from probe import sharpen
from spec import VOCAB, Config, manifest
from tok_strings import strings

MODEL = Config(layers=2, width=8, heads=2, ctx=8)


def write_tinygpt(path, model):
    """A .tinygpt v2 file, as fixtures.py describes it; the moments are zeros."""
    params = dict(model.named_parameters())
    header = json.dumps({
        "version": 2, "weightDtype": "fp32", "includesOptimizerState": True,
        "config": {"layers": MODEL.layers, "dModel": MODEL.width, "ctx": MODEL.ctx,
                   "heads": MODEL.heads, "dMlp": MODEL.mlp}}).encode()
    with open(path, "wb") as f:
        f.write(b"TGPT" + struct.pack("<II", 2, len(header)) + header + struct.pack("<i", 0))
        for tensor in manifest(MODEL):
            value = params[tensor.name].detach()
            value = (value.t() if tensor.linear else value).numpy().astype("<f4")
            f.write(value.tobytes() + bytes(2 * value.nbytes))


def check_tokenizer(folder):
    """Token n is byte n, there and back; a template has nothing to add."""
    tok = transformers.AutoTokenizer.from_pretrained(folder)
    texts = strings()
    for text in texts:
        ids = tok.encode(text)
        assert ids == list(text.encode()), (text, ids)
        assert tok.decode(ids, clean_up_tokenization_spaces=False) == text, text
    assert len(tok) == VOCAB and tok.model_max_length == MODEL.ctx, tok
    print(f"AutoTokenizer: the bytes of {len(texts)} texts, and the texts again")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--program", required=True, help="build/tinygpt")
    parser.add_argument("--data", required=True, help="stories.txt")
    parser.add_argument("--out", default=os.path.join(here, "../../test/golden/transformers"))
    args = parser.parse_args()
    out = os.path.normpath(args.out)
    os.makedirs(out, exist_ok=True)
    tokens = Text(args.data, VAL_FRACTION).train[: MODEL.ctx][None]
    own = sharpen(make_model(MODEL, SEED))
    assert set(init_weights(MODEL, SEED)) == set(dict(own.named_parameters()))
    with tempfile.TemporaryDirectory() as folder:
        write_tinygpt(f"{folder}/m.tinygpt", own)
        exported = f"{folder}/exported"
        subprocess.run([args.program, "convert", f"{folder}/m.tinygpt", exported, "--format",
                        "safetensors"], check=True)
        theirs, report = transformers.AutoModelForCausalLM.from_pretrained(
            exported, output_loading_info=True)
        assert not any(report.values()), report
        with torch.no_grad():
            error = (theirs.eval()(tokens).logits - own(tokens)).abs().max().item()
            true = theirs.double()(tokens).logits[0]
        check_tokenizer(exported)
        print(f"largest difference between transformers and gpt.py: {error:.2g}")
        assert error < 1e-5
        theirs.float().save_pretrained(f"{folder}/saved")
        for name in ("model.safetensors", "config.json"):
            shutil.copyfile(f"{folder}/saved/{name}", f"{out}/{name}")
    write(f"{out}/logits.txt",
          [f"logits of transformers {transformers.__version__} [{MODEL.ctx}][{VOCAB}]",
           f"text: the first {MODEL.ctx} bytes of stories.txt",
           sizes(MODEL) + ", sharp as in probe_custom.txt"],
          true.reshape(-1).tolist(), script="transformers_gpt2.py")


if __name__ == "__main__":
    main()
