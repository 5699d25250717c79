"""`examples/serve.py`: two graphs, the text of plain Python, and a server that traces nothing."""

import asyncio
import importlib.util
import json
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
import torch

import framejit
from checking import CountingBackend
from framejit.report import events

SCRIPT = Path(__file__).parents[2] / "examples" / "serve.py"


@pytest.fixture(scope="module")
def serve():
    spec = importlib.util.spec_from_file_location("serve", SCRIPT)
    module = sys.modules["serve"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["serve"]


PROMPTS = [[5, 6, 7], [9, 8, 7, 6, 5], [1, 2]]


async def answered(engine):
    """What three clients get at once."""
    work = asyncio.create_task(engine.run())
    made = await asyncio.gather(*[engine.generate(tokens, 6) for tokens in PROMPTS])
    work.cancel()
    return [request.made for request in made]


def alone(serve, model, tokens, count):
    """The same without a cache, one prompt at a time."""
    made = []
    with torch.no_grad():
        for _ in range(count):
            made.append(int(model.prefill(torch.tensor([tokens + made]))[0]))
    return made


def test_text_is_that_of_plain_python(serve):
    backend = CountingBackend()
    engine = serve.Engine(lambda f: framejit.compile(f, backend=backend, fullgraph=True))
    model = serve.Llama()
    model.load_state_dict(serve.weights())
    got = asyncio.run(answered(engine))
    assert got == [alone(serve, model, tokens, 6) for tokens in PROMPTS]
    assert len(backend.graphs) == 3  # the first prompt, all prompts, decode


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_server_that_starts_from_the_package(serve, tmp_path):
    path = str(tmp_path / "llama.package")
    subprocess.run([sys.executable, SCRIPT, path, "--prepare"], check=True)
    with events.recording(events.CaptureStart, events.BackendStart) as seen:
        engine = serve.Engine(serve.from_package(path))
        expected = asyncio.run(answered(engine))
    assert seen == []
    command = [sys.executable, SCRIPT, path, "--port", "0", "--requests", str(len(PROMPTS))]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    port = server.stdout.readline().split()[-1]
    for tokens, text in zip(PROMPTS, expected, strict=True):
        data = json.dumps({"tokens": tokens, "count": 6}).encode()
        with urllib.request.urlopen(f"http://127.0.0.1:{port}", data, timeout=60) as answer:
            assert json.load(answer) == {"tokens": text}
    assert server.wait(60) == 0


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_table(tmp_path):
    modes = ["plain Python", "framejit, background"]
    command = [sys.executable, SCRIPT, str(tmp_path / "p"), "--bench", "--requests", "5"]
    done = subprocess.run([*command, "--modes", *modes], capture_output=True, text=True, check=True)
    assert done.stdout.count("5 of 5") == 2
