import torch

class Agent:
    kinds = []
    def __init_subclass__(cls): Agent.kinds.append(cls)
    def __init__(self, pos): self.pos = pos
    def move(self, others): raise NotImplementedError(type(self).__name__)

class Walker(Agent):
    def move(self, others): self.pos = self.pos + 1

class Chaser(Agent):
    def move(self, others):
        t = min((o for o in others if o is not self), key=lambda o: (o.pos - self.pos).norm().item())
        d = t.pos - self.pos
        n = d.norm()
        self.pos = self.pos + (d / n if n > 1 else d)
        if not n: others.remove(t)

class Lazy(Agent): pass

def program(specs, steps):
    names = {k.__name__: k for k in Agent.kinds}
    agents = [names[n](torch.tensor(p, dtype=torch.float)) for n, p in specs]
    frames, errors = [], set()
    for _ in range(steps):
        for a in list(agents):
            try:
                a.move(agents)
            except NotImplementedError as e:
                errors.add(str(e))
                agents.remove(a)
            except ValueError as e:
                errors.add('alone')
        frames.append(torch.stack([a.pos for a in agents]) if agents else None)
        if len(agents) < 2: print('few left'); break
    return frames, sorted(errors), [type(a).__name__ for a in agents]

CALLS = ["([('Walker',[0,0]),('Chaser',[2,2])], 3)", "([('Walker',[0,0]),('Chaser',[2,2])], 3)", "([('Lazy',[0]),('Chaser',[1]),('Chaser',[1])], 2)", "([('Chaser',[0])], 2)", "([('X',[0])], 2)", "([], 1)"]
