import torch
import re

TOKEN = re.compile(r'(\{\{.*?\}\}|\{%.*?%\})', re.S)

class Ctx(dict):
    def __missing__(self, k):
        if '.' in k:
            head, _, tail = k.partition('.')
            v = self[head]
            return getattr(v, tail) if not isinstance(v, dict) else v[tail]
        raise LookupError(k)

class Template:
    filters = {'upper': str.upper, 'sum': lambda t: round(t.sum().item(), 3), 'len': len, 'list': lambda t: t.tolist()}

    def __init__(self, src):
        self.nodes = iter([p for p in TOKEN.split(src) if p])

    @classmethod
    def filter(cls, name):
        def deco(f):
            cls.filters = {**cls.filters, name: f}
            return f
        return deco

    def parse(self, *until):
        out = []
        for p in self.nodes:
            if p.startswith('{{'):
                name, *fs = (s.strip() for s in p[2:-2].split('|'))
                out.append(('var', name, fs))
            elif p.startswith('{%'):
                kw, *args = p[2:-2].split()
                if kw in until:
                    return out
                if kw == 'for':
                    var, _, seq = args
                    out.append(('for', var, seq, self.parse('endfor')))
                elif kw == 'if':
                    out.append(('if', args[0], self.parse('endif')))
                else:
                    raise SyntaxError(f'unknown tag {kw}')
            else:
                out.append(p)
        if until:
            raise SyntaxError(f'expected {until[0]}')
        return out

    def render(self, nodes, ctx):
        for n in nodes:
            match n:
                case str(s): yield s
                case 'var', name, fs:
                    v = ctx[name]
                    for f in fs: v = self.filters[f](v)
                    yield str(v)
                case 'for', var, seq, body:
                    for i, item in enumerate(ctx[seq]):
                        yield from self.render(body, Ctx(ctx, **{var: item, 'loop': {'index': i}}))
                case 'if', cond, body:
                    if ctx[cond]: yield from self.render(body, ctx)

@Template.filter('double')
def double(t): return t * 2

def program(src, ctx):
    t = Template(src)
    try:
        s = ''.join(t.render(t.parse(), Ctx(ctx)))
    except (SyntaxError, LookupError, AttributeError) as e:
        s = f'{type(e).__name__}: {e}'
        print(s)
    n = torch.tensor([ord(c) for c in s], dtype=torch.float) if s else torch.zeros(1)
    return s, n.mean(), (n > 64).sum()

CALLS = ["('Hi {{ name|upper }}: {% for x in xs %}{{loop.index}}={{x|double|sum}};{% endfor %}', {'name': 'bob', 'xs': [torch.ones(2), torch.arange(3.)]})",
 "('{% if t %}{{ t.shape }}{% endif %}', {'t': torch.ones(1)})", "('{% for a in b %}', {'b': []})", "('{{ nope }}', {})", "('', {})", "('{% if t %}x{% endif %}', {'t': torch.ones(2)})"]
