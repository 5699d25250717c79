import torch, ast
class Evaluator(ast.NodeVisitor):
    OPS = {ast.Add: torch.add, ast.Sub: torch.sub, ast.Mult: torch.mul, ast.MatMult: torch.matmul}
    def __init__(self, env): self.env, self.trace = env, []
    def generic_visit(self, node): raise SyntaxError(f'unsupported {type(node).__name__}')
    def visit(self, node):
        self.trace.append(type(node).__name__)
        return super().visit(node)
    def visit_Expression(self, n): return self.visit(n.body)
    def visit_Name(self, n): return self.env[n.id]
    def visit_Constant(self, n): return torch.tensor(float(n.value))
    def visit_BinOp(self, n):
        f = self.OPS.get(type(n.op))
        if f is None: raise SyntaxError('op ' + n.op.__class__.__name__)
        return f(self.visit(n.left), self.visit(n.right))
    def visit_UnaryOp(self, n): return {ast.USub: torch.neg, ast.UAdd: lambda v: v}[type(n.op)](self.visit(n.operand))
    def visit_IfExp(self, n): return self.visit(n.body) if self.visit(n.test).sum() > 0 else self.visit(n.orelse)
    def visit_Call(self, n): return getattr(torch, n.func.id)(*map(self.visit, n.args), **{k.arg: ast.literal_eval(k.value) for k in n.keywords})
def program(src, x, w):
    ev = Evaluator({'x': x, 'w': w}); out = []
    for line in src.split(';'):
        try: out.append(ev.visit(ast.parse(line.strip(), mode='eval')))
        except SyntaxError as e: out.append('syntax: ' + e.msg)
        except (KeyError, AttributeError, RuntimeError, TypeError) as e: out.append(type(e).__name__); print('error', line.strip())
    return out, ev.trace, len(ev.trace)
CALLS = ["('x + 2 * w; -x if w else x; relu(x - 1)', torch.arange(3.), torch.ones(3))", "('x ** 2; y; x @ w; sum(x, dim=0)', torch.eye(2), torch.ones(2))", "('', torch.ones(1), torch.ones(1))", "('x if w - 5 else cat(x); 1 +', torch.ones(2), torch.ones(2)*9)"]
