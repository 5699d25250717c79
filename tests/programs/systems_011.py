import torch, io, string
from contextlib import contextmanager, ExitStack, suppress

class Log:
    LEVELS = dict(zip(('debug', 'info', 'warn', 'error'), range(10, 50, 10)))
    def __init__(self, level='info', sink=None, **ctx):
        self.level, self.records, self.ctx, self.depth = self.LEVELS[level], [] if sink is None else sink, ctx, 0
    def __getattr__(self, name):
        try: lv = self.LEVELS[name]
        except KeyError: raise AttributeError(f'Log has no {name!r}') from None
        def emit(msg, *args, **kw):
            if lv < self.level: return None
            text = msg % args if args else string.Template(msg).safe_substitute({**self.ctx, **kw})
            self.records.append('  ' * self.depth + f'{name.upper():<5} {text}')
            return text
        setattr(self, name, emit)
        return emit
    def bind(self, **kw): return Log('debug', self.records, **{**self.ctx, **kw})
    @contextmanager
    def section(self, title):
        self.warn('> ' + title); self.depth += 1
        try:
            yield self
        except ArithmeticError as e:
            self.error('%s: %s', type(e).__name__, e)
        finally:
            self.depth -= 1
            self.warn('< ' + title)

def normalize(x, log):
    with log.section('norm') as l, suppress(KeyError):
        s = x.sum()
        l.info('sum=%.2f n=%d', s, x.numel())
        if s == 0: raise ZeroDivisionError('sum is 0')
        if s < 0: {}['neg']
        return x / s
    return x

def program(xs, level):
    log = Log(level, user='eve')
    sub = log.bind(req=len(xs))
    outs = []
    with ExitStack() as st:
        for i, x in enumerate(xs):
            st.callback(lambda i=i: log.info(f'done {i}'))
            outs.append(normalize(x, log))
            sub.debug('$user did $req of $what $$5', what=i)
        st.push(lambda t, e, tb: log.error('exit %r', t) or True)
    try: log.fatal('x')
    except AttributeError as e: print(e, e.__cause__, e.__suppress_context__)
    buf = io.StringIO(); print(*log.records, sep='\n', file=buf)
    return outs, [o is x for o, x in zip(outs, xs)], buf.getvalue(), sorted(k for k in log.__dict__), sub.records is log.records

CALLS = ["([torch.ones(3), torch.zeros(2), -torch.ones(1)], 'info')", "([], 'error')", "([torch.arange(4.)], 'debug')", "([torch.zeros(0)], 'warn')", "([torch.ones(1)], 'loud')"]
