"""For all tests: counters start empty, bugs of framejit are errors, model libraries import."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parent))

if "PYTEST_XDIST_WORKER_COUNT" in os.environ:  # the processes share the machine
    workers = int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    torch.set_num_threads(max(1, torch.get_num_threads() // workers))

_ROIS = "Tensor input, Tensor rois, float spatial_scale"
_GRAD = "Tensor grad, Tensor rois"
_SIZES = "SymInt pooled_height, SymInt pooled_width"
_BATCH = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONV = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"
_STEPS = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
TORCHVISION_SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    f"roi_align({_ROIS}, {_SIZES}, int sampling_ratio, bool aligned) -> Tensor",
    f"_roi_align_backward({_GRAD}, float spatial_scale, {_SIZES}, {_BATCH}, int sampling_ratio, "
    "bool aligned) -> Tensor",
    f"roi_pool({_ROIS}, {_SIZES}) -> (Tensor, Tensor)",
    f"_roi_pool_backward({_GRAD}, Tensor argmax, float spatial_scale, {_SIZES}, {_BATCH}) "
    "-> Tensor",
    f"ps_roi_align({_ROIS}, {_SIZES}, int sampling_ratio) -> (Tensor, Tensor)",
    f"_ps_roi_align_backward({_GRAD}, Tensor channel_mapping, float spatial_scale, {_SIZES}, "
    f"int sampling_ratio, {_BATCH}) -> Tensor",
    f"ps_roi_pool({_ROIS}, {_SIZES}) -> (Tensor, Tensor)",
    f"_ps_roi_pool_backward({_GRAD}, Tensor channel_mapping, float spatial_scale, {_SIZES}, "
    f"{_BATCH}) -> Tensor",
    f"deform_conv2d({_CONV}, {_STEPS}) -> Tensor",
    f"_deform_conv2d_backward(Tensor grad, {_CONV}, {_STEPS}) "
    "-> (Tensor, Tensor, Tensor, Tensor, Tensor)",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "_cuda_version() -> int",
)


def declare_torchvision_operators():
    """Let transformers and timm be imported where torchvision's C++ part does not fit this torch.

    Without that part, torchvision's Python modules cannot even be imported; no test runs these
    operators.
    """
    spec = importlib.util.find_spec("torchvision")
    if spec is None or spec.origin is None:
        return None
    try:
        for path in Path(spec.origin).parent.glob("_C*.so"):
            torch.ops.load_library(path)
            return None
    except OSError:
        pass
    library = torch.library.Library("torchvision", "DEF")
    for schema in TORCHVISION_SCHEMAS:
        library.define(schema)
    return library


_torchvision = declare_torchvision_operators()


def pytest_addoption(parser):
    parser.addoption(
        "--audit", action="store_true",
        help="make all calls of compiled functions as plain Python, too; differences fail the test",
    )  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if config.getoption("--audit"):
        import framejit

        framejit.config.audit = 1.0
        config.option.timeout = 0  # much is done three times


@pytest.fixture(autouse=True)
def strict_framejit():
    """Every test starts with empty counters, and a bug of framejit fails it; with ``--audit``, also
    each call that does something else than plain Python."""
    import framejit
    from framejit.report import events

    framejit.counters.clear()
    with (
        framejit.config.patch(raise_internal_errors=True),
        events.recording(events.Mismatch) as seen,  # all events would keep objects alive
    ):
        yield
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()  # of an example that ended with an error
    if framejit.config.audit:
        assert not seen, [(event.place, event.difference) for event in seen]
