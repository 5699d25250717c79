import torch
import unicodedata
from itertools import takewhile, dropwhile, product, combinations, permutations, starmap, compress, tee, cycle, repeat

def strip_accents(s):
    return ''.join(c for c in unicodedata.normalize('NFD', s) if not unicodedata.combining(c))

def edit_distance(a, b):
    row = torch.arange(len(b) + 1)
    for i, ca in enumerate(a, 1):
        new = row.clone()
        new[0] = i
        for j, cb in enumerate(b, 1):
            new[j] = min(row[j] + 1, new[j - 1] + 1, row[j - 1] + (ca != cb))
        row = new
    return row[-1]

def ngrams(s, n):
    its = tee(s, n)
    for i, it in enumerate(its):
        for _ in range(i): next(it, None)
    return list(map(''.join, zip(*its)))

CASES = str.maketrans({'-': ' ', '_': None, 'ß': 'ss'})

def program(words, n):
    norm = [strip_accents(w.translate(CASES)).swapcase() for w in words]
    pairs = list(combinations(norm, 2))
    d = torch.tensor([int(x) for x in starmap(edit_distance, pairs)])
    print('pairs', len(pairs), *('%s~%s' % p for p in pairs[:2]))
    grams = {w: ngrams(w, n) for w in norm}
    jac = torch.tensor([len(set(grams[a]) & set(grams[b])) / max(1, len(set(grams[a]) | set(grams[b]))) for a, b in pairs])
    head = [''.join(takewhile(str.isupper, w)) + '/' + ''.join(dropwhile(str.isupper, w)) for w in norm]
    picked = list(compress(norm, cycle([1, 0])))
    try:
        cats = [unicodedata.name(w[0]) for w in words]
    except (IndexError, ValueError) as e:
        cats = str(e)
    score = (d.float() * (1 - jac)) if pairs else None
    enc = [w.encode('ascii', 'backslashreplace') for w in words], [len(w.encode('utf-16-le')) for w in words]
    return d, jac, head, picked, cats, score, enc, sum(1 for _ in permutations(norm[:3])), [*product('ab', repeat=min(n, 2))], [w.center(9, '*').rjust(11) for w in norm], [w.partition(' ') for w in norm]

CALLS = ["(['Café-au', 'cafe', 'straße'], 2)", "([], 1)", "(['', 'a'], 2)", "(['日本', '日本語', '\\U0001f600x'], 1)", "(['a_b', 'AB'], 3)"]
