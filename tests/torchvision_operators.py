"""The operators of torchvision, declared: then transformers and timm can be imported.

Without torchvision's C++ part, where it does not fit this torch, not even its Python modules can be
imported. No test runs these operators. Imported by conftest, and by scripts that use such models.
"""

import importlib.util
from pathlib import Path

import torch

_ROIS = "Tensor input, Tensor rois, float spatial_scale"
_GRAD = "Tensor grad, Tensor rois"
_SIZES = "SymInt pooled_height, SymInt pooled_width"
_BATCH = "SymInt batch_size, SymInt channels, SymInt height, SymInt width"
_CONV = "Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias"
_STEPS = (
    "SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, "
    "SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask"
)
_SCHEMAS = (
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


def _declared():
    """The library of the declarations; None where torchvision's own part is there, or nothing."""
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
    for schema in _SCHEMAS:
        library.define(schema)
    return library


#: The declarations, while this exists.
library = _declared()
