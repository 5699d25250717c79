"""Hugging Face's generate() with a static cache and a compiled forward."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

torch.manual_seed(0)
config = GPT2Config(vocab_size=64, n_positions=32, n_embd=16, n_layer=1, n_head=2)
model = GPT2LMHeadModel(config).eval()
model.generation_config.cache_implementation = "static"
model.forward = torch.compile(model.forward, backend="eager", fullgraph=False)
for prompt in ([[1, 2, 3]], [[5, 4, 3]]):
    ids = torch.tensor(prompt)
    out = model.generate(
        ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False,
        pad_token_id=0, eos_token_id=None,
    )  # fmt: skip
    print(out.tolist())
