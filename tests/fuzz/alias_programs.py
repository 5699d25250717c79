"""Writes programs about memory that tensors share: views, writes in place, new data, whose tensor is
whose, between calls that change what the program's globals and arguments share.

In: a seed. Out: a `Program`: a function of two tensors that may be one, or views of one another or
of globals, and changes between its calls. Errors of torch are part of what is compared.
"""

# ruff: noqa: E501 (one expression of a program a line)
from __future__ import annotations

import random
import re

from program_writer import Program

PRELUDE = """
import types
import framejit
import torch
import torch.nn.functional as F

class Holder:
    t = torch.arange(4.)

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.w = torch.nn.Parameter(torch.arange(1., 5.))
        self.register_buffer('buf', torch.ones(2, 2))
    def forward(self, x): return x * self.w.sum() + self.buf.sum()

def mk(seed, *shape):
    n = 1
    for size in shape: n *= size
    return ((torch.arange(n) * 7 + seed * 5) % 11 - 4.).reshape(shape)

G_NET = Net()
G_A = mk(1, 2, 3)
G_B = G_A[0]
G_K = torch.arange(6).reshape(2, 3)
G_Z = torch.complex(mk(1, 2, 2), mk(2, 2, 2))
G_S = types.SimpleNamespace(t=mk(3, 2, 2), l=[mk(4, 3), G_A], d={'k': mk(5, 4)})
G_S.l.append(G_S.t.view(-1))
G_P = mk(6, 2, 3).requires_grad_()
"""

