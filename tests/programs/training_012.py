import torch
import numpy as np

def iou(a, b):
    lt = torch.maximum(a[:, None, :2], b[None, :, :2])
    rb = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    wh = (rb - lt).clamp(min=0)
    inter = wh.prod(-1)
    area = lambda t: (t[:, 2] - t[:, 0]) * (t[:, 3] - t[:, 1])
    return inter / (area(a)[:, None] + area(b)[None] - inter + 1e-9)

def nms(boxes, scores, thr):
    order = scores.argsort(descending=True, stable=True)
    keep = []
    while order.numel():
        i = order[0]
        keep.append(int(i))
        if order.numel() == 1:
            break
        rest = order[1:]
        order = rest[iou(boxes[i][None], boxes[rest])[0] <= thr]
    return torch.tensor(keep, dtype=torch.long)

def program(boxes, scores, labels, thr):
    result = {}
    for c in sorted(set(labels)):
        m = torch.tensor([l == c for l in labels])
        idx = m.nonzero().squeeze(1)
        k = nms(boxes[idx], scores[idx], thr)
        result[c] = idx[k]
        print(c, len(idx), '->', len(k))
    M = iou(boxes, boxes)
    arr = M.numpy()
    return result, M.round(decimals=3), arr.shape, arr.dtype == np.float32, np.allclose(arr, arr.T), str(arr.dtype)

CALLS = ["(torch.tensor([[0,0,2,2],[0,0,2,2.1],[5,5,6,6]]), torch.tensor([.5,.9,.1]), ['a','a','b'], .5)",
 "(torch.tensor([[0,0,2,2],[0,0,2,2.1],[5,5,6,6]]), torch.tensor([.5,.9,.1]), ['a','b','b'], 2.)",
 "(torch.zeros(0,4), torch.zeros(0), [], .5)", "(torch.ones(2,4), torch.ones(2), ['x','x'], 0.)", "(torch.ones(2,4), torch.ones(2), ['x'], 0.)"]
