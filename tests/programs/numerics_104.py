import torch
from enum import Enum

class Light(Enum):
    RED, GREEN, AMBER = range(3)
    def next(self): return Light((self.value + 1) % 3)

class Crossing:
    def __init__(self, t): self.t, self.light, self.cars, self.log = t, Light.RED, torch.zeros(4, dtype=torch.int), []
    def tick(self, arrive):
        self.cars += arrive
        if self.light is Light.GREEN: self.cars[self.cars > 0] -= 1
        if self.cars.max() >= self.t or self.light is not Light.RED:
            self.light = self.light.next()
        self.log.append((self.light, int(self.cars.sum())))

def program(arrivals, t):
    c = Crossing(t)
    for a in arrivals: c.tick(a)
    busiest = max(c.log, key=lambda r: r[1])
    if busiest[1] > 5: print('jam', busiest[0])
    by = {l: [n for m, n in c.log if m is l] for l in Light}
    return c.cars, c.log, busiest, by, min(by, key=lambda l: len(by[l]))

CALLS = ["(torch.ones(4,4,dtype=torch.int), 2)", "(torch.ones(4,4,dtype=torch.int), 2)", "([torch.tensor([3,0,0,1])]*3, 9)", "([], 1)", "([torch.ones(4)], 1)"]
