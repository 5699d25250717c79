"""Backends that need another package: what they are, whether they can run here, how to get them.

In: the names of backends. Out: rows for ``doctor``, and one line that says what to install. Some
bring their own entry point of the group ``torch_dynamo_backends``; they are known here so that
asking for one before its package is installed gives a useful message. Next: registry.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from typing import NamedTuple

from ..exc import UnknownBackend


class Optional(NamedTuple):
    """A backend that needs packages: ``modules`` must be importable, ``install`` says how."""

    modules: tuple[str, ...]
    install: str
    note: str
    #: The package's name where it is not that of the first module.
    distribution: str = ""


OPTIONAL = {
    "onnxrt": Optional(
        ("onnxruntime", "onnxscript"), "pip install framejit[onnxrt]", "ONNX Runtime on the CPU"
    ),
    "openvino": Optional(
        ("openvino",), "pip install framejit[openvino]", "OpenVINO, through its own entry point"
    ),
    "tensorrt": Optional(
        ("torch_tensorrt",), "pip install torch-tensorrt",
        "TensorRT on NVIDIA GPUs, through torch_tensorrt's own entry point",
    ),
    "tvm": Optional(("tvm",), "pip install framejit[tvm]", "Apache TVM on the CPU", "apache-tvm"),
}  # fmt: skip


class Availability(NamedTuple):
    """One row of ``doctor``: a backend, whether it can run here, its version or what to do."""

    name: str
    available: bool
    detail: str


def missing(name: str) -> str | None:
    """One line that says what to install for this backend; None if nothing is known to be."""
    known = OPTIONAL.get(name)
    if known is None:
        return None
    absent = [module for module in known.modules if importlib.util.find_spec(module) is None]
    if not absent:
        return None
    return f"the backend {name!r} needs {' and '.join(absent)}: {known.install}"


def require(name: str) -> None:
    """Raise UnknownBackend with that line if something is missing."""
    text = missing(name)
    if text is not None:
        raise UnknownBackend(text)


def optional_backends() -> list[Availability]:
    """Every backend that needs another package, in order of names."""
    rows = []
    for name, known in sorted(OPTIONAL.items()):
        text = missing(name)
        if text is None:
            distribution = known.distribution or known.modules[0].replace("_", "-")
            version = importlib.metadata.version(distribution)
            rows.append(Availability(name, True, f"{known.note}, {distribution} {version}"))
        else:
            rows.append(Availability(name, False, text))
    return rows
