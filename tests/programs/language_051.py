import torch
import builtins

class Sandbox:
    """runs user formulas with exec in a private namespace"""
    allowed = {'abs', 'min', 'max', 'len', 'range', 'sum', 'print', 'sorted', '__build_class__'}
    def __init__(self, **env):
        self.ns = {'__builtins__': {k: getattr(builtins, k) for k in self.allowed}, '__name__': 'sandbox', **env}
        self.base = set(self.ns)
    def run(self, src):
        try:
            code = compile(src, '<user>', 'eval')
        except SyntaxError:
            code = compile(src, '<user>', 'exec')
        return eval(code, self.ns)
    @property
    def defined(self): return {k: v for k, v in self.ns.items() if k not in self.base}

def program(x, srcs):
    sb = Sandbox(x=x, t=torch)
    res = []
    for s in srcs:
        try:
            res.append(sb.run(s))
        except (NameError, TypeError, ImportError) as e:
            res.append(f'{type(e).__name__}: {e}')
        except SyntaxError as e:
            res.append((e.msg, e.lineno, e.text))
    d = sb.defined
    y = d['y'] if 'y' in d else x
    f = d.get('f', lambda v: v)
    y = f(y) * 2
    return res, sorted(d), y, f.__module__ if hasattr(f, '__module__') else None, y is x, f.__globals__ is sb.ns

CALLS = ["(torch.arange(3.), ['x + 1', 'y = t.sin(x)', 'max(x)', 'def f(v): return v - x'])", "(torch.ones(2), ['open(1)', 'import os', 'a = [i for i in range(3)]; print(a)'])",
 "(torch.ones(2), ['1 +', 'class C:\\n  z = 3', 'C.z + x'])", "(torch.zeros(0), [])", "(torch.ones(2), ['f = lambda v: v.sum()', 'y = f(x) + q'])"]
