import torch
from dataclasses import dataclass, field

@dataclass
class Particles:
    pos: torch.Tensor
    vel: torch.Tensor
    mass: torch.Tensor = None
    dead: set = field(default_factory=set)
    def __post_init__(self):
        if self.mass is None: self.mass = torch.ones(len(self.pos))
    @property
    def energy(self): return 0.5 * (self.mass * self.vel.square().sum(-1)).sum()
    def __len__(self): return len(self.pos) - len(self.dead)

def forces(p, g=1.0, eps=0.1):
    d = p.pos[None] - p.pos[:, None]
    r2 = d.square().sum(-1) + eps
    f = g * p.mass[None, :, None] * d / r2[..., None] ** 1.5
    return f.sum(1)

def collide(p, box):
    hit = (p.pos.abs() > box)
    p.vel[hit] *= -1
    p.pos.clamp_(-box, box)
    return hit.any(1).nonzero().flatten().tolist()

def program(pos, vel, steps, box=2.0, dt=0.1):
    p = Particles(pos.clone(), vel.clone())
    log, e0 = [], p.energy.item()
    for t in range(steps):
        a = forces(p)
        p.vel += dt * a
        p.pos += dt * p.vel
        for i in collide(p, box):
            log.append((t, i))
            if i not in p.dead and p.vel[i].norm() > 3:
                p.dead.add(i)
                p.mass[i] = 0.
                print('particle', i, 'died')
    return p, log, p.energy, p.energy.item() > e0, len(p)

CALLS = ["(torch.tensor([[0.,0],[1,0]]), torch.zeros(2,2), 4)", "(torch.tensor([[0.,0],[1,0]]), torch.zeros(2,2), 4)", "(torch.tensor([[0.,1.9],[1,0],[1,1]]), torch.ones(3,2)*5, 3)", "(torch.zeros(0,2), torch.zeros(0,2), 2)", "(torch.tensor([[0,0]]), torch.tensor([[1,1]]), 1)"]
