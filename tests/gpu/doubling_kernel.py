"""A kernel as users write them with Triton."""

import triton
import triton.language as tl


@triton.jit
def doubled(source, target, count, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    value = tl.load(source + at, mask=at < count)
    tl.store(target + at, value * 2, mask=at < count)
