import torch
from operator import attrgetter, itemgetter
from typing import NamedTuple

class Box(NamedTuple):
    x1: float
    y1: float
    x2: float
    y2: float
    score: float = 1.0
    label: str = '?'

    @classmethod
    def parse(cls, s):
        *nums, label = s.split(',')
        return cls(*map(float, nums), label=label) if not label.replace('.', '').isdigit() else cls(*map(float, nums + [label]))
    @property
    def area(self): return max(0, self.x2 - self.x1) * max(0, self.y2 - self.y1)
    def __and__(self, o):
        return Box(max(self.x1, o.x1), max(self.y1, o.y1), min(self.x2, o.x2), min(self.y2, o.y2))
    def __contains__(self, p):
        if isinstance(p, tuple):
            x, y = p[:2]
            return self.x1 <= x < self.x2 and self.y1 <= y < self.y2
        return tuple.__contains__(self, p)
    def iou(self, o):
        i = (self & o).area
        return i / (self.area + o.area - i or 1)

def nms(boxes, thr):
    keep, rest = [], sorted(boxes, key=attrgetter('score'), reverse=True)
    while rest:
        b, *rest = rest
        keep.append(b)
        rest = [o for o in rest if o.label != b.label or b.iou(o) <= thr]
    return keep

def program(specs, thr, offset):
    try:
        boxes = [Box.parse(s) for s in specs]
    except (TypeError, ValueError) as e:
        print('bad spec:', e)
        return str(e), offset * 2
    keep = nms(boxes, thr)
    t = torch.tensor([b[:4] for b in keep]).reshape(-1, 4) + offset
    w, h = (t[:, 2:] - t[:, :2]).unbind(-1)
    by_label = {}
    for b in keep: by_label[b.label] = by_label.get(b.label, ()) + (b._asdict()['score'],)
    first = keep[0] if keep else None
    return t, w * h, by_label, first, first and (1, 1) in first, first and '?' in first, Box._field_defaults, [b._replace(label='z') == b for b in keep], Box.__and__(*boxes[:2]) if len(boxes) > 1 else None, isinstance(first, tuple)

CALLS = ["(['0,0,2,2,0.9,cat', '0,0,2,1.9,0.8,cat', '1,1,3,3,0.5,dog'], 0.5, 0)", "(['0,0,4,4'], 0.1, torch.ones(4))", "([], 0.5, 1)", "(['1,2,x'], 0, torch.ones(1))", "(['0,0,1,1,0.5', '5,5,6,6,0.7'], 0.3, 0.5)"]
