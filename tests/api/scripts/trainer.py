"""Hugging Face's Trainer with torch_compile=True."""

import os
import tempfile

import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments

torch.manual_seed(0)
config = BertConfig(
    vocab_size=64, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=32, max_position_embeddings=16, hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)  # fmt: skip
model = BertForSequenceClassification(config)
rows = [
    {"input_ids": [i % 60 + 1, 2, 3, 4], "attention_mask": [1] * 4, "labels": i % 2}
    for i in range(16)
]
arguments = TrainingArguments(
    output_dir=tempfile.mkdtemp(), per_device_train_batch_size=4, num_train_epochs=1,
    torch_compile=True, torch_compile_backend="eager", report_to=[], use_cpu=True,
    save_strategy="no", logging_strategy="no", seed=1, disable_tqdm=True,
)  # fmt: skip
result = Trainer(model=model, args=arguments, train_dataset=rows).train()
print(f"loss {result.training_loss:.5f} after {result.global_step} steps")
print(f"{model.bert.embeddings.word_embeddings.weight.sum().item():.4f}", os.sep)
