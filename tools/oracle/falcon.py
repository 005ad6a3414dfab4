# SPDX-License-Identifier: Apache-2.0
"""multiply(model): Falcon-H1's numbers of config.json go into its weights, as llama.cpp's converter does, and are 1 in
the model that comes out. A table that is embedding and head becomes two, which have numbers of their own."""
import numpy as np
import torch
import transformers as tf


def multiply(model):
    c = model.config
    inner, groups = c.mamba_d_ssm, c.mamba_n_groups * c.mamba_d_state
    rows = np.repeat(c.ssm_multipliers, [inner, inner, groups, groups, c.mamba_n_heads]) * c.ssm_in_multiplier
    gate, down = c.mlp_multipliers
    by = {"embed_tokens": c.embedding_multiplier, "lm_head": c.lm_head_multiplier, "q_proj": c.attention_in_multiplier,
          "k_proj": c.attention_in_multiplier * c.key_multiplier, "v_proj": c.attention_in_multiplier,
          "o_proj": c.attention_out_multiplier, "in_proj": torch.tensor(rows)[:, None], "out_proj": c.ssm_out_multiplier,
          "gate_proj": gate, "down_proj": down}
    state = {key: t.clone() for key, t in model.state_dict().items()}
    for key, t in state.items():
        times = by.get(key.split(".")[-2])
        if times is not None:
            state[key] = (t.double() * times).to(t.dtype)
    ones = dict(embedding_multiplier=1.0, lm_head_multiplier=1.0, key_multiplier=1.0, attention_in_multiplier=1.0,
                attention_out_multiplier=1.0, ssm_in_multiplier=1.0, ssm_out_multiplier=1.0, mlp_multipliers=[1.0, 1.0],
                ssm_multipliers=[1.0] * 5)
    plain = tf.FalconH1ForCausalLM(type(c)(**(c.to_dict() | ones | {"tie_word_embeddings": False}))).to(model.dtype)
    plain.load_state_dict(state)
    return plain
