import torch, re
from html import escape

class MD:
    INLINE = [(re.compile(r'\*\*(.+?)\*\*'), r'<b>\1</b>'), (re.compile(r'`([^`]*)`'), lambda m: f'<code>{m[1].strip()}</code>'),
              (re.compile(r'\[(?P<t>[^\]]*)\]\((?P<u>\S+?)\)'), r'<a href="\g<u>">\g<t></a>')]
    def __init__(self): self.links, self.toc, self.counts = [], [], {}
    def inline(self, s):
        s = escape(s, quote=False)
        for rx, sub in self.INLINE:
            s, n = rx.subn(sub, s)
            self.counts[rx.pattern[:3]] = self.counts.get(rx.pattern[:3], 0) + n
        return s
    def blocks(self, text):
        para = []
        def flush():
            nonlocal para
            if para: yield ('p', self.inline(' '.join(para))); para = []
        for line in text.split('\n'):
            if m := re.match(r'(#{1,6})\s+(.*?)\s*#*$', line):
                yield from flush(); yield (f'h{len(m[1])}', self.inline(m[2])); self.toc.append((len(m[1]), m[2]))
            elif m := re.match(r'\s*[-*]\s+(.*)', line):
                yield from flush(); yield 'li', self.inline(m.group(1))
            elif re.fullmatch(r'\|(.*\|)+', line):
                yield from flush(); yield 'row', [c.strip() for c in line.strip('|').split('|')]
            elif not line.strip(): yield from flush()
            else: para.append(line.strip())
        yield from flush()

def program(text, w):
    md = MD()
    out, table = [], []
    for kind, body in md.blocks(text):
        if kind == 'row':
            if not all(set(c) <= set('-:') for c in body): table.append(body)
            continue
        out.append(f'<{kind}>{body}</{kind}>')
    nums = [[float(c) for c in r if re.fullmatch(r'[-+]?\d+(\.\d*)?', c)] for r in table]
    try: t = torch.tensor(nums)
    except ValueError as e: print(e); t = torch.zeros(len(nums), 1)
    col = t.sum(0) * w if t.dim() > 1 else t + w
    words = re.findall(r"\b[\w']+\b", text)
    lens = torch.tensor([len(x) for x in words] or [0])
    return out, table, col, md.toc, md.counts, lens.float().mean(), lens.bincount(), max(words, key=len, default='-')

CALLS = ["('# Hi **you** #\\ntext `a ` and\\nmore [l](u)\\n- one\\n* two\\n|1|2|\\n|-|-|\\n|3|4.5|', torch.tensor(2.))", "('', torch.tensor(1.))", "('|1|2|\\n|3|', torch.ones(1))", "('a<b & **c', torch.ones(2))", "('###### x\\n####### y', torch.tensor(3))"]
