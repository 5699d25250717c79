import torch
from contextlib import ExitStack, contextmanager, suppress, redirect_stdout
import io

STACK = []

@contextmanager
def scope(name, **state):
    STACK.append((name, state))
    token = len(STACK)
    try:
        yield state
    except ValueError as e:
        state['error'] = str(e)
        if state.get('reraise'):
            raise RuntimeError(name) from e
    finally:
        assert token == len(STACK)
        STACK.pop()

def lookup(key, default=None):
    return next((s[key] for _, s in reversed(STACK) if key in s), default)

def op(x):
    if x.numel() == 0:
        raise ValueError('empty')
    y = x * lookup('scale', 1)
    with suppress(TypeError):
        y = y + lookup('shift')
    return y

def program(x, depth, reraise):
    STACK.clear()
    outs, states = [], []
    buf = io.StringIO()
    err = None
    try:
        with ExitStack() as es:
            for i in range(depth):
                states.append(es.enter_context(scope(f's{i}', scale=i + 1, reraise=reraise and i == 0)))
                if i == 1:
                    es.enter_context(torch.no_grad())
                    es.callback(outs.append, 'cb')
                with redirect_stdout(buf):
                    print(f'{i}:', lookup('scale'), torch.is_grad_enabled())
                w = torch.ones((), requires_grad=True)
                outs.append(op(x * w))
            with scope('inner', shift=10.):
                outs.append(op(x))
            es.pop_all().close() if depth > 2 else None
            outs.append(len(STACK))
    except RuntimeError as e:
        err = (str(e), type(e.__cause__).__name__, e.__cause__ is e.__context__)
    print(buf.getvalue().replace('\n', ';'))
    return outs, states, err, [o.requires_grad for o in outs if isinstance(o, torch.Tensor)], len(STACK), torch.is_grad_enabled()

CALLS = ["(torch.ones(2), 2, False)", "(torch.arange(3.), 3, True)", "(torch.ones(0), 2, True)", "(torch.ones(0), 2, False)", "(torch.ones(1), 0, False)", "(torch.ones(0), 0, True)"]
