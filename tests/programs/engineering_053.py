import torch
class Tracker:
    live = []
    def __init__(self, name, log): self.name, self.log = name, log; log.append('+' + name)
    def __del__(self): self.log.append('-' + self.name)

def stage(x, name, log):
    t = Tracker(name, log)
    y = x * 2
    if y.sum() > 4:
        log.append('big')
        y = y - 1
    log.append('end ' + name)
    return y

def program(x, n):
    log = []
    t = Tracker('outer', log)
    for i in range(n):
        t = Tracker(f't{i}', log)
        x = stage(x, f's{i}', log)
        print(x.sum().item())
    del t
    log.append('deleted')
    tmp = [Tracker('list', log)]
    x = x + len(log)
    tmp.clear()
    log.append('cleared')
    try:
        u = Tracker('u', log)
        if x.min() > 3:
            raise ValueError(u.name)
    except ValueError as e:
        del u
        log.append(str(e))
    log.append('done')
    return x, list(log)

CALLS = ["(torch.ones(2), 2)", "(torch.zeros(3), 1)", "(torch.tensor([-9.]), 2)", "(torch.ones(1), 0)"]
