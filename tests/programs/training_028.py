import torch

def solve(A, b, attempts=None):
    attempts = [] if attempts is None else attempts
    for name, f in (('chol', lambda: torch.cholesky_solve(b, torch.linalg.cholesky(A))),
                    ('lu', lambda: torch.linalg.solve(A, b)),
                    ('lstsq', lambda: torch.linalg.lstsq(A, b).solution)):
        try:
            x = f()
        except torch.linalg.LinAlgError as e:
            attempts.append((name, 'singular' if 'singular' in str(e) else 'other'))
            continue
        except RuntimeError as e:
            attempts.append((name, type(e).__name__))
        else:
            if x.isfinite().all():
                attempts.append((name, 'ok'))
                return x, attempts
            attempts.append((name, 'nan'))
        finally:
            if len(attempts) > 2:
                print('last resort')
    return None, attempts

def program(A, b, eps):
    x, att = solve(A, b)
    res = None
    if x is not None:
        res = (A @ x - b).norm() < 1e-3
    try:
        U, S, Vh = torch.linalg.svd(A)
        rank = int((S > eps * S.max()).sum())
        cond = (S.max() / S.min()).item()
    except (IndexError, RuntimeError) as e:
        S, rank, cond = None, -1, type(e).__name__
    try:
        sign, logdet = torch.slogdet(A)
    except RuntimeError as e:
        sign, logdet = 'not square', None
    w = torch.linalg.eigvals(A) if A.ndim == 2 and A.shape[0] == A.shape[1] else None
    return x, att, res, rank, cond == float('inf') or cond, sign, logdet, S, None if w is None else w.abs().sort().values, solve.__defaults__

CALLS = ["(torch.tensor([[2.,1.],[1.,3.]]), torch.ones(2,1), 1e-6)", "(torch.tensor([[0.,1.],[1.,0.]]), torch.ones(2,1), 1e-6)", "(torch.zeros(2,2), torch.ones(2,1), 1e-6)", "(torch.ones(3,2).tril(), torch.ones(3,1), 1e-6)", "(torch.eye(2), torch.ones(3,1), .1)"]
