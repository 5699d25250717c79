import torch, sys, traceback

class Shape(Exception):
    def __init__(self, msg, *, layer=None):
        super().__init__(msg)
        self.layer = layer
        self.add_note(f'in {layer}')

def checked(name):
    def deco(f):
        def wrapper(x, *a, **k):
            try:
                return f(x, *a, **k)
            except RuntimeError as e:
                raise Shape(f'{name}: {tuple(x.shape)}', layer=name) from e
            except (ValueError, IndexError):
                raise
            finally:
                DEPTH.append(name)
        wrapper.__name__ = f.__name__
        return wrapper
    return deco

DEPTH = []
@checked('proj')
def proj(x, w): return x @ w
@checked('pick')
def pick(x, i):
    if i > 100: raise ValueError(f'{i=}')
    return x[i]
@checked('outer')
def both(x, w, i): return pick(proj(x, w), i)

def program(x, w, i):
    DEPTH.clear()
    out = None
    try:
        try:
            out = both(x, w, i)
        except Shape as s:
            chain, e = [], s
            while e is not None:
                chain.append((type(e).__name__, getattr(e, 'layer', None), getattr(e, '__notes__', [])))
                e = e.__cause__
            info = chain, sys.exc_info()[0].__name__, sys.exc_info()[1] is s
            names = [f.name for f in traceback.extract_tb(s.__traceback__)]
            print(names[0], names[-1])
            return 'shape', info, len(names), x + 1
        except IndexError as e:
            raise KeyError(i)
        else:
            out = out * 2
    except LookupError as e:
        return 'lookup', repr(e), repr(e.__context__)[:20], e.__cause__, e.__suppress_context__, x * 2
    except ValueError as e:
        print(''.join(traceback.format_exception_only(e)).strip())
        out = x.sum()
    finally:
        DEPTH.append('end')
        if i == 7: return 'seven', DEPTH, x
    assert sys.exc_info() == (None, None, None)
    return out, DEPTH, sys.exc_info()[1]

CALLS = ["(torch.ones(2,3), torch.ones(3,2), 1)", "(torch.ones(2,3), torch.ones(2,2), 1)", "(torch.ones(2,3), torch.ones(3,2), 5)", "(torch.ones(2,3), torch.ones(3,2), 500)", "(torch.ones(9,3), torch.ones(2), 7)", "(torch.ones(2,3), torch.ones(3,2), 'x')"]
