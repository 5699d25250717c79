import torch
def cleanup(log, x):
    for i in range(4):
        try:
            log.append(i)
            if x[i % len(x)] > 1:
                continue
            if x[i % len(x)] < 0:
                break
            x = x + 1
            if i == 2:
                raise KeyError(i)
        except KeyError as e:
            log.append(repr(e))
            try:
                raise ValueError('inner') from e
            except ValueError as v:
                log.append((repr(v.__cause__), repr(v.__context__)))
        else:
            log.append('else')
        finally:
            log.append('finally')
            x = x * 1.5
    else:
        log.append('exhausted')
    return x

def swallow(x):
    try:
        return x.sum().item() / 0
    except ZeroDivisionError:
        return 'zero'
    finally:
        if x.sum() > 10:
            return 'finally wins'

def reraise(x, log):
    try:
        try:
            if x.max() > 2: raise OverflowError('max')
            return 1 / 0
        finally:
            log.append(float(x.mean()))
    except ArithmeticError as e:
        e.add_note('noted')
        log.append(e.__notes__)
        raise

def program(x):
    log = []
    y = cleanup(log, x)
    s = swallow(y)
    try: reraise(y, log)
    except Exception as e:
        err = e
    try: err2 = e
    except NameError as n: err2 = type(n).__name__, str(n)
    return y, s, log, type(err).__name__, err.__notes__, err2, err.__context__

CALLS = ["(torch.tensor([.5, 2.]),)", "(torch.tensor([0.,-1.]),)", "(torch.tensor([5.]),)", "(torch.tensor([-20., 1.]),)", "(torch.zeros(3),)"]
