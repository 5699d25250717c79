import torch, json
from dataclasses import dataclass, field, asdict, replace, fields
from typing import Optional, List, ClassVar
@dataclass(order=True)
class Record:
    sort_key: tuple = field(init=False, repr=False)
    uid: int
    name: str = 'anon'
    tags: List[str] = field(default_factory=list, compare=False)
    score: Optional[float] = None
    count: ClassVar[int] = 0
    def __post_init__(self):
        Record.count += 1
        self.sort_key = (-(self.score or 0.), self.uid)
    @classmethod
    def parse(cls, line):
        raw = json.loads(line)
        known = {f.name for f in fields(cls) if f.init}
        extra = sorted(set(raw) - known)
        if extra:
            raise KeyError(*extra)
        return cls(**raw)

def featurize(recs, names):
    x = torch.zeros(len(recs), 2 + len(names))
    for i, r in enumerate(recs):
        x[i, 0] = float('nan') if r.score is None else r.score
        x[i, 1] = len(r.tags)
        for t in r.tags:
            if t in names: x[i, 2 + names.index(t)] = 1
    col = x[:, 0]
    ok = ~col.isnan()
    fill = col[ok].mean() if ok.any() else torch.tensor(0.)
    x[:, 0] = torch.where(ok, col, fill)
    return x, ok

def program(lines, names, w):
    good, bad = [], []
    for no, line in enumerate(lines, 1):
        try:
            good.append(Record.parse(line))
        except (json.JSONDecodeError, KeyError) as e:
            bad.append((no, type(e).__name__, e.args[:1] if isinstance(e, KeyError) else e.pos))
        except TypeError as e:
            bad.append((no, str(e)))
    good.sort()
    x, ok = featurize(good, names)
    y = x @ w[:x.shape[1]]
    for r, v in zip(good, y.tolist()):
        print(r, '%.2f' % v)
    return [asdict(r) for r in good], bad, x, y, ok, Record.count, [replace(r, uid=0).sort_key for r in good]
CALLS = ["(['{\"uid\":1,\"score\":2.5,\"tags\":[\"a\",\"b\"]}', '{\"uid\":2}', '{bad', '{\"uid\":3,\"zz\":1}', '{}'], ['a','c'], torch.arange(10.))",
 "([], ['a'], torch.ones(10))", "(['{\"uid\":9,\"tags\":[\"c\"],\"name\":\"x\"}'], ['a','c'], torch.ones(10))", "(['{\"uid\":1,\"score\":1.0}','{\"uid\":2,\"score\":3.0}'], [], torch.linspace(0,1,10))"]
