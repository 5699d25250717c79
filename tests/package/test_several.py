"""Several compiled objects in one package; the profile in it."""

import contextlib
import gc
import os
import warnings

import pytest
import torch
from forks import child, ended
from torch import nn
from torch._inductor.utils import fresh_cache

import framejit
from framejit.exc import FramejitWarning, NothingFits, PackageError
from framejit.package import Reader
from framejit.report import events

X = torch.ones(3)


def first(x):
    return x + 1


def second(x):
    print("between")
    return x * 2


def objects():
    """A function, another one, and two modules of one class with different parameters."""
    made = [first, second, nn.Linear(3, 2), nn.Linear(3, 5)]
    return [framejit.compile(one, backend="eager") for one in made]


def call(compiled):
    for one in compiled:
        expected = one.__wrapped__(X)
        torch.testing.assert_close(one(X), expected)


def captured_in(function):
    with events.recording(events.CaptureStart) as captured, warnings.catch_warnings():
        warnings.simplefilter("error")
        function()
    return [event.name for event in captured]


def names_in(path):
    return [row["object"]["name"] for row in Reader(path).manifest["objects"]]


def in_block(path, **options):
    with framejit.packaged(path, **options):
        compiled = objects()
        call(compiled)
    return compiled


def test_a_block_saves_and_loads_everything_in_it(tmp_path):
    path = tmp_path / "several"
    assert len(captured_in(lambda: in_block(path))) == 5  # one of them is a continuation
    assert names_in(path) == ["first", "second", "Linear", "Linear"]
    stamp = path.stat().st_mtime_ns
    assert captured_in(lambda: in_block(path)) == []
    assert path.stat().st_mtime_ns == stamp  # nothing new, nothing written


def test_each_object_can_be_loaded_by_itself(tmp_path):
    path = tmp_path / "several"
    in_block(path)
    for one in [first, second, nn.Linear(3, 5), nn.Linear(3, 2)]:
        loaded = framejit.load_package(path, one, backend="eager")
        assert captured_in(lambda loaded=loaded: call([loaded])) == []
    with pytest.raises(PackageError, match=r"first, .*second, .*Linear and 1 more, not for"):
        framejit.load_package(path, nn.Bilinear(3, 3, 3), backend="eager")
    with pytest.raises(PackageError, match="had the shape"):
        framejit.load_package(path, nn.Linear(3, 4), backend="eager")


def test_what_a_process_does_not_use_stays_in_the_file(tmp_path):
    path = tmp_path / "several"
    in_block(path)
    gc.collect()
    with framejit.packaged(path):
        one = framejit.compile(nn.ReLU(), backend="eager")
        assert len(captured_in(lambda: call([one]))) == 1
    assert sorted(names_in(path)) == ["Linear", "Linear", "ReLU", "first", "second"]
    assert captured_in(lambda: in_block(path)) == []


def test_a_block_that_raises_writes_nothing(tmp_path):
    path = tmp_path / "several"
    with pytest.raises(ZeroDivisionError), framejit.packaged(path):
        call(objects())
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    assert framejit.packaged._innermost() is None


def test_what_a_block_that_raised_compiled_is_in_no_later_block(tmp_path):
    path, kept = tmp_path / "p", []
    for end in (ZeroDivisionError, None):
        with contextlib.suppress(ZeroDivisionError), framejit.packaged(path):
            kept.append(framejit.compile(first, backend="eager"))
            kept[-1](X)
            if end is not None:
                raise end
    assert names_in(path) == ["first"]


def test_a_package_that_is_loaded_where_it_was_made_does_not_grow(tmp_path):
    path, compiled = tmp_path / "p", framejit.compile(first, backend="eager")
    call([compiled])
    compiled.save_package(path)
    size = path.stat().st_size
    compiled.load_package(path)
    compiled.save_package(path)
    assert path.stat().st_size == size
    assert captured_in(lambda: call([framejit.load_package(path, first, backend="eager")])) == []


def test_objects_that_are_gone_when_the_block_ends_are_saved(tmp_path):
    path = tmp_path / "several"
    with framejit.packaged(path):
        call(objects())
        gc.collect()
    assert len(names_in(path)) == 4


def test_a_block_signs_and_wants_signed_files(tmp_path):
    path = tmp_path / "several"
    in_block(path, key=b"secret")
    Reader(path, b"secret").verify()
    assert captured_in(lambda: in_block(path, key=b"secret")) == []
    stamp = path.stat().st_mtime_ns
    with pytest.warns(FramejitWarning, match="not signed with this key"):
        with pytest.raises(PackageError, match="signed with a key that was not given"):
            in_block(path, key=b"other")
    assert path.stat().st_mtime_ns == stamp


