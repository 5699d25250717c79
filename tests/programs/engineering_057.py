import torch
import asyncio

async def fetch(i, x, log):
    log.append(('start', i))
    await asyncio.sleep(0)
    y = x * i
    if y.sum() > 5:
        await asyncio.sleep(0)
        log.append(('slow', i))
        y = y / y.sum()
    log.append(('end', i))
    return y

class Gate:
    def __init__(self): self.n = 0
    async def __aenter__(self): self.n += 1; return self
    async def __aexit__(self, *exc): self.n -= 1; return exc[0] is KeyError

async def stream(xs):
    for x in xs:
        await asyncio.sleep(0)
        yield x.sum()

async def main(x, n, log):
    gate = Gate()
    async with gate:
        res = await asyncio.gather(*(fetch(i, x, log) for i in range(n)), return_exceptions=True)
        tot = [s.item() async for s in stream(res) if s > 0]
        if len(tot) > 1: raise KeyError('many')
        log.append('not many')
    return res, tot, gate.n

def program(x, n):
    log = []
    out = asyncio.run(main(x, n, log))
    y = torch.stack(out[0]).mean(0) if n else x
    print(log[-1:])
    return out, y, log

CALLS = ["(torch.ones(3), 3)", "(torch.zeros(2), 2)", "(torch.ones(1), 0)", "(-torch.ones(2), 4)"]
