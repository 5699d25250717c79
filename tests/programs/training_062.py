import torch
import torch.nn.functional as F

state = {'step': 0}
counter = 0
best = None

def bump(by=1):
    global counter
    counter += by
    state['step'] = state.get('step', 0) + by
    return counter

def remember(x):
    global best
    if best is None or x.sum() > best.sum():
        best, old = x, best
        return old
    return best

class Config:
    lr = 0.1
    decay = None
    layers = []
    def __class_getitem__(cls, k): return getattr(cls, k)

def train(x, y, cfg):
    w = torch.zeros(x.shape[1], 1)
    for i in range(3):
        if cfg.decay: cfg.lr *= cfg.decay
        g = x.T @ (torch.sigmoid(x @ w) - y)
        w = w - cfg.lr * g
        bump()
        cfg.layers.append(i)
        if 'dynamic' in globals() and dynamic(w):
            print('dynamic stop'); break
    return w

def program(x, y, decay, dyn):
    global dynamic, best
    if dyn == 'clear':
        best = None
        state.clear()
    elif dyn is not None:
        dynamic = lambda w: w.abs().max() > dyn
    Config.lr, Config.decay = 0.1, decay
    Config.layers = Config.layers[-2:]
    Sub = type('Sub', (Config,), {'lr': 1.0} if decay == 1 else {})
    w = train(x, y, Sub)
    old = remember(w)
    if dyn is not None and dyn != 'clear':
        del dynamic
    try:
        dynamic(w)
    except NameError as e:
        err = str(e)
    return w, old, best is w, counter, dict(state), Config.lr, Sub.lr, 'lr' in vars(Sub), Config['layers'], Sub.layers is Config.layers, err

CALLS = ["(torch.ones(2,3), torch.ones(2,1), .5, None)", "(torch.arange(4.).reshape(2,2), torch.zeros(2,1), 1, .2)", "(torch.ones(2,3), torch.ones(2,1), None, 'clear')", "(torch.ones(2,3), torch.ones(2,1), None, 1e9)", "(torch.ones(0,2), torch.ones(0,1), 0.1, None)", "(torch.ones(2,3)*2, torch.ones(2,1), .5, 0.)"]
