import torch
from string import Template, Formatter
import textwrap

class TensorFormatter(Formatter):
    def __init__(self):
        self.used = []
    def get_value(self, key, args, kwargs):
        self.used.append(key)
        if isinstance(key, str) and key not in kwargs:
            return f'<{key}?>'
        return super().get_value(key, args, kwargs)
    def format_field(self, value, spec):
        if isinstance(value, torch.Tensor):
            if spec.startswith('shape'):
                return 'x'.join(map(str, value.shape)) or 'scalar'
            if spec == 'mean':
                return f'{value.float().mean().item():.3f}'
            return ', '.join(format(v, spec) for v in value.flatten().tolist())
        return super().format_field(value, spec)
    def convert_field(self, value, conv):
        if conv == 'u':
            return str(value).upper()
        return super().convert_field(value, conv)

class T(Template):
    delimiter = '%'
    idpattern = r'[a-z]+\.?[a-z]*'

def program(fmt, x, width, **_):
    f = TensorFormatter()
    y = x * 2 if x.numel() else x
    try:
        s = f.vformat(fmt, (x, y), {'x': x, 'w': width, 'name': 'Tensor'})
    except (ValueError, IndexError, KeyError) as e:
        s = f'{type(e).__name__}({e})'
        print('failed', s)
    z = y.sum() + len(s)
    lines = textwrap.wrap(s, width) if width > 0 else [s]
    t = T('%name has %{a.b} %% %z').safe_substitute({'name': s[:5], 'a.b': z.item()})
    block = textwrap.dedent('''
        first
          second {w:>{w2}}
        ''').strip().format(w=width, w2=abs(width) + 2)
    return s, lines, t, textwrap.indent(block, '> ', lambda l: 'sec' in l), z, f.used, f"{x.shape!s:>20}|{width:+05d}|{'é':^5}|{0.1 + 0.2:.2e}|{1234567:,}"

CALLS = ["('{0:.1f} and {x:shape} {name!u} {missing}', torch.arange(3.), 10)", "('{1:mean} {} ', torch.ones(2), 4)", "('{x:mean}-{1:mean}', torch.arange(4), 6)",
 "('{w:>5}{5}', torch.ones(1), 3)", "('', torch.zeros(0), 0)", "('{x:shape}' * 5, torch.tensor(3.), 7)"]
