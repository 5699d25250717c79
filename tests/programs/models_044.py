import torch
class Heat:
    def __init__(self, u, k=.2, bc='dirichlet'): self.u, self.k, self.bc, self.t = u.clone(), k, bc, 0
    def __next__(self):
        if self.t >= 20: raise StopIteration('limit')
        pad = {'dirichlet': 'constant', 'neumann': 'replicate', 'periodic': 'circular'}[self.bc]
        p = torch.nn.functional.pad(self.u[None, None], (1, 1, 1, 1), mode=pad)[0, 0]
        lap = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * self.u
        self.u += self.k * lap; self.t += 1
        return self.u
    def __iter__(self): return self
def until_steady(sim, tol):
    prev = None
    for u in sim:
        if prev is not None and (d := (u - prev).abs().max()) < tol: return sim.t, d
        prev = u.clone()
    return sim.t, None
def program(u, bc, tol):
    sim = Heat(u, bc=bc)
    try: t, d = until_steady(sim, tol)
    except KeyError as e: return e.args[0], sim.t
    except (RuntimeError, NotImplementedError) as e: return type(e) in (RuntimeError, NotImplementedError), sim.t
    print('t', t, None if d is None else f'{d:.1e}')
    rest = list(sim)
    try: next(sim)
    except StopIteration as e: v = e.value
    return t, d, sim.u, len(rest), all(r is sim.u for r in rest), v, u
CALLS = ["(torch.eye(4)*10, 'neumann', .2)", "(torch.eye(3), 'dirichlet', 1e-9)", "(torch.ones(2,3), 'periodic', .1)", "(torch.ones(2,3), 'robin', .1)", "(torch.ones(1,0), 'dirichlet', .1)"]
