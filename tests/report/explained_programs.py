"""Programs for test_explain; the comments say what becomes of the lines."""


def helper(x):
    y = x * 2  # captured
    if y.sum() > 0:  # break
        y = y + 1  # captured
    else:
        y = y - 1
    return y  # captured


def program(x, n):
    x = helper(x)  # captured
    print("spoken")  # break
    return x * n  # captured
