import torch

def trainer(w, lr):
    """coroutine: send batches, receives losses; throw to change the rate"""
    loss, steps = None, 0
    try:
        while True:
            try:
                batch = yield loss
            except LookupError as e:
                lr = lr * e.args[0]
                print('lr', lr)
                loss = None
                continue
            if batch is None:
                return w.detach().clone(), steps
            w.grad = None
            loss = (batch @ w).pow(2).sum()
            loss.backward()
            with torch.no_grad():
                w -= lr * w.grad
            loss = loss.item()
            steps += 1
    finally:
        CLOSED.append(steps)

CLOSED = []

def batches(x, n):
    it = iter(x.split(n))
    while (b := next(it, None)) is not None:
        if (yield b) == 'skip':
            next(it, None)

def delegate(x, w, lr):
    res = yield from trainer(w, lr)
    return ('delegated', res)

def program(x, n, lr):
    CLOSED.clear()
    w = torch.ones(x.shape[1], requires_grad=True)
    t = delegate(x, w, lr)
    next(t)
    losses, g = [], batches(x, n)
    for b in g:
        l = t.send(b)
        losses.append(round(l, 4))
        if l > 50:
            t.throw(LookupError(0.1))
            try:
                nb = g.send('skip')
            except StopIteration:
                print('exhausted'); break
            losses.append(('after skip', tuple(nb.shape)))
    try:
        t.send(None)
    except StopIteration as s:
        result = s.value
    t2 = trainer(w, lr)
    t2.send(None); t2.close()
    try:
        t2.send(x)
    except StopIteration as s:
        losses.append(s.value)
    return losses, result, CLOSED, w.grad is None or w.grad, t.gi_frame is None

CALLS = ["(torch.ones(4,2), 2, .1)", "(torch.arange(12.).reshape(6,2), 2, .01)", "(torch.ones(0,2), 2, .1)", "(torch.ones(3,1)*9, 1, 0.1)", "(torch.ones(2,2), 0, .1)"]
