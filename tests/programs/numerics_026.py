import torch

def gae(rewards, values, dones, gamma=0.99, lam=0.95):
    adv = torch.zeros_like(rewards)
    last = 0.0
    next_value = values[-1]
    for t in range(len(rewards) - 1, -1, -1):
        mask = 1.0 - dones[t].float()
        delta = rewards[t] + gamma * next_value * mask - values[t]
        adv[t] = last = delta + gamma * lam * mask * last
        next_value = values[t]
    return adv

def episodes(dones):
    start = 0
    for i, d in enumerate(dones.tolist()):
        if d:
            yield slice(start, i + 1)
            start = i + 1
    if start < len(dones):
        yield slice(start, None)

def program(rewards, values, dones, clip=0.2):
    adv = gae(rewards, values, dones)
    ret = adv + values[:-1]
    parts = {(s.start, s.stop): adv[s].sum().item() for s in episodes(dones)}
    lengths = [len(adv[s]) for s in episodes(dones)]
    if adv.std() > 1:
        adv -= adv.mean()
        adv /= adv.std()
        print('normalised')
    ratio = (0.1 * rewards).exp().requires_grad_()
    loss = -torch.min(ratio * adv, ratio.clamp(1 - clip, 1 + clip) * adv).mean()
    loss.backward()
    clipped = ((ratio - 1).abs() > clip).float().mean().item()
    return adv, ret, parts, lengths, loss, ratio.grad, clipped

CALLS = ["(torch.arange(4.), torch.ones(5), torch.tensor([0,1,0,0]))", "(torch.arange(4.), torch.ones(5), torch.tensor([0,1,0,0]))",
 "(torch.arange(4.)*5, torch.zeros(5), torch.tensor([True,False,False,True]))", "(torch.ones(1), torch.ones(2), torch.tensor([1]))", "(torch.ones(0), torch.ones(1), torch.tensor([]))"]