def test_objects_with_one_path_share_the_file(tmp_path):
    path = tmp_path / "shared"
    one = framejit.compile(first, backend="eager", package=path)
    two = framejit.compile(second, backend="eager", package=path)
    call([one, two])
    from framejit.package import package_file

    package_file(path).save_news()  # as when the process ends
    assert names_in(path) == ["first", "second"]
    again = framejit.compile(second, backend="eager", package=path)
    assert captured_in(lambda: call([again])) == []


def test_what_varied_is_known_to_the_next_process(tmp_path):
    path = tmp_path / "profile"
    saved = framejit.compile(nn.Linear(3, 2), backend="eager")
    for n in (2, 3):
        saved(torch.ones(n, 3))
    saved.save_package(path)
    loaded = framejit.load_package(path, nn.Linear(3, 2), backend="eager")
    with torch.no_grad():  # no entry was made for that; the first one is for all sizes
        sizes = [torch.ones(n, 3) for n in (4, 5, 6)]
        assert len(captured_in(lambda: [loaded(x) for x in sizes])) == 1


LIMITS = []


def watching(gm, examples):
    """A backend that cannot serialise, and that may assume something of sizes."""
    LIMITS.append([type(example).__name__ for example in examples])
    if len(LIMITS) > 1:
        assert examples[0] >= 6
    return gm.forward


