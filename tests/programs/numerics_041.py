import torch
import random
import numpy as np

class Compose(list):
    def __call__(self, x):
        for t in self:
            x = t(x)
        return x

class RandomFlip:
    def __init__(self, p): self.p = p
    def __call__(self, img):
        return img.flip(-1) if random.random() < self.p else img

class RandomCrop:
    def __init__(self, size): self.size = size
    def __call__(self, img):
        h, w = img.shape[-2:]
        i = torch.randint(0, h - self.size + 1, (1,)).item()
        j = np.random.randint(0, w - self.size + 1)
        return img[..., i:i + self.size, j:j + self.size]

class Jitter:
    def __init__(self, s): self.s = s
    def __call__(self, img):
        b = np.random.uniform(1 - self.s, 1 + self.s)
        out = img * b
        out[out > 1] = 1
        return out

def program(img, size, n):
    random.seed(0); np.random.seed(1); torch.manual_seed(2)
    aug = Compose([RandomFlip(0.5), RandomCrop(size), Jitter(0.3)])
    outs = [aug(img) for _ in range(n)]
    means = np.array([o.mean().item() for o in outs])
    if n and means.max() > 0.5:
        print(f'bright {means.argmax()}')
        aug.pop()
        outs.append(aug(img))
    return outs, means, random.random(), np.random.rand(), torch.rand(1), img, len(aug)

CALLS = ["(torch.arange(16.).reshape(1,4,4)/16, 2, 3)", "(torch.arange(16.).reshape(1,4,4)/16, 2, 3)", "(torch.ones(3,3,5)*2, 3, 2)", "(torch.zeros(2,2), 4, 1)", "(torch.zeros(2,2), 1, 0)"]
