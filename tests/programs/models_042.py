import torch, math
from contextlib import ExitStack, contextmanager, suppress
@contextmanager
def seeded(seed, log):
    state = torch.get_rng_state()
    torch.manual_seed(seed); log.append(('in', seed))
    try: yield log
    finally: torch.set_rng_state(state); log.append(('out', seed))
def pi_estimate(n):
    p = torch.rand(n, 2)
    return 4 * (p.square().sum(1) <= 1).float().mean()
def call_price(s, k, vol, n, anti):
    z = torch.randn(n)
    if anti: z = torch.cat([z, -z])
    st = s * torch.exp(-.5 * vol ** 2 + vol * z)
    pay = (st - k).clamp(min=0)
    return pay.mean(), pay.std() / math.sqrt(len(z))
def program(seeds, n, anti):
    log, res = [], []
    torch.manual_seed(100)
    a = torch.rand(2)
    with ExitStack() as st:
        for s in seeds: st.enter_context(seeded(s, log)); res.append(pi_estimate(n))
        st.callback(log.append, 'callback')
        with suppress(ZeroDivisionError):
            m, se = call_price(1., 1., .2, n, anti)
            res.append((m, se)); 1 // (n - 1)
            print('depth', len(log))
            keep = st.pop_all() if len(seeds) > 1 else None
    b = torch.rand(2)
    if keep: keep.close()
    c = torch.rand(2)
    return a, res, b, c, log, keep is st
CALLS = ["([1,2], 50, True)", "([], 10, False)", "([5], 1, False)", "([5], 4, True)", "([3,3,3], 20, False)"]
