import torch
from itertools import count, takewhile, islice

def env_stream(seed):
    g = torch.Generator().manual_seed(seed)
    x = torch.zeros(2)
    action = yield x
    for t in count(1):
        x = x + action + torch.randn(2, generator=g)
        try:
            action = yield x, t
        except KeyError as e:
            x = torch.zeros(2)
            action = yield ('reset', e.args[0])
        finally:
            if t > 50:
                break

def program(seed, bound, steps):
    env = env_stream(seed)
    obs = next(env)
    log, resets = [], 0
    for i in range(steps):
        reply = env.send(-0.5 * obs)
        match reply:
            case (torch.Tensor() as x, int(t)) if x.norm() > bound:
                msg = env.throw(KeyError(t))
                resets += 1
                log.append(msg)
                obs = torch.zeros(2)
            case (torch.Tensor() as obs, t):
                log.append((t, obs.sum().item()))
            case other:
                log.append(other)
    env.close()
    try:
        env.send(obs)
    except StopIteration as e:
        closed = e.value
    print(resets, 'resets')
    return log, obs, resets, closed, env.gi_frame is None

CALLS = ["(0, 1.0, 5)", "(0, 1.0, 5)", "(1, 100.0, 3)", "(2, 0.0, 4)", "(2, 0.0, 0)"]