def halves(x, n):
    return x[: x.shape[0] // 2] * n


def test_graphs_with_sizes_that_vary_are_compiled_again(tmp_path):
    """What the backend assumes in the second process is guarded there, too."""
    path = tmp_path / "sizes"
    LIMITS.clear()
    saved = framejit.compile(halves, backend=watching, dynamic=True)
    saved(torch.arange(8.0), 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        saved.save_package(path)
    loaded = framejit.compile(halves, backend=watching, dynamic=True).load_package(path)
    with events.recording(events.CaptureStart) as captured:
        for n in (10, 7, 6):
            x = torch.arange(float(n))
            torch.testing.assert_close(loaded(x, n + 2), halves(x, n + 2))
    assert captured == []
    assert LIMITS == [["SymInt", "SymInt", "Tensor"]] * 2
    x = torch.arange(4.0)
    with framejit.run(strict=True), pytest.raises(NothingFits, match="size.*>= 6"):
        loaded(x, 3)
    torch.testing.assert_close(loaded(torch.ones(9), 3), torch.full((4,), 3.0))


def scaled(x, rate):
    return x * ((rate + 1) * 2) + x[: round(rate * rate)].sum()


NUMBERS = []


def noting_numbers(gm, inputs):
    NUMBERS.append([type(i).__name__ for i in inputs])
    return gm.forward


@pytest.mark.parametrize("backend", ["eager", noting_numbers])
def test_numbers_that_are_computed_for_a_graph(tmp_path, backend):
    path, x = tmp_path / "rates", torch.arange(8.0)
    NUMBERS.clear()
    saved = framejit.compile(scaled, backend=backend)
    for rate in (1.5, 1.7):
        saved(x, rate)
    saved.save_package(path)
    loaded = framejit.compile(scaled, backend=backend).load_package(path)
    with framejit.run(strict=True):
        for rate in (1.9, 2.5):
            assert torch.equal(loaded(x, rate), scaled(x, rate))
    varying = ["SymFloat", "SymInt", "Tensor"]
    assert NUMBERS == ([] if backend == "eager" else [["Tensor"], varying, varying])


def test_many_objects_of_one_function_do_not_make_the_file_grow(tmp_path):
    from framejit.package import package_file

    path = tmp_path / "shared"
    alive = []
    sizes = set()
    for _ in range(4):
        one = framejit.compile(second, backend="eager", package=path)
        call([one])
        alive.append(one)
        package_file(path).save_news()
        sizes.add(path.stat().st_size)
    assert names_in(path) == ["second"] and len(sizes) == 1
    alive[2](torch.ones(2, 2, dtype=torch.int64))
    package_file(path).save_news()
    assert names_in(path) == ["second", "second"]


def test_a_reset_does_not_empty_the_file(tmp_path):
    path = tmp_path / "several"
    compiled = in_block(path)
    size = path.stat().st_size
    framejit.reset()
    with framejit.packaged(path):
        call([compiled[0]])  # belongs to the file, though it was not made in this block
    assert sorted(names_in(path)) == ["Linear", "Linear", "first", "second"]
    assert abs(path.stat().st_size - size) < 1000
    assert captured_in(lambda: in_block(path)) == []


def test_a_file_that_is_no_package_is_not_replaced(tmp_path):
    from framejit.exc import FramejitWarning, PackageError
    from framejit.package import package_file

    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.warns(FramejitWarning, match="is not a framejit package"):
        one = framejit.compile(second, backend="eager", package=path)
        call([one])
    with pytest.raises(PackageError, match="not replaced"):
        package_file(path).save_news()
    assert path.read_text() == "hello"
    one.save_package(path)  # who asks for it gets it
    assert names_in(path) == ["second"]


def elsewhere(path, ready, go, *calls):
    """Another process, which calls, waits for the others, and ends."""

    def work():
        warnings.simplefilter("error")
        made = {
            one: framejit.compile(one, backend="eager", package=path, dynamic=False)
            for one in (second, first)
        }
        for one, n in calls:
            made[one](torch.ones(n))
        os.write(ready, b".")
        os.read(go, 1)
        return True

    return child(work)


def test_processes_that_end_at_once_keep_what_the_others_saved(tmp_path):
    path = tmp_path / "shared"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        base = framejit.compile(second, backend="eager", package=path, dynamic=False)
        base(X)
        base.save_package()
    ready, go = os.pipe(), os.pipe()
    processes = [
        elsewhere(path, ready[1], go[0], (second, 3), (second, 4), (second, 5)),
        elsewhere(path, ready[1], go[0], (second, 3), (second, 4), (second, 6)),
        elsewhere(path, ready[1], go[0], (second, 7), (first, 7)),
    ]
    for _ in processes:
        os.read(ready[0], 1)
    os.write(go[1], b"...")
    assert ended(processes) == [0] * len(processes)
    assert sorted(names_in(path)) == ["first", "second"]
    rows = {row["object"]["name"]: row for row in Reader(path).manifest["objects"]}
    counts = {f["name"]: len(f["entries"]) for r in rows.values() for f in r["frames"]}
    assert set(counts.values()) == {5, 1} and counts["first"] == 1  # sizes 3 to 7, none twice
    loaded = framejit.load_package(path, second, backend="eager", dynamic=False)
    assert captured_in(lambda: [loaded(torch.ones(n)) for n in range(3, 8)]) == []
    base(torch.ones(8))  # this process has seen nothing of all that
    base.save_package()
    loaded = framejit.load_package(path, second, backend="eager", dynamic=False)
    assert captured_in(lambda: [loaded(torch.ones(n)) for n in range(3, 9)]) == []
    assert sorted(names_in(path)) == ["first", "second"]


def test_a_file_that_was_replaced_gets_back_what_only_this_process_knows(tmp_path):
    path = tmp_path / "several"
    in_block(path)
    gc.collect()
    with framejit.packaged(path):
        one = framejit.compile(second, backend="eager")
        one(X.double())
        one.save_package(path)
        assert names_in(path) == ["second"]
        one(X.int())
    assert sorted(names_in(path)) == ["Linear", "Linear", "first", "second"]


def sized(path, *sizes):
    one = framejit.compile(second, backend="eager", dynamic=False)
    for n in sizes:
        one(torch.ones(n))
    one.save_package(path)


@pytest.mark.parametrize("used", [False, True])
def test_a_second_package_for_one_object_adds_to_the_first(tmp_path, used):
    """Also when entries of the first are in use, and when both are saved as one."""
    sized(tmp_path / "one", 3, 4)
    sized(tmp_path / "two", 5, 4)

    def calls(compiled, *sizes):
        for n in sizes:
            x = torch.arange(float(n))
            torch.testing.assert_close(compiled(x), second(x))

    loaded = framejit.compile(second, backend="eager", dynamic=False)
    loaded.load_package(tmp_path / "one")
    if used:
        calls(loaded, 3)
    for _ in range(3):
        loaded.load_package(tmp_path / "two")
    assert captured_in(lambda: calls(loaded, 5, 4)) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.save_package(tmp_path / "both")
        loaded.save_package(tmp_path / "again")
    frames = Reader(tmp_path / "again").manifest["objects"][0]["frames"]
    assert sorted(len(frame["entries"]) for frame in frames) == [1, 3]
    both = framejit.load_package(tmp_path / "both", second, backend="eager", dynamic=False)
    assert captured_in(lambda: calls(both, 3, 4, 5)) == []
    assert captured_in(lambda: calls(loaded, 3)) == []


def test_kernels_that_have_left_inductors_cache_are_compiled_again(tmp_path):
    path = tmp_path / "package"
    with fresh_cache():
        compiled = framejit.compile(first, backend="inductor")
        compiled(X)
    compiled.save_package(path)
    assert not [part for part in Reader(path).manifest["parts"] if "artifact" in part["name"]]
    loaded = framejit.load_package(path, first, backend="inductor")
    assert captured_in(lambda: call([loaded])) == []
