import torch

def bucketed(items, bounds, batch):
    """generator: yields full batches; send(n) changes the batch size; throw(Flush) flushes"""
    class_of = lambda n: next((i for i, b in enumerate(bounds) if n <= b), len(bounds))
    buckets = [[] for _ in range(len(bounds) + 1)]
    seen = 0
    try:
        for it in items:
            b = buckets[class_of(len(it))]
            b.append(it)
            seen += 1
            if len(b) >= batch:
                out, b[:] = b[:], []
                try:
                    new = yield out
                except Flush as e:
                    e.args += ('caught',)
                    for rest in buckets:
                        if rest:
                            yield list(rest)
                            rest.clear()
                    continue
                if new is not None:
                    batch = new
        yield from (b for b in buckets if b)
    except GeneratorExit:
        STATE['closed'] = seen
        raise
    finally:
        STATE['seen'] = seen
    return sum(map(len, buckets))

class Flush(Exception): pass
STATE = {}

def pad(seqs, value=0.0):
    n = max(len(s) for s in seqs)
    out = torch.full((len(seqs), n), value)
    for i, s in enumerate(seqs):
        out[i, :len(s)] = s
    return out

def program(lengths, batch, plan):
    STATE.clear()
    items = [torch.arange(float(n)) + i for i, n in enumerate(lengths)]
    g = bucketed(items, (2, 4), batch)
    outs, log = [], []
    try:
        b = next(g)
        for p in plan:
            outs.append(pad(b, -1.0).sum(1))
            if p == 'flush':
                b = g.throw(Flush('now'))
            elif p == 'close':
                g.close()
                log.append(g.gi_frame is None)
                break
            else:
                b = g.send(p)
            print('batch', len(b))
        else:
            log.append('plan done')
            outs += [pad(b) for b in g]
    except StopIteration as e:
        log.append(('stop', e.value))
    return outs, log, dict(STATE)

CALLS = ["([1, 2, 3, 4, 5, 1, 2], 2, [None, 1])", "([1, 1, 3, 1, 1], 2, ['flush', None])", "([1, 1, 1], 1, [None, 'close'])", "([], 2, [])", "([5, 5], 3, [None, None])", "([1, 5, 1, 5], 2, [3, 'close'])"]
