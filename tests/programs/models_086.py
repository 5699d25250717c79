import torch, torch.nn as nn
class Ctc:
    def __init__(self, blank=0): self.blank = blank
    def collapse(self, path):
        out, prev = [], None
        for p in path:
            if p != prev and p != self.blank: out.append(p)
            prev = p
        return out
    def prefix_beam(self, probs, width):
        beams = {(): (1., 0.)}
        for row in probs.tolist():
            nxt = {}
            for pre, (pb, pn) in beams.items():
                for s, p in enumerate(row):
                    if p < 1e-4: continue
                    if s == self.blank: b, n = nxt.get(pre, (0., 0.)); nxt[pre] = b + p * (pb + pn), n; continue
                    b, n = nxt.get(pre + (s,), (0., 0.))
                    nxt[pre + (s,)] = b, n + p * (pb if pre and pre[-1] == s else pb + pn)
                    if pre and pre[-1] == s: b, n = nxt.get(pre, (0., 0.)); nxt[pre] = b, n + p * pn
            beams = dict(sorted(nxt.items(), key=lambda kv: (-sum(kv[1]), kv[0]))[:width])
        return beams
def program(logits, target, width, alphabet):
    ctc = Ctc(); pr = logits.softmax(-1)
    greedy = ctc.collapse(pr.argmax(-1).tolist()); beams = ctc.prefix_beam(pr, width)
    try: loss = nn.functional.ctc_loss(logits.log_softmax(-1)[:, None], torch.tensor([target]), [len(logits)], [len(target)])
    except (RuntimeError, ValueError) as e: loss = type(e).__name__; print('no loss')
    to_s = lambda ids: ''.join(alphabet[i - 1] for i in ids)
    try: texts = {to_s(k): round(sum(v), 5) for k, v in beams.items()}
    except IndexError as e: texts = e.args
    best = next(iter(beams), None)
    if isinstance(loss, torch.Tensor) and loss.isinf(): print('inf')
    return greedy, texts, loss, best == tuple(greedy), len(beams), pr.max(-1)
CALLS = ["(torch.arange(15.).reshape(5,3).sin()*2, [1,2], 3, 'ab')", "(torch.zeros(2,3), [1,1,1], 2, 'ab')", "(torch.zeros(0,3), [1], 2, 'ab')", "(torch.eye(4)*9, [3], 5, 'a')", "(torch.eye(3), [], 0, 'ab')"]
