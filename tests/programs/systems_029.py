import torch

class VMError(Exception):
    def __init__(self, pc, msg): super().__init__(pc, msg); self.pc = pc
    def __str__(self): return f'pc={self.pc}: {self.args[1]}'

class VM:
    ops = {}
    def __init__(self, code, limit=60):
        self.code, self.stack, self.calls, self.vars, self.pc, self.ticks, self.limit = code, [], [], {}, 0, 0, limit
    @classmethod
    def instr(cls, fn):
        cls.ops[fn.__name__.rstrip('_').upper()] = fn
        return fn
    def run(self):
        try:
            while 0 <= self.pc < len(self.code):
                op, *args = self.code[self.pc]
                self.pc += 1; self.ticks += 1
                if self.ticks > self.limit: raise TimeoutError(f'{self.limit} ticks')
                if self.ops[op](self, *args) is StopIteration: break
        except (IndexError, KeyError, TypeError, RuntimeError) as e:
            raise VMError(self.pc - 1, f'{type(e).__name__}') from e
        return self.stack

@VM.instr
def push(vm, v): vm.stack.append(v)
@VM.instr
def add(vm): b, a = vm.stack.pop(), vm.stack.pop(); vm.stack.append(a + b)
@VM.instr
def mul(vm): vm.stack[-2:] = [vm.stack[-2] * vm.stack[-1]]
@VM.instr
def dup(vm, n=1): vm.stack.extend(vm.stack[-n:])
@VM.instr
def swap(vm): vm.stack[-1], vm.stack[-2] = vm.stack[-2], vm.stack[-1]
@VM.instr
def store(vm, k): vm.vars[k] = vm.stack.pop()
@VM.instr
def load(vm, k): vm.stack.append(vm.vars[k])
@VM.instr
def jnz(vm, to):
    v = vm.stack.pop()
    if v.any() if isinstance(v, torch.Tensor) else v: vm.pc = to
@VM.instr
def call(vm, to): vm.calls.append(vm.pc); vm.pc = to
@VM.instr
def ret(vm): vm.pc = vm.calls.pop()
@VM.instr
def print_(vm): print('VM>', vm.stack[-1] if not isinstance(vm.stack[-1], torch.Tensor) else tuple(vm.stack[-1].shape))
@VM.instr
def halt(vm): return StopIteration

def assemble(src):
    labels, code = {}, []
    for line in src.split('\n'):
        line = line.strip()
        if line.endswith(':'): labels[line[:-1]] = len(code)
        elif line:
            op, *a = line.split(); code.append([op.upper(), *a])
    conv = lambda a: labels[a] if a in labels else int(a) if a.lstrip('-').isdigit() else a
    return [(op, *map(conv, a)) for op, *a in code]

def program(src, x):
    vm = VM(assemble(src)); vm.vars['x'] = x
    try: vm.run(); err = None
    except VMError as e: err = str(e), repr(e.__cause__)[:40]
    except TimeoutError as e: err = e.args
    return vm.stack, {k: v for k, v in vm.vars.items() if k != 'x'}, err, vm.pc, vm.ticks, x * vm.ticks

CALLS = ["('load x\\npush 3\\nstore n\\nL:\\npush 2\\nmul\\nload n\\npush -1\\nadd\\ndup\\nstore n\\njnz L\\nprint\\nhalt', torch.arange(3.))",
 "('add', torch.ones(1))", "('L:\\npush 1\\njnz L', torch.ones(1))", "('load x\\njnz F\\nload x\\nhalt\\nF:\\ncall G\\nhalt\\nG:\\nload x\\ndup\\nadd\\nret', torch.tensor([0.,1.]))", "('load x\\njnz F\\nload x\\nprint\\nhalt\\nF:\\nfoo', torch.zeros(2))", "('', torch.ones(2))"]
