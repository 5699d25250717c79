"""A small server of a language model that never stalls: Llama with a static KV cache, asyncio.

    python examples/serve.py --prepare llama.package    # once: compiled without weights, on meta
    python examples/serve.py llama.package --port 8000  # every server: nothing is traced
    curl -d '{"tokens": [5, 6, 7], "count": 10}' localhost:8000
    python examples/serve.py --bench --plot serve.png   # latencies beside torch.compile

Two functions are compiled: prefill, for prompts of any length, and decode, a token for all requests
that are being answered. A request that comes meanwhile joins them. Without a package, and with
``background=True``, the first requests run as plain Python until the compiled code is there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

import framejit

WIDTH, LAYERS, HEADS, GROUPS, WORDS = 128, 4, 4, 2, 1000
SIZE = WIDTH // HEADS
#: How many requests are answered together, and how long one may become.
SLOTS, LENGTH = 8, 256
#: Keys and values of each layer, (slots, groups, length, size).
Cache = list[tuple[Tensor, Tensor]]


# -- the model -------------------------------------------------------------------------------------


def turned(x: Tensor, positions: Tensor) -> Tensor:
    """Rotary embedding of ``x`` (..., positions, size)."""
    steps = torch.arange(0, SIZE, 2, device=x.device) / SIZE
    angles = positions[..., None] * 10000.0**-steps
    first, second = x[..., ::2], x[..., 1::2]
    cos, sin = angles.cos(), angles.sin()
    return torch.cat([first * cos - second * sin, first * sin + second * cos], -1)


class Layer(nn.Module):
    """Attention and a gated network."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = nn.RMSNorm(WIDTH), nn.RMSNorm(WIDTH)
        self.query = nn.Linear(WIDTH, WIDTH, bias=False)
        self.keys = nn.Linear(WIDTH, 2 * GROUPS * SIZE, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.gate, self.up = (nn.Linear(WIDTH, 3 * WIDTH, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * WIDTH, WIDTH, bias=False)

    def heads(self, x: Tensor, positions: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value, (batch, heads, positions, size)."""
        x = self.before(x)
        query = self.query(x).unflatten(-1, (HEADS, SIZE)).transpose(1, 2)
        key, value = self.keys(x).unflatten(-1, (2 * GROUPS, SIZE)).transpose(1, 2).chunk(2, 1)
        return turned(query, positions), turned(key, positions), value

    def rest(self, x: Tensor, attended: Tensor) -> Tensor:
        """What comes after attention."""
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        inner = self.between(x)
        return x + self.down(functional.silu(self.gate(inner)) * self.up(inner))


class Llama(nn.Module):
    """Greedy decoding with a `Cache`."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(WORDS, WIDTH)
        self.layers = nn.ModuleList([Layer() for _ in range(LAYERS)])
        self.norm, self.head = nn.RMSNorm(WIDTH), nn.Linear(WIDTH, WORDS, bias=False)

    def prefill(self, tokens: Tensor) -> tuple[Tensor, Cache]:
        """The token that follows a prompt (1, length), and what goes into the cache."""
        x, positions, cached = self.embed(tokens), torch.arange(tokens.shape[1]), []
        for layer in self.layers:
            query, key, value = layer.heads(x, positions.to(x.device))
            cached.append((key[0], value[0]))
            attended = functional.scaled_dot_product_attention(
                query, key, value, is_causal=True, enable_gqa=True
            )
            x = layer.rest(x, attended)
        return self.head(self.norm(x[:, -1])).argmax(-1), cached

    def decode(self, tokens: Tensor, positions: Tensor, cache: Cache) -> Tensor:
        """The next token of each slot; ``tokens`` (slots,) go into the cache at ``positions``."""
        x, slots = self.embed(tokens)[:, None], torch.arange(SLOTS, device=tokens.device)
        seen = torch.arange(LENGTH, device=tokens.device) <= positions[:, None, None, None]
        for layer, (keys, values) in zip(self.layers, cache, strict=True):
            query, key, value = layer.heads(x, positions[:, None, None])
            keys[slots, :, positions] = key[:, :, 0]
            values[slots, :, positions] = value[:, :, 0]
            attended = functional.scaled_dot_product_attention(
                query, keys, values, attn_mask=seen, enable_gqa=True
            )
            x = layer.rest(x, attended)
        return self.head(self.norm(x[:, 0])).argmax(-1)


def new_cache() -> Cache:
    """An empty one."""
    shape = SLOTS, GROUPS, LENGTH, SIZE
    return [(torch.zeros(shape), torch.zeros(shape)) for _ in range(LAYERS)]


def weights() -> dict[str, Tensor]:
    """A real server reads a checkpoint here."""
    torch.manual_seed(0)
    return Llama().state_dict()


# -- the engine ------------------------------------------------------------------------------------


@dataclass
class Request:
    """A prompt, what was generated, and when."""

    tokens: list[int]
    count: int
    arrived: float = field(default_factory=time.perf_counter)
    made: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, token: int) -> None:
        """One more token is known."""
        self.made.append(token)
        self.times.append(time.perf_counter())


class Engine:
    """Answers requests in one thread, many together; ``compiler`` makes the two functions."""

    def __init__(self, compiler: Callable[..., Any]) -> None:
        with torch.device("meta"):
            model = Llama().eval()
        self.prefill, self.decode = compiler(model.prefill), compiler(model.decode)
        model.load_state_dict(weights(), assign=True)
        self.cache = new_cache()
        self.slots: list[Request | None] = [None] * SLOTS
        self.waiting: asyncio.Queue[Request] = asyncio.Queue()
        self.thread = ThreadPoolExecutor(1, "engine")

    async def generate(self, tokens: list[int], count: int) -> Request:
        """Answer one request: ``count`` tokens after ``tokens``."""
        request = Request(tokens[-LENGTH // 2 :], min(count, LENGTH // 2))
        await self.waiting.put(request)
        await request.done.wait()
        return request

    async def run(self) -> None:
        """Work, for as long as the server runs."""
        loop = asyncio.get_running_loop()
        while True:
            if not any(self.slots):
                self.slots[0] = await self.admitted(await self.waiting.get(), 0)
            for slot, request in enumerate(self.slots):
                if request is None and not self.waiting.empty():
                    self.slots[slot] = await self.admitted(self.waiting.get_nowait(), slot)
            await loop.run_in_executor(self.thread, self.step)
            for slot, request in enumerate(self.slots):
                if request is not None and len(request.made) >= request.count:
                    request.done.set()
                    self.slots[slot] = None

    async def admitted(self, request: Request, slot: int) -> Request:
        """Read the prompt of a request into ``slot``."""
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self.thread, self.start, request, slot)
        return request

    @torch.no_grad()
    def start(self, request: Request, slot: int) -> None:
        """The first token of a request."""
        token, cached = self.prefill(torch.tensor([request.tokens]))
        for (keys, values), (key, value) in zip(self.cache, cached, strict=True):
            keys[slot, :, : key.shape[1]] = key
            values[slot, :, : key.shape[1]] = value
        request.add(int(token))

    @torch.no_grad()
    def step(self) -> None:
        """One token for every request that wants one more."""
        active = [(i, r) for i, r in enumerate(self.slots) if r and len(r.made) < r.count]
        if not active:
            return
        tokens, positions = torch.zeros(SLOTS, dtype=torch.long), torch.zeros(SLOTS).long()
        for slot, request in active:
            tokens[slot] = request.made[-1]
            positions[slot] = len(request.tokens) + len(request.made) - 1
        following = self.decode(tokens, positions, self.cache).tolist()
        for slot, request in active:
            request.add(following[slot])


# -- packages and the server -----------------------------------------------------------------------


def prepare(path: str) -> None:
    """Compile both functions without weights, and save them."""
    with torch.device("meta"):
        model = Llama().eval()
        prompts = [torch.zeros(1, length, dtype=torch.long) for length in (5, 9)]
        tokens, positions = (torch.zeros(SLOTS, dtype=torch.long) for _ in range(2))
        cache = new_cache()
    with framejit.packaged(path), torch.no_grad():
        prefill = framejit.compile(model.prefill, fullgraph=True)
        for prompt in prompts:  # a second length: from then on any
            prefill.prepare(prompt)
        framejit.compile(model.decode, fullgraph=True).prepare(tokens, positions, cache)


def from_package(path: str) -> Callable[..., Any]:
    """What an engine compiles with: the package, and plain Python while anything is missing."""

    def compiler(function: Callable[..., Any]) -> Any:
        return framejit.compile(function, fullgraph=True, background=True, package=path)

    return compiler


async def serve(path: str, port: int, requests: int) -> None:
    """Answer POST requests with JSON over HTTP."""
    engine, answered = Engine(from_package(path)), 0
    finished = asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal answered
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split("\r\n")[0])
        asked = json.loads(await reader.readexactly(length))
        request = await engine.generate(asked["tokens"], int(asked.get("count", 10)))
        body = json.dumps({"tokens": request.made}).encode()
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
        writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()
        answered += 1
        if answered == requests:
            finished.set()

    server = await asyncio.start_server(answer, "127.0.0.1", port)
    print(f"listening on port {server.sockets[0].getsockname()[1]}", flush=True)
    work = asyncio.create_task(engine.run())
    ended = asyncio.create_task(finished.wait())
    await asyncio.wait([work, ended], return_when=asyncio.FIRST_COMPLETED)
    work.cancel()


# -- side by side ----------------------------------------------------------------------------------


def compiler_for(mode: str, path: str) -> Callable[..., Any]:
    """How a mode compiles."""
    if mode == "plain Python":
        return lambda function: function
    if mode == "torch.compile":
        return torch.compile
    if mode == "framejit, background":
        return lambda function: framejit.compile(function, background=True)
    return from_package(path)


MODES = ("plain Python", "torch.compile", "framejit, background", "framejit, package")


async def measured(mode: str, path: str, requests: int) -> dict[str, Any]:
    """Requests of random length that arrive at random, from a cold process on."""
    begun = time.perf_counter()
    engine, numbers = Engine(compiler_for(mode, path)), random.Random(0)
    work = asyncio.create_task(engine.run())

    async def client(wait: float, tokens: list[int], count: int) -> Request:
        await asyncio.sleep(wait)
        return await engine.generate(tokens, count)

    clients, at = [], 0.0
    for _ in range(requests):
        tokens = [numbers.randrange(WORDS) for _ in range(numbers.randint(4, 100))]
        clients.append(client(at, tokens, numbers.randint(8, 32)))
        at += numbers.expovariate(4.0)
    made = await asyncio.gather(*clients)
    work.cancel()
    firsts = [(r.arrived - begun, r.times[0] - r.arrived) for r in made]
    nexts = [
        (late - begun, late - early)
        for r in made
        for early, late in zip(r.times, r.times[1:], strict=False)
    ]
    return {"first": firsts, "next": nexts, "tokens": [r.made for r in made]}


def bench(path: str, requests: int, modes: list[str], picture: Path | None) -> None:
    """A process for each mode, with empty caches; a table, and a picture of all tokens."""
    from rich.console import Console
    from rich.table import Table

    if "framejit, package" in modes and not os.path.exists(path):
        prepare(path)
    found = {}
    for mode in modes:
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, __file__, path, "--mode", mode, "--requests", str(requests)]
            environment = os.environ | {"TORCHINDUCTOR_CACHE_DIR": folder}
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
        found[mode] = json.loads(done.stdout.splitlines()[-1])
    table = Table(title="milliseconds from a cold process on")
    for column in ("", "first token 50 %", "99 %", "worst", "next token 50 %", "99 %", "worst"):
        table.add_column(column, justify="right" if column else "left")
    table.add_column("same text", justify="right")
    expected = found[modes[0]]["tokens"]
    for mode, one in found.items():
        row = [mode]
        for kind in ("first", "next"):
            took = sorted(seconds for _, seconds in one[kind])
            figures = statistics.median(took), took[len(took) * 99 // 100], took[-1]
            row += [f"{seconds * 1e3:.1f}" for seconds in figures]
        same = sum(map(list.__eq__, one["tokens"], expected))
        table.add_row(*row, f"{same} of {requests}")
    Console(width=110).print(table)
    if picture is not None:
        from matplotlib import pyplot

        figure, axes = pyplot.subplots(figsize=(9, 4))
        for mode, one in found.items():
            times, took = zip(*one["first"], *one["next"], strict=True)
            axes.plot(times, [seconds * 1e3 for seconds in took], ".", ms=3, label=mode)
        axes.set(xlabel="seconds", ylabel="milliseconds per token", yscale="log")
        axes.legend()
        figure.savefig(picture, bbox_inches="tight")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("path", nargs="?", default="llama.package", help="the package")
    parser.add_argument("--prepare", action="store_true", help="make the package")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--requests", type=int, default=0, help="stop after so many")
    parser.add_argument("--bench", action="store_true", help="measure, instead of serving")
    parser.add_argument("--modes", nargs="*", choices=MODES, default=list(MODES))
    parser.add_argument("--plot", type=Path, help="a picture of all tokens goes to this file")
    parser.add_argument("--mode", choices=MODES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.prepare:
        prepare(options.path)
        print(f"saved {options.path}")
    elif options.bench:
        bench(options.path, options.requests or 60, options.modes, options.plot)
    elif options.mode:
        print(json.dumps(asyncio.run(measured(options.mode, options.path, options.requests))))
    else:
        asyncio.run(serve(options.path, options.port, options.requests))


if __name__ == "__main__":
    main()
