import torch

class VM:
    """stack machine"""
    def __init__(self, consts, limit=200):
        self.stack, self.frames, self.consts, self.mem = [], [], consts, {}
        self.limit, self.ticks, self.out = limit, 0, []

    def push(self, *v): self.stack.extend(v)
    def pop(self, n=1):
        if len(self.stack) < n:
            raise IndexError(f'stack underflow at tick {self.ticks}')
        vals = self.stack[-n:]
        del self.stack[-n:]
        return vals[0] if n == 1 else vals

    def run(self, code):
        pc = 0
        while pc < len(code):
            self.ticks += 1
            if self.ticks > self.limit:
                raise TimeoutError(self.ticks)
            op = code[pc]
            pc += 1
            match op:
                case ('const', int(i)):
                    self.push(self.consts[i])
                case ('load' | 'get', str(n)):
                    self.push(self.mem[n])
                case ('store', str(n)):
                    self.mem[n] = self.pop()
                case ('add' | 'mul' | 'sub' as f,) | ('add' | 'mul' | 'sub' as f, None):
                    a, b = self.pop(2)
                    self.push(getattr(torch, f)(torch.as_tensor(a), b))
                case ('jump', int(to)):
                    pc = to
                case ('jz', int(to)) if not bool(self.pop()):
                    pc = to
                case ('jz', _):
                    pass
                case ('call', [*body]):
                    self.frames.append(pc)
                    self.run(body)
                    pc = self.frames.pop()
                case ('apply', {'fn': fn, **kw}):
                    self.push(getattr(torch, fn)(self.pop(), **kw))
                case ('print', *rest):
                    v = self.pop()
                    print(*rest, v.tolist() if isinstance(v, torch.Tensor) else v)
                case str() as s:
                    self.out.append(s)
                case _:
                    raise SyntaxError(repr(op))

def program(code, consts):
    vm = VM(consts)
    try:
        vm.run(code)
    except (IndexError, KeyError, SyntaxError, TimeoutError) as e:
        status = f'{type(e).__name__}: {e}'
    else:
        status = 'ok'
    return status, vm.stack, vm.mem, vm.ticks, vm.out, vm.frames

LOOP = [('const', 0), ('store', 'n'), ('const', 1), ('store', 'acc'), ('load', 'n'), ('jz', 15), ('load', 'acc'), ('load', 'n'), ('mul',), ('store', 'acc'),
        ('load', 'n'), ('const', 2), ('sub',), ('store', 'n'), ('jump', 4), ('get', 'acc'), ('print', 'acc ='), 'end']
CALLS = ["(LOOP, (torch.tensor(4), torch.ones(2), 1))", "([('const', 0), ('apply', {'fn': 'sum', 'dim': 0}), ('call', [('const', 1), ('add', None)])], (torch.ones(2, 3), 5))",
 "([('add',)], ())", "([('jump', 0)], ())", "([('bad', 1)], (torch.ones(1),))", "(LOOP, (torch.tensor(2), 1.5, torch.tensor(1)))", "(['a', ('load', 'q')], ())"]
CALLS = [c.replace('LOOP', repr(LOOP)) for c in CALLS]
