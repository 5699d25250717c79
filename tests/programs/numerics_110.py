import torch
from dataclasses import dataclass
@dataclass
class Bid:
    price: torch.Tensor
    who: str
def auction(bids, reserve):
    live = [b for b in bids if b.price >= reserve]
    best = max(live, key=lambda b: b.price)
    second = max((b.price for b in live if b is not best), default=reserve)
    return best.who, second
def program(prices, reserve):
    bids = [Bid(p, f'b{i}') for i, p in enumerate(prices)]
    try: won = auction(bids, reserve)
    except ValueError as e:
        won = None
        print('no sale:', e, repr(e.__context__))
    return won, [b.price * 2 for b in bids]
CALLS = ["(torch.tensor([1.,3.,2.]), 1.5)", "(torch.tensor([1.,3.,2.]), 2.5)", "(torch.tensor([1.,3.,2.]), 9)", "([], 1)"]
