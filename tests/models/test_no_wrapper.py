"""A compiled module is its module to the libraries around it: transformers' generate, Trainer and
save_pretrained, accelerate's prepare and unwrap, code that looks for wrappers."""

import inspect

import pytest
import torch

import framejit
from checking import COPIES, CountingBackend, copied

transformers = pytest.importorskip("transformers")

IDS = torch.tensor([[5, 9, 11, 3, 40]])


def gpt2():
    config = transformers.GPT2Config(
        n_layer=2, n_head=2, n_embd=32, vocab_size=64, n_positions=64,
        bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.GPT2LMHeadModel(config).eval()


def classifier():
    config = transformers.BertConfig(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64,
        vocab_size=64, max_position_embeddings=32,
    )  # fmt: skip
    torch.manual_seed(0)
    return transformers.BertForSequenceClassification(config)


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, i):
        generator = torch.Generator().manual_seed(i)
        ids = torch.randint(0, 64, (8,), generator=generator)
        return {"input_ids": ids, "attention_mask": torch.ones(8, dtype=torch.long),
                "labels": torch.tensor(i % 2)}  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [{"do_sample": False}, {"do_sample": False, "num_beams": 2}, {"do_sample": True, "top_k": 5}],
    ids=["greedy", "beams", "sampled"],
)
def test_generate(options):
    model = gpt2()
    backend = CountingBackend()
    compiled = framejit.compile(model, backend=backend)
    torch.manual_seed(1)
    expected = model.generate(IDS, max_new_tokens=6, **options)
    torch.manual_seed(1)
    got = compiled.generate(IDS, max_new_tokens=6, **options)
    assert torch.equal(got, expected)
    assert backend.ops > 100, "nothing was captured"
    assert not framejit.counters["skipped"]


def test_save_pretrained(tmp_path):
    model = gpt2()
    compiled = framejit.compile(model, backend="eager")
    compiled(IDS)
    compiled.save_pretrained(tmp_path)
    loaded = transformers.GPT2LMHeadModel.from_pretrained(tmp_path).eval()
    assert loaded.state_dict().keys() == model.state_dict().keys()
    assert torch.equal(loaded(IDS).logits, model(IDS).logits)


def test_what_libraries_look_at():
    model = gpt2()
    compiled = framejit.compile(model, backend="eager")
    assert isinstance(compiled, transformers.GPT2LMHeadModel)
    assert type(compiled).__name__ == "GPT2LMHeadModel"
    assert inspect.signature(compiled.forward) == inspect.signature(model.forward)
    assert list(compiled.state_dict()) == list(model.state_dict())
    assert [n for n, _ in compiled.named_modules()] == [n for n, _ in model.named_modules()]
    assert not hasattr(compiled, "_orig_mod") and not hasattr(compiled, "module")
    assert compiled.config is model.config and compiled.device == model.device
    assert compiled.num_parameters() == model.num_parameters()


@pytest.mark.parametrize("how", COPIES)
def test_copies(how):
    model = gpt2()
    compiled = framejit.compile(model, backend="eager")
    expected = compiled(IDS).logits
    twin = copied(compiled, how)
    assert torch.equal(twin(IDS).logits, expected)
    assert list(twin.state_dict()) == list(model.state_dict())


def train(directory, backend):
    pytest.importorskip("accelerate")
    model = classifier()
    given = framejit.compile(model, backend=backend) if backend is not None else model
    arguments = transformers.TrainingArguments(
        str(directory), max_steps=3, per_device_train_batch_size=4, report_to=[], use_cpu=True,
        seed=1, disable_tqdm=True, save_strategy="no",
    )  # fmt: skip
    trainer = transformers.Trainer(given, arguments, train_dataset=Rows(), eval_dataset=Rows())
    loss = trainer.train().training_loss
    evaluated = trainer.evaluate()["eval_loss"]
    trainer.save_model(str(directory))
    loaded = transformers.BertForSequenceClassification.from_pretrained(directory)
    return loss, evaluated, model.state_dict(), loaded.state_dict()


def test_trainer(tmp_path):
    backend = CountingBackend()
    expected = train(tmp_path / "eager", None)
    got = train(tmp_path / "compiled", backend)
    assert got[:2] == pytest.approx(expected[:2])
    torch.testing.assert_close(got[2], expected[2])
    torch.testing.assert_close(got[3], expected[3])
    assert backend.ops > 100, "nothing was captured"


def test_accelerate_unwraps_to_the_compiled_module():
    accelerate = pytest.importorskip("accelerate")
    compiled = framejit.compile(gpt2(), backend="eager")
    accelerator = accelerate.Accelerator(cpu=True)
    prepared = accelerator.prepare(compiled)
    assert accelerator.unwrap_model(prepared) is compiled
    assert accelerate.utils.extract_model_from_parallel(compiled) is compiled


def test_unwrapping_loops_end_at_the_compiled_module():
    compiled = framejit.compile(gpt2(), backend="eager")
    model = compiled
    while hasattr(model, "module"):
        model = model.module
    assert getattr(model, "_orig_mod", model) is compiled