#: Where tensors are that outlive a call.
_PLACES = [
    "G_A", "G_B", "G_S.t", "G_S.l[0]", "G_S.l[1]", "G_S.l[2]", "G_S.d['k']", "Holder.t", "G_NET.buf",
    "G_NET.w", "G_P", "G_K", "G_Z",
]  # fmt: skip
#: What makes a tensor of X that often shares its memory.
_VIEWS = [
    "X.t()", "X[0]", "X[..., 1]", "X.view(-1)", "X.reshape(-1)", "X.mT", "X.unsqueeze(0)", "X.detach()", "X.data", "X.real",
    "X.conj()", "X.diagonal()", "X.flatten()", "X.contiguous()", "X.float()", "X.as_strided((2,), (1,))", "X.as_strided((2, 2), (1, 1), 1)",
    "X.narrow(0, 0, 1)", "X.chunk(2)[-1]", "X.squeeze()", "X.view(torch.int32)", "X.movedim(0, -1)", "X.expand(2, *X.shape)",
    "X.view(X.shape)", "X.permute(*range(X.dim())[::-1])", "X.unbind(0)[-1]", "X[None]", "X[:]", "X[...]", "X[1:]", "X[::2]",
    "X.split(1)[0]", "X.ravel()", "X.swapaxes(0, -1)", "X.select(0, -1)", "X.view_as(X)", "X.broadcast_to(X.shape)", "X.imag",
    "X.resolve_conj()", "X.view(torch.int16)", "X.to(X.dtype)", "X.type_as(X)", "X.clone()", "X[:, :0]", "X.sum()", "X[()]", "X.neg()",
    "X.adjoint()", "X.unfold(0, 2, 1)", "X.requires_grad_()", "X.sort()[0]", "X.resolve_neg()", "X.view(*X.shape, 1)", "X.cpu()",
    "X.contiguous(memory_format=torch.contiguous_format)", "X.reshape(X.shape)", "X.positive()", "X.double()", "F.dropout(X, 0.5, False)",
]  # fmt: skip
#: What makes one of X and Y.
_OPERATIONS = [
    "X + 1", "X * Y.sum()", "X * 2", "torch.stack([X, X])", "torch.cat([X, X])", "X.abs()", "torch.zeros_like(X)", "torch.empty_like(X).fill_(2)",
    "torch.relu(X)", "torch.broadcast_tensors(X, Y)[0]", "torch.atleast_2d(X)", "torch.nn.Parameter(X.detach())", "torch.as_tensor(X)", "torch.asarray(X)",
    "torch.meshgrid(X.view(-1), Y.view(-1), indexing='ij')[0]", "torch.expand_copy(X, X.shape)", "torch.from_numpy(X.detach().numpy())",
    "torch.tensor_split(X, 2)[0]", "torch.hstack([X])", "torch.where(X > 0, X, Y)", "torch.square(X)", "torch.ones(3)", "X.new_zeros(2)",
    "torch.empty_strided((2, 2), (1, 2)).fill_(1)", "torch.view_as_real(G_Z)", "torch.complex(X, X)", "torch.block_diag(X)", "torch.diag_embed(X)",
    "F.relu(X, inplace=True)", "torch.as_strided(X, (2,), (1,))", "torch.squeeze(X)", "torch.view_copy(X, (-1,))", "torch.movedim(X, 0, -1)",
    "X.type(torch.float32)", "torch.nan_to_num(X)", "X @ Y", "G_NET(X)", "X.sin()",
]  # fmt: skip
#: What writes to X; N is a number, B a truth value.
_WRITES = [
    "X.add_(N)", "X[0] = N", "X.mul_(N)", "X.zero_()", "X.copy_(Y)", "X += N", "X *= Y", "X.t_()", "X.unsqueeze_(0)", "X.squeeze_()", "X.transpose_(0, -1)",
    "X.resize_(2).fill_(N)", "X.resize_(3, 3).fill_(N)", "X.set_(Y)", "X.data = Y", "X.data = Y.clone()", "torch.add(X, 1, out=Y)", "torch.add(X, 1, out=X)",
    "X.requires_grad_()", "X.detach_()", "X[..., 0] += N", "X[X > 0] = N", "X.fill_(Y.sum())", "X.requires_grad = False", "X.grad = None", "X.swapaxes_(0, -1)",
    "X.sub_(Y)", "X.data.add_(1)", "X.data[0] = 7", "X.detach().mul_(2)", "X.view(-1)[0] = N", "X[:] = Y", "X.clamp_(min=N)", "X.relu_()", "X.as_strided_((2,), (1,))",
    "X.index_add_(0, torch.tensor([0]), X[:1].clone())", "X.resize_as_(Y).fill_(N)", "X.masked_fill_(X > 1, 0)", "X.index_fill_(0, torch.tensor([0]), N)",
    "torch.sin(X, out=Y)", "X.note = N", "torch._foreach_add_([X, Y], 1)", "X.diagonal().fill_(N)", "X.real.add_(1)", "X.conj_physical_()", "X.retain_grad()",
    "X.sqrt_()", "X.neg_()", "X.cumsum_(0)", "X.lerp_(Y, 0.5)", "X.resize_(0)", "X.expand(2, *X.shape)[0].add_(1)", "torch.set_grad_enabled(B)",
    "X.register_hook(lambda g: g * 2)", "X.requires_grad_(B)", "X.__setitem__(0, Y[0])", "X.index_put_((torch.tensor([0]),), X[0])",
    "X.grad = X.detach().clone()", "X.copy_(X.t())",
]  # fmt: skip
#: What stores a tensor; P is a place, E an expression, X a tensor.
_STORES = [
    "P = E", "P = X", "P = V", "G_S.l.append(X)", "G_S.extra = X", "G_S.d['n'] = E", "G_S.l[0], G_S.t = G_S.t, G_S.l[0]", "G_NET.buf = E", "del G_S.l[-1]",
    "G_NET.w = torch.nn.Parameter(X.detach())", "G_NET.register_buffer('b2', X)", "Holder.t = E", "G_NET.w.data = E", "G_S.d['k'] = X",
    "G_S.l = [*G_S.l, X]", "G_S.l[1:] = [X, X]",
]  # fmt: skip
#: What is asked of X and Y.
_QUESTIONS = [
    "X is Y", "X.shape", "X.stride()", "X.storage_offset()", "X.data_ptr() == Y.data_ptr()", "X._base is Y", "X.is_contiguous()", "X._is_view()",
    "X.requires_grad", "X.is_leaf", "X.grad is None", "X.dim()", "X.dtype", "float(X.sum())", "X.tolist()", "X.numel()", "X._base is None",
    "X.untyped_storage().nbytes()", "len(X)", "hasattr(X, 'note')", "X.grad_fn is None", "torch.equal(X, Y)", "X.is_conj()", "X.is_set_to(Y)", "X.nbytes",
    "X.untyped_storage().data_ptr() == Y.untyped_storage().data_ptr()", "id(X) == id(Y)", "any(X is q for q in G_S.l)", "torch.is_grad_enabled()",
    "bool(X.any())", "X.shape == Y.shape", "X.element_size()", "X.is_complex()", "X.layout", "[q.shape for q in G_S.l]", "type(X).__name__",
    "X.is_inference()", "X.retains_grad", "vars(X)",
]  # fmt: skip
#: What happens between two calls.
_CHANGES = [
    "G_S.t = mk(7, 2, 2)", "G_S.l[0] = G_S.t", "G_S.l[1] = G_S.l[0]", "G_A = mk(2, 2, 3)", "G_B = G_A[1]", "G_B = G_A", "G_P.requires_grad_(False)",
    "G_P.requires_grad_()", "G_P.grad = None", "G_NET.buf = torch.zeros(2, 2)", "G_NET.w = torch.nn.Parameter(torch.ones(4))", "G_NET.buf.add_(1)",
    "G_NET.w.data = torch.ones(2, 2)", "Holder.t = G_A", "Holder.t = Holder.t.clone()", "G_S.l.append(mk(3, 2))", "G_S.d['k'] = G_S.t.view(-1)",
    "G_S.d['k'] = G_S.t", "G_S.t = G_S.t.t()", "G_A = G_A.double()", "G_S.t = G_S.t.detach().requires_grad_()", "G_NET.w.requires_grad_(False)",
    "G_NET.buf.requires_grad_()", "G_B = G_A.clone()", "G_A = torch.zeros(0, 3)", "G_A = mk(1, 1, 3)", "G_K = G_K + 1", "G_Z = G_Z.conj()", "G_A = G_A[:, :2]",
    "G_S.t = G_S.t.expand(2, 2)", "G_S.t = torch.ones(1).expand(2, 2)", "G_NET.buf = G_S.t.detach()", "G_A.grad = None", "G_S.t.resize_(2, 2).fill_(3)",
    "G_B.data = G_A.data[0]", "pass", "G_S.l[2] = G_S.t.view(-1)", "G_A = G_A.t()", "G_S.t = torch.tensor(3.)", "G_S.t = G_S.t.half()", "G_P = G_P.detach()",
    "G_P = torch.nn.Parameter(G_P.detach())", "G_A.note = 2", "G_A = torch.nn.Parameter(G_A.detach())", "G_S.l = list(G_S.l)", "G_S.d = dict(G_S.d)",
    "Holder.t = G_NET.w", "G_S.l[0] = G_NET.w", "G_A = G_NET.w.detach()", "G_B = G_P[0]", "G_S.t = G_P.detach()", "G_S.t = G_S.t * G_P.sum()",
]  # fmt: skip
_ARGUMENTS = [
    "mk(N, 2, 3)", "mk(N, 3)", "mk(N, 2, 2)", "G_A", "G_B", "G_S.t", "G_S.l[0]", "G_A[0]", "G_P", "mk(N, 3).requires_grad_()", "G_S.l[1]", "G_Z", "G_K",
    "torch.tensor(2.)", "mk(N, 4, 2).t()", "mk(N, 1, 3)", "mk(N, 0, 3)", "G_NET.w", "G_NET.buf", "G_A.t()", "G_P.detach()", "G_A.view(-1)", "mk(N, 3, 3)",
    "mk(N, 4)", "mk(N, 6).view(2, 3)", "G_P * 2", "Holder.t", "mk(N, 3, 1, 2)",
]  # fmt: skip
_BLOCKS = [
    "with torch.no_grad():", "with torch.no_grad():", "with torch.enable_grad():", "for i in range(2):", "if X.shape[0] > 2:", "if X.requires_grad:",
    "if X is Y:", "if X.sum() > 0:", "try:",
]  # fmt: skip
_WORD = re.compile(r"(?<![\w.'])[A-Z](?![\w'])")
_ERRORS = "except (RuntimeError, IndexError, TypeError) as e: seen.append(type(e).__name__)"


