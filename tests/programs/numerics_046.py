import torch

class Augment:
    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)
    def __enter__(self):
        self._state = torch.get_rng_state()
        torch.manual_seed(self.g.initial_seed())
        return self
    def __exit__(self, t, v, tb):
        torch.set_rng_state(self._state)
        return t is ValueError
    def cutout(self, img, k):
        c, h, w = img.shape
        if k > min(h, w): raise ValueError(k)
        y, x = (torch.randint(h - k + 1, ()).item(), torch.randint(w - k + 1, ()).item())
        img[:, y:y+k, x:x+k] = 0
        return y, x
    def mixup(self, a, b):
        lam = torch.distributions.Beta(0.4, 0.4).sample()
        return lam * a + (1 - lam) * b, lam.item()
    def noise(self, img):
        img += torch.randn(img.shape, generator=self.g) * 0.1

def program(imgs, k, seed=0):
    torch.manual_seed(100)
    first = torch.rand(2)
    holes, lams = [], []
    with Augment(seed) as aug:
        for img in imgs:
            holes.append(aug.cutout(img, k))
            aug.noise(img)
            m, lam = aug.mixup(img, imgs[0])
            lams.append(lam)
            if lam > 0.5:
                print('mostly first')
        perm = torch.randperm(len(imgs))
        imgs = imgs[perm]
    return first, holes, lams, imgs, torch.rand(2), torch.bernoulli(torch.full((3,), 0.5))

CALLS = ["(torch.ones(2,1,3,3), 2)", "(torch.ones(2,1,3,3), 2)", "(torch.ones(3,2,4,2), 1, 5)", "(torch.ones(2,1,2,2), 3)", "(torch.ones(0,1,2,2), 1)"]
