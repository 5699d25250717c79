import torch
class Stat(dict):
    __getattr__ = dict.__getitem__
    __setattr__ = dict.__setitem__
def speculative(target, draft, ctx, k, n, g):
    st = Stat(acc=0, rej=0, rounds=0)
    ctx = ctx[:]
    while len(ctx) < n:
        st.rounds += 1
        prop, qs = [], []
        for _ in range(k):
            q = draft[(ctx + prop)[-1]].softmax(0)
            prop.append(q.argmax().item()); qs.append(q)
        for t, q in zip(prop, qs):
            p = target[ctx[-1]].softmax(0)
            if torch.rand((), generator=g) < p[t] / q[t]:
                ctx.append(t); st.acc += 1
            else:
                r = (p - q).clamp(min=0)
                r = r / r.sum() if r.sum() > 0 else p
                ctx.append(r.argmax().item()); st.rej += 1
                break
        else:
            ctx += [target[ctx[-1]].argmax().item()]
            if st.rounds > 20: raise RuntimeError('too long')
    return ctx[:n], st
def program(target, draft, ctx, k, n):
    g = torch.Generator().manual_seed(11)
    try: out, st = speculative(target, draft, ctx, k, n, g)
    except (IndexError, RuntimeError) as e: return type(e).__name__
    try: st.nope
    except KeyError as e: miss = e.args
    st.rate = torch.tensor(st.acc) / max(1, st.acc + st.rej)
    if st.rate > .5: print('good draft', dict(st))
    return out, dict(st), miss, ctx, vars(st), g.initial_seed()
CALLS = ["(torch.arange(9.).reshape(3,3).sin(), torch.arange(9.).reshape(3,3).cos(), [0], 2, 7)", "(torch.eye(3), torch.eye(3), [1,2], 3, 9)", "(torch.eye(3), torch.eye(3), [1,2], 3, 1)", "(torch.eye(2), torch.zeros(2,2), [], 1, 2)", "(torch.eye(2), torch.zeros(2,2), [0], 0, 3)"]