class _Writer:
    """Writes the statements of one function of ``a`` and ``b``."""

    def __init__(self, rng: random.Random) -> None:
        self.random = rng
        self.known = ["a", "b"]
        self.made = 0

    def tensor(self) -> str:
        return self.random.choice(self.known if self.random.random() < 0.65 else _PLACES)

    def filled(self, template: str) -> str:
        """``template`` with tensors and numbers in their places."""
        x = self.tensor()
        y = self.tensor() if self.random.random() < 0.7 else x
        number, flag = self.random.choice((0, 1, 2, 0.5, -1)), self.random.choice((True, False))
        parts = {"X": x, "Y": y, "N": str(number), "B": str(flag)}
        if "E" in template.split():
            parts["E"] = self.expression()
        if "V" in template.split():
            parts["V"] = self.filled(self.random.choice(_VIEWS))
        if template.startswith("P "):
            parts["P"] = self.random.choice(_PLACES)
        return _replaced(template, parts)

    def expression(self) -> str:
        found = self.random.random()
        if found < 0.2:
            return self.tensor()
        return self.filled(self.random.choice(_VIEWS if found < 0.65 else _OPERATIONS))

    def statement(self, depth: int = 0) -> list[str]:
        """The lines of one statement."""
        found = self.random.random()
        if found < 0.3:
            line = f"v{self.made} = {self.expression()}"
            self.known.append(f"v{self.made}")
            self.made += 1
            return [line]
        if found < 0.6:
            line = self.filled(self.random.choice(_WRITES))
            return [line] if self.random.random() < 0.5 else [f"try: {line}", _ERRORS]
        if found < 0.72:
            return [self.filled(self.random.choice(_STORES))]
        if found < 0.9 or depth == 2:
            return [f"seen.append({self.filled(self.random.choice(_QUESTIONS))})"]
        return self.block(self.filled(self.random.choice(_BLOCKS)), depth + 1)

    def block(self, head: str, depth: int) -> list[str]:
        """A block; what is made in it may be missing after it."""
        before = list(self.known)
        some = [self.statement(depth) for _ in range(self.random.randint(1, 3))]
        if not head.startswith("with"):
            self.known = before
        body = [f"    {line}" for lines in some for line in lines]
        return [head, *body, *([_ERRORS] if head == "try:" else [])]


