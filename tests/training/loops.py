"""Training loops as users write them: a step, what it is called with, what it changes."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint

from small_models import bert, gpt2, llama, t5, vit


@dataclasses.dataclass
class Loop:
    step: Callable[..., Any]
    batches: list[tuple[Any, ...]]
    modules: list[nn.Module]
    optimizers: list[torch.optim.Optimizer] = dataclasses.field(default_factory=list)
    #: What is called between steps.
    after: Callable[[], Any] = lambda: None


STEPS = 10


def perceptron():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def rows(width=4, classes=3):
    return [(torch.randn(6, width), torch.randint(0, classes, (6,))) for _ in range(STEPS)]


def mlp():
    return with_optimizer("SGD", lr=0.1, momentum=0.9)()


def convolutions():
    model = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Linear(4, 3),
    )  # fmt: skip
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)
    batches = [(torch.randn(4, 3, 8, 8), torch.randint(0, 3, (4,))) for _ in range(STEPS)]

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=False)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        return loss.detach()

    return Loop(step, batches, [model], [optimizer], scheduler.step)


def of_zoo(make, loss_of, optimizer=torch.optim.AdamW, **options):
    model, inputs = make()
    model.train()
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    optimizer = optimizer(model.parameters(), **{"lr": 1e-3, **options})
    tokens = inputs.get("input_ids", inputs.get("pixel_values"))

    def batch(i):
        if tokens.dtype is torch.long:
            return {**inputs, "input_ids": (tokens + i) % 90}
        return {**inputs, "pixel_values": tokens * (1 + 0.1 * i)}

    def step(inputs):
        optimizer.zero_grad()
        loss = loss_of(model(**inputs), inputs)
        loss.backward()
        optimizer.step()
        return loss

    return Loop(step, [(batch(i),) for i in range(STEPS)], [model], [optimizer])


def _next_token(output, inputs):
    logits = output.logits[:, :-1]
    return F.cross_entropy(
        logits.reshape(-1, logits.shape[-1]), inputs["input_ids"][:, 1:].reshape(-1)
    )


def step_of_bert():
    return of_zoo(bert, lambda output, inputs: output.last_hidden_state.square().mean())


def step_of_gpt2():
    return of_zoo(gpt2, _next_token)


def step_of_llama():
    return of_zoo(llama, _next_token)


def step_of_t5():
    return of_zoo(t5, lambda output, inputs: output.logits.float().square().mean())


def step_of_vit():
    return of_zoo(
        vit, lambda output, inputs: output.last_hidden_state.square().mean(), torch.optim.SGD
    )


def gan():
    generator = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 4))
    critic = nn.Sequential(nn.Linear(4, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    makes = torch.optim.Adam(generator.parameters(), lr=1e-2, betas=(0.5, 0.999))
    judges = torch.optim.Adam(critic.parameters(), lr=1e-2, betas=(0.5, 0.999))

    def step(real, noise):
        fake = generator(noise)
        judges.zero_grad()
        on_real = F.softplus(-critic(real)).mean()
        on_fake = F.softplus(critic(fake.detach())).mean()
        (on_real + on_fake).backward()
        judges.step()
        makes.zero_grad()
        fooled = F.softplus(-critic(fake)).mean()
        fooled.backward()
        makes.step()
        return on_real, on_fake, fooled

    batches = [(torch.randn(5, 4), torch.randn(5, 2)) for _ in range(STEPS)]
    return Loop(step, batches, [generator, critic], [makes, judges])


def gradient_penalty():
    critic = nn.Sequential(nn.Linear(4, 8), nn.SiLU(), nn.Linear(8, 1))
    optimizer = torch.optim.RMSprop(critic.parameters(), lr=1e-2)

    def step(real, fake, weight):
        optimizer.zero_grad()
        between = (weight * real + (1 - weight) * fake).requires_grad_(True)
        (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
        penalty = (slope.norm(dim=1) - 1).square().mean()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty
        loss.backward()
        optimizer.step()
        return loss, penalty

    batches = [(torch.randn(5, 4), torch.randn(5, 4), torch.rand(5, 1)) for _ in range(STEPS)]
    return Loop(step, batches, [critic], [optimizer])


def maml():
    model = perceptron()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(x, y):
        optimizer.zero_grad()
        fast = dict(model.named_parameters())
        for _ in range(2):
            inner = F.cross_entropy(functional_call(model, fast, (x[:3],)), y[:3])
            slopes = torch.autograd.grad(inner, list(fast.values()), create_graph=True)
            fast = {name: p - 0.1 * g for (name, p), g in zip(fast.items(), slopes, strict=True)}
        outer = F.cross_entropy(functional_call(model, fast, (x[3:],)), y[3:])
        outer.backward()
        optimizer.step()
        return inner.detach(), outer

    return Loop(step, rows(), [model], [optimizer])


def two_losses():
    body = nn.Sequential(nn.Linear(4, 8), nn.Tanh())
    actor, value = nn.Linear(8, 3), nn.Linear(8, 1)
    modules = [body, actor, value]
    optimizer = torch.optim.Adam([p for m in modules for p in m.parameters()], lr=3e-3, eps=1e-5)

    def step(x, action, before, advantage, target):
        hidden = body(x)
        chances = torch.log_softmax(actor(hidden), -1).gather(1, action[:, None])[:, 0]
        ratio = torch.exp(chances - before)
        clipped = torch.clamp(ratio, 0.8, 1.2) * advantage
        policy = -torch.min(ratio * advantage, clipped).mean()
        error = F.mse_loss(value(hidden)[:, 0], target)
        optimizer.zero_grad()
        policy.backward(retain_graph=True)
        (0.5 * error).backward()
        nn.utils.clip_grad_norm_([p for m in modules for p in m.parameters()], 0.5)
        optimizer.step()
        return policy.detach(), error.detach()

    batches = [
        (
            torch.randn(6, 4),
            torch.randint(0, 3, (6,)),
            -torch.rand(6),
            torch.randn(6),
            torch.randn(6),
        )
        for _ in range(STEPS)
    ]
    return Loop(step, batches, modules, [optimizer])


def vae():
    encode, decode = nn.Linear(4, 6), nn.Linear(3, 4)
    optimizer = torch.optim.Adagrad([*encode.parameters(), *decode.parameters()], lr=0.05)

    def step(x):
        optimizer.zero_grad()
        mean, spread = encode(x).chunk(2, dim=-1)
        code = mean + torch.randn_like(spread) * torch.exp(0.5 * spread)
        distance = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp())
        loss = F.mse_loss(decode(code), x, reduction="sum") + distance
        loss.backward()
        optimizer.step()
        return loss

    batches = [(torch.randn(5, 4),) for _ in range(STEPS)]
    return Loop(step, batches, [encode, decode], [optimizer])


def accumulation():
    model = perceptron()
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2)

    def step(x, y):
        total = 0.0
        optimizer.zero_grad()
        for xs, ys in zip(x.chunk(3), y.chunk(3), strict=True):
            loss = F.cross_entropy(model(xs), ys) / 3
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    return Loop(step, rows(), [model], [optimizer])


def mixed_precision():
    model = perceptron()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.1)

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x).float(), y)
        loss.backward()
        optimizer.step()
        return loss

    return Loop(step, rows(), [model], [optimizer])


def checkpointed():
    blocks = nn.ModuleList([nn.Sequential(nn.Linear(4, 4), nn.GELU()) for _ in range(3)])
    head = nn.Linear(4, 3)
    optimizer = torch.optim.AdamW([*blocks.parameters(), *head.parameters()], lr=1e-2)

    def step(x, y):
        optimizer.zero_grad()
        for block in blocks:
            x = checkpoint(block, x, use_reentrant=False)
        loss = F.cross_entropy(head(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return Loop(step, rows(), [blocks, head], [optimizer])


def checkpointed_llama():
    loop = of_zoo(llama, _next_token)
    loop.modules[0].gradient_checkpointing_enable({"use_reentrant": False})
    return loop


def tied():
    table, mix = nn.Embedding(20, 6), nn.Linear(6, 6)
    head = nn.Linear(6, 20, bias=False)
    head.weight = table.weight
    model = nn.Sequential(table, mix, nn.Tanh(), head)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(tokens):
        optimizer.zero_grad()
        scores = model(tokens[:, :-1])
        loss = F.cross_entropy(scores.flatten(0, 1), tokens[:, 1:].flatten())
        loss.backward()
        optimizer.step()
        return loss

    return Loop(step, [(torch.randint(0, 20, (3, 7)),) for _ in range(STEPS)], [model], [optimizer])


class Adapted(nn.Module):
    def __init__(self, layer, rank):
        super().__init__()
        self.layer = layer.requires_grad_(False)
        self.down = nn.Parameter(torch.randn(rank, layer.in_features) / 4)
        self.up = nn.Parameter(torch.zeros(layer.out_features, rank))

    def forward(self, x):
        return self.layer(x) + F.linear(F.linear(x, self.down), self.up)


def low_rank():
    model = nn.Sequential(Adapted(nn.Linear(4, 8), 2), nn.ReLU(), Adapted(nn.Linear(8, 3), 2))
    trained = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=1e-2)

    def step(x, y):
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return Loop(step, rows(), [model], [optimizer])


def teacher():
    model = perceptron()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, nesterov=True, momentum=0.9)

    def step(x, y):
        with torch.no_grad():
            wanted = average(x).softmax(-1)
        optimizer.zero_grad()
        scores = model(x)
        loss = F.cross_entropy(scores, y) + F.kl_div(scores.log_softmax(-1), wanted)
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
                slow.mul_(0.9).add_(fast, alpha=0.1)
        return loss.detach()

    return Loop(step, rows(), [model, average], [optimizer])


def second_order(**options):
    model = nn.Linear(4, 1)
    options = {"lr": 0.5, "max_iter": 4, **options}
    optimizer = torch.optim.LBFGS(model.parameters(), **options)

    def step(x, y):
        def closure():
            optimizer.zero_grad()
            loss = F.mse_loss(model(x)[:, 0], y.float())
            loss.backward()
            return loss

        return optimizer.step(closure)

    return Loop(step, rows(), [model], [optimizer])


def meta_gradient():
    model, rate = nn.Linear(4, 3), nn.Parameter(torch.tensor(-2.0))
    holder = nn.ParameterList([rate])
    optimizer = torch.optim.SGD([rate], lr=0.1)

    def step(x, y):
        loss = F.cross_entropy(model(x[:3]), y[:3])
        weight, bias = torch.autograd.grad(loss, [model.weight, model.bias], create_graph=True)
        moved = F.linear(x[3:], model.weight - rate.exp() * weight, model.bias - rate.exp() * bias)
        outer = F.cross_entropy(moved, y[3:])
        optimizer.zero_grad()
        (rate.grad,) = torch.autograd.grad(outer, [rate])
        optimizer.step()
        with torch.no_grad():
            model.weight -= 0.1 * weight
            model.bias -= 0.1 * bias
        return outer.detach()

    return Loop(step, rows(), [model, holder], [optimizer])


#: Each with how many graphs a step is once the optimizer has its state.
LOOPS = {
    mlp: 1, convolutions: 1, step_of_bert: 1, step_of_gpt2: 1, step_of_llama: 1, step_of_t5: 1,
    step_of_vit: 1, gan: 1, gradient_penalty: 1, maml: 1, two_losses: 1, vae: 1, accumulation: 1,
    mixed_precision: 1, checkpointed: 1, checkpointed_llama: 1, tied: 1, low_rank: 1, teacher: 1,
    second_order: None, meta_gradient: 1,
}  # fmt: skip


def with_optimizer(name, **options):
    def make():
        biased = name != "Muon"  # it takes matrices only
        model = nn.Sequential(nn.Linear(4, 8, bias=biased), nn.Tanh(), nn.Linear(8, 3, bias=biased))
        copied = {k: v.clone() if isinstance(v, torch.Tensor) else v for k, v in options.items()}
        optimizer = getattr(torch.optim, name)(model.parameters(), **copied)

        def step(x, y):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
            return loss

        return Loop(step, rows(), [model], [optimizer])

    return make


#: With how many graphs ten steps take: the first makes the state, the second finds it. RAdam has
#: another formula from some step on.
OPTIMIZERS = [
    ("SGD", {}, 2), ("SGD", {"foreach": True, "momentum": 0.9, "nesterov": True}, 2),
    ("SGD", {"fused": True, "momentum": 0.9}, 2), ("Adam", {"amsgrad": True}, 2),
    ("SGD", {"lr": torch.tensor(0.01), "foreach": False}, 2),
    ("Adam", {"foreach": True}, 2), ("Adam", {"fused": True}, 2), ("AdamW", {"maximize": True}, 2),
    ("AdamW", {"lr": torch.tensor(0.01), "foreach": False}, 2), ("RMSprop", {"centered": True}, 2),
    ("Adagrad", {}, 2), ("Adadelta", {}, 2), ("Adamax", {}, 2), ("NAdam", {}, 2), ("Rprop", {}, 2),
    ("NAdam", {"foreach": True}, 2), ("Muon", {}, 2), ("RAdam", {}, 3),
    ("RAdam", {"foreach": True}, 3), ("ASGD", {}, 2), ("ASGD", {"foreach": True}, 2),
    ("Adafactor", {}, 2), ("Adafactor", {"foreach": True}, 2),
]  # fmt: skip
