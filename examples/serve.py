"""A small HTTP server that starts from a package: nothing is traced, the first request is fast.

    python examples/serve.py --prepare model.package    # once: compile and save
    python examples/serve.py model.package --port 8000  # every server
    curl -d '[[0.1, 0.2, 0.3, 0.4]]' localhost:8000

``--requests N`` stops after N requests.
"""

import argparse
import json
import time
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import Any

import torch
from torch import nn

import framejit


class Classifier(nn.Module):
    """Four numbers in, two probabilities out."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 64), nn.GELU(), nn.Linear(64, 2))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x).softmax(-1)


def make_model() -> nn.Module:
    """The model with its weights; a real server would load a checkpoint here."""
    torch.manual_seed(0)
    return Classifier().eval()


def prepare(path: str) -> None:
    """Compile for batches of any size and save."""
    compiled = framejit.compile(make_model())
    with torch.no_grad():
        for batch in (2, 3, 1):
            compiled(torch.zeros(batch, 4))
    compiled.save_package(path)
    print(f"saved {path}")


def serve(path: str, port: int, requests: int) -> None:
    """Answer requests, one after the other."""
    started = time.perf_counter()
    compiled = framejit.compile(make_model()).load_package(path)
    print(f"loaded {path} in {time.perf_counter() - started:.3f} s", flush=True)
    seen = 0

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            nonlocal seen
            body = self.rfile.read(int(self.headers["Content-Length"]))
            began = time.perf_counter()
            with framejit.run(), torch.no_grad():  # compile nothing new
                answer = compiled(torch.tensor(json.loads(body))).tolist()
            if not seen:
                print(f"first request: {(time.perf_counter() - began) * 1e3:.1f} ms", flush=True)
            seen += 1
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Be quiet."""

    with HTTPServer(("127.0.0.1", port), Handler) as server:
        print(f"listening on port {server.server_port}", flush=True)
        while not requests or seen < requests:
            server.handle_request()


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("path")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--requests", type=int, default=0)
    options = parser.parse_args()
    if options.prepare:
        prepare(options.path)
    else:
        serve(options.path, options.port, options.requests)


if __name__ == "__main__":
    main()
