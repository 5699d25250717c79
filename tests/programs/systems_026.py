import torch
from urllib.parse import urlsplit, parse_qsl, unquote_plus, urlencode
from collections import ChainMap

class INI:
    def __init__(self, text, defaults=()):
        self.sections = {'DEFAULT': dict(defaults)}
        cur, self.errors = self.sections['DEFAULT'], []
        for no, line in enumerate(text.splitlines(), 1):
            line = line.split('#', 1)[0].rstrip()
            if not line: continue
            if line[0] == '[' and line[-1] == ']': cur = self.sections.setdefault(line[1:-1].strip(), {})
            elif line[0].isspace() and cur: k = next(reversed(cur)); cur[k] += '\n' + line.strip()
            elif '=' in line: k, v = map(str.strip, line.split('=', 1)); cur[k] = v
            else: self.errors.append((no, line))
    def __getitem__(self, s):
        m = ChainMap({}, self.sections[s], self.sections['DEFAULT'])
        return m
    def get(self, s, k, conv=str, _depth=0):
        if _depth > 3: raise RecursionError(k)
        v = self[s][k]
        while '${' in v:
            a, _, rest = v.partition('${'); name, _, b = rest.partition('}')
            v = a + self.get(s, name, _depth=_depth + 1) + b
        return conv(v)

def route(url):
    u = urlsplit(url)
    q = {}
    for k, v in parse_qsl(u.query, keep_blank_values=True):
        if k.endswith('[]'): q.setdefault(k[:-2], []).append(v)
        else: q[k] = v
    return u.netloc, [unquote_plus(p) for p in u.path.split('/') if p], q, u.fragment

def program(text, url, x):
    ini = INI(text, {'scale': '2'})
    host, path, q, frag = route(url)
    out = []
    for s in path or ['DEFAULT']:
        try:
            k = ini.get(s, 'scale', float)
            x = x * k
            out.append((s, k, x.sum()))
        except KeyError as e: out.append(f'{s}: no {e}')
        except RecursionError as e: out.append(f'{s}: loop {e}')
        except ValueError as e: out.append(str(e)); print('bad', e)
    dims = [int(d) for d in q.get('d', []) if d.lstrip('-').isdigit()]
    try: x = x.reshape(dims) if dims else x
    except RuntimeError as e: out.append(str(e).split('\n')[0])
    m = ini[path[0]] if path and path[0] in ini.sections else ini['DEFAULT']
    m['new'] = len(m)
    return out, x, q, frag, dict(m), len(m.maps), ini.sections, ini.errors, urlencode(sorted((k, str(v)) for k, v in q.items())), host

CALLS = ["('[a]\\nscale=3\\n[b]\\nx = 1\\n scale\\n[c]\\nscale=${scale}', 'http://h:80/a/b/c/d?d[]=2&d[]=-1&z=#f', torch.ones(4))", "('', '/', torch.zeros(2))", "('junk\\nscale=x # c', 'q?d[]=3', torch.ones(2))", "('[a b]\\nk=1\\nscale=1${k}', '//h/a+b/%61?d[]=5&x=1&x=2', torch.arange(3.))"]
