import torch

class Trie:
    class Node(dict):
        end = None
        def __missing__(self, k):
            n = self[k] = type(self)()
            return n
    def __init__(self, words=()):
        self.root = self.Node(); self.size = 0
        for w in words: self.add(w)
    def add(self, w, data=None):
        n = self.root
        for c in w: n = n[c]
        if n.end is None: self.size += 1
        n.end = (w, data)
        return self
    def __contains__(self, w):
        n = self.root
        for c in w:
            if c not in n: return False
            n = n[c]
        return n.end is not None
    def walk(self, prefix=''):
        n = self.root
        for c in prefix:
            n = n.get(c)
            if n is None: return
        stack = [n]
        while stack:
            n = stack.pop()
            if n.end: yield n.end
            stack.extend(n[c] for c in sorted(n, reverse=True))
    def __len__(self): return self.size
    def __getitem__(self, p):
        r = [w for w, _ in self.walk(p)]
        if not r: raise KeyError(p)
        return r

def kmp(text, pat):
    f = [0] * len(pat)
    for i in range(1, len(pat)):
        k = f[i - 1]
        while k and pat[i] != pat[k]: k = f[k - 1]
        f[i] = k + (pat[i] == pat[k])
    hits, k = [], 0
    for i, c in enumerate(text):
        while k and (k == len(pat) or c != pat[k]): k = f[k - 1]
        if c == pat[k]: k += 1
        if k == len(pat): hits.append(i - k + 1)
    return hits, f

def suffix_array(s):
    sa = sorted(range(len(s)), key=lambda i: s[i:])
    lcp = [0] * len(s)
    for a in range(1, len(sa)):
        p, q = s[sa[a - 1]:], s[sa[a]:]
        lcp[a] = next((i for i, (x, y) in enumerate(zip(p, q)) if x != y), min(len(p), len(q)))
    return torch.tensor(sa, dtype=torch.long), torch.tensor(lcp)

def program(text, pat, words):
    t = Trie(words)
    try: hits, f = kmp(text, pat)
    except IndexError as e: print('empty pattern'); hits, f = [], str(e)
    sa, lcp = suffix_array(text)
    cover = torch.zeros(len(text))
    for h in hits: cover[h:h + len(pat)] += 1
    best = int(lcp.argmax()) if len(lcp) else None
    rep = text[sa[best]:sa[best] + lcp[best]] if best is not None else ''
    if rep: print('longest repeat', rep)
    try: sug = t[pat[:1]]
    except KeyError as e: sug = f'none {e}'
    for i, w in enumerate(words): t.add(w, cover[i:i + 2].sum())
    return hits, f, sa, lcp, cover, rep, sug, len(t), bool(t), pat in t, list(t.walk()), torch.argsort(sa), dict(t.root) == t.root

CALLS = ["('abababcabab', 'abab', ['ab', 'abc', 'b', 'ab'])", "('banana', '', ['x'])", "('', 'a', [])", "('aaaa', 'aa', ['aa', 'aaa', ''])", "('mississippi', 'issi', ['is', 'miss', 'si'])"]