def _replaced(template: str, parts: dict[str, str]) -> str:
    """``template`` with its words of one capital letter replaced."""
    return _WORD.sub(lambda match: parts.get(match[0], match[0]), template)


def alias_program(seed: int) -> Program:
    """The program of a seed."""
    rng = random.Random(seed)
    writer = _Writer(rng)
    body = [line for _ in range(rng.randint(2, 9)) for line in writer.statement()]
    if rng.random() < 0.25:
        body = ["with torch.no_grad():", *[f"    {line}" for line in body]]
    results = rng.sample(writer.known, min(len(writer.known), rng.randint(1, 5)))
    results += [rng.choice(_PLACES)] if rng.random() < 0.3 else []
    results += [writer.expression()] if rng.random() < 0.3 else []
    names = "global G_A, G_B, G_K, G_Z, G_P"
    body = [names, "seen = []", *body, f"return ({', '.join([*results, 'seen'])},)"]
    lines = ["def program(a, b):", *[f"    {line}" for line in body]]
    calls = []
    given = ["", ""]
    for number in range(rng.randint(3, 5)):
        for place in range(2):
            if not number or rng.random() < 0.3:
                given[place] = _replaced(rng.choice(_ARGUMENTS), {"N": str(number + place)})
        twice = number and rng.random() < 0.15
        calls.append(f"program:(*[{given[0]}] * 2,)" if twice else f"program:({', '.join(given)},)")
        if rng.random() < 0.6:
            lines += [f"def change{number}():", f"    {names}", f"    {rng.choice(_CHANGES)}"]
            calls.append(f"change{number}:()")
    return Program(PRELUDE + "\n".join(lines) + "\n", calls, PRELUDE)
