import torch
from dataclasses import dataclass

@dataclass
class Box:
    x1: float
    y1: float
    x2: float
    y2: float
    score: float = 1.0
    @classmethod
    def from_tensor(cls, t): return cls(*t.tolist())
    @property
    def area(self): return max(0., self.x2 - self.x1) * max(0., self.y2 - self.y1)
    def __and__(self, o): return Box(max(self.x1, o.x1), max(self.y1, o.y1), min(self.x2, o.x2), min(self.y2, o.y2))
    def iou(self, o):
        inter = (self & o).area
        return inter / (self.area + o.area - inter) if inter else 0.0
    def __lt__(self, o): return self.score < o.score

def nms(boxes, th):
    boxes = sorted(boxes, reverse=True)
    kept = []
    while boxes:
        best, *boxes = boxes
        kept.append(best)
        boxes = [b for b in boxes if b.iou(best) <= th]
    return kept

def paint(img, boxes):
    for i, b in enumerate(boxes, 1):
        img[int(b.y1):int(b.y2), int(b.x1):int(b.x2)] += i
    return img

def program(t, th=0.5, size=6):
    boxes = [Box.from_tensor(r) for r in t]
    kept = nms(boxes, th)
    img = paint(torch.zeros(size, size), kept)
    if img.max() > 1:
        print('overlap', int(img.max()))
    lt = torch.max(t[:, None, :2], t[None, :, :2])
    rb = torch.min(t[:, None, 2:4], t[None, :, 2:4])
    inter = (rb - lt).clamp(min=0).prod(-1)
    return kept, img, inter, any(k is b for b in boxes for k in kept), boxes == kept

CALLS = ["(torch.tensor([[0.,0,2,2,.9],[0,0,2,3,.8],[3,3,5,5,.7]]),)", "(torch.tensor([[0.,0,2,2,.9],[0,0,2,3,.8],[3,3,5,5,.7]]), .9)", "(torch.zeros(1,5),)", "(torch.zeros(0,5),)", "(torch.ones(2,6),)"]
