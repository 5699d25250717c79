import torch

class Kalman:
    def __init__(self, F, H, Q, R):
        self.F, self.H, self.Q, self.R = F, H, Q, R
        self.x = torch.zeros(F.shape[0], 1); self.P = torch.eye(F.shape[0]) * 10
        self.loglik = 0.0
        self.gated = []
    def predict(self):
        self.x = self.F @ self.x
        self.P = self.F @ self.P @ self.F.mT + self.Q
    def update(self, z, gate=None):
        y = z - self.H @ self.x
        S = self.H @ self.P @ self.H.mT + self.R
        try:
            L = torch.linalg.cholesky(S)
        except torch.linalg.LinAlgError as e:
            print('not positive definite')
            self.gated.append('chol')
            return False
        maha = (y.mT @ torch.cholesky_solve(y, L)).item()
        if gate and maha > gate:
            self.gated.append(round(maha, 2)); return False
        K = torch.cholesky_solve(self.H @ self.P, L).mT
        self.x += K @ y
        self.P -= K @ self.H @ self.P
        self.loglik -= 0.5 * (maha + 2 * L.diagonal().log().sum().item())
        return True

def program(zs, dt, r, gate):
    F = torch.tensor([[1., dt], [0., 1.]])
    k = Kalman(F, torch.tensor([[1., 0.]]), torch.eye(2) * 1e-2, torch.tensor([[r]]))
    track, ok = [], 0
    for i, z in enumerate(zs):
        k.predict()
        if z is None or z != z:
            continue
        ok += k.update(torch.tensor([[float(z)]]), gate)
        track.append(k.x.clone())
        if k.P.diagonal().min() < 0:
            print('negative variance at', i); break
    else:
        print('done', ok)
    return torch.cat(track, 1) if track else None, k.P, round(k.loglik, 3), k.gated, ok, F

CALLS = ["([1, 2, 3.1, None, 5], 1., .1, None)", "([1, 2, 30., float('nan'), 5], 1., .1, 9.)", "([1, 2], 0.5, -100., None)", "([], 1., 1., None)", "([True, 2], 1, 1., 0)"]
