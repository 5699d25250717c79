"""Coroutines with `async for`, compiled: they run as plain Python, and nothing fails on the way."""

import asyncio

import pytest
import torch

import framejit
from checking import Comparison


async def counted(x):
    for i in range(3):
        await asyncio.sleep(0)
        yield x + i


async def summed(x):
    async for each in counted(x):
        x = x + each
    return x * 2


async def listed(x):
    async with asyncio.Lock():
        return [each * 2 async for each in counted(x) if each.sum() > 0]


@pytest.mark.parametrize("function", [summed, listed])
def test_coroutines_with_asynchronous_loops(function):
    compiled = framejit.compile(function, backend="eager")
    x = torch.ones(2)
    expected = asyncio.run(function(x))
    Comparison().compare(expected, asyncio.run(compiled(x)), "")
