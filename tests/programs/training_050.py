import torch
import math, re

FORMATS = {}

def program(x, spec):
    lines = []
    lines.append(f'{x.mean().item():8.3f}|{x.shape}|{x.dtype!s:>15}|{x.numel():>5,d}')
    lines.append('%s %r %.2f' % (tuple(x.shape), x.dtype, float(x.sum())))
    if x.numel() == 1:
        lines.append(f'{x.squeeze():{spec}}')
        lines.append('{:.1e} {!r}'.format(x.item(), int(x)))
    else:
        try:
            lines.append(f'{x:{spec}}')
        except TypeError as e:
            lines.append('TypeError ' + str(e)[:40])
    lines.append(str(x)); lines.append(repr(x.requires_grad_(x.is_floating_point()) if x.is_leaf else x))
    y = x * 2
    print(y, y.sum())
    lines.append(repr(y)); lines.append(str(y.detach().tolist()))
    nums = [float(m) for m in re.findall(r'-?\d+\.\d*', str(y.detach()))]
    lines.append(nums)
    torch.set_printoptions(precision=1, sci_mode=False)
    try:
        lines.append(f'{y.detach()}')
    finally:
        torch.set_printoptions(profile='default')
    n = x.numel()
    t = {n: 'int', True: 'bool', y.shape: 'size', y.dtype: 'dtype'}
    lines.append(t[torch.Size(list(x.shape))] + t[x.dtype] + t.get(1, '?'))
    try:
        if x: lines.append('truthy')
        else: lines.append('falsy')
    except RuntimeError as e:
        lines.append(re.sub(r'\s+', ' ', str(e)))
    try:
        lines.append([10, 20, 30][x.long().sum()])
        lines.append('ab' * x.detach().long().max())
        lines.append(list(range(x.detach().long().max())))
    except (TypeError, IndexError, RuntimeError) as e:
        lines.append(type(e).__name__)
    lines.append((math.floor(x.detach().sum()), round(x.detach().float().sum().item(), 1), math.sqrt(abs(x.detach().sum())), divmod(n, 3)))
    return lines

CALLS = ["(torch.tensor(2.5), '.2f')", "(torch.arange(3.), '')", "(torch.arange(2), '>20')", "(torch.tensor([True]), '')", "(torch.ones(0), '.1f')", "(torch.tensor([[1e-9, 1e9]]), '')", "(torch.tensor(1+2j), '')", "(torch.tensor(3), 'd')", "(torch.tensor(float('nan')), '')"]
