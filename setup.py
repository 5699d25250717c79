"""Builds the one extension module, `framejit.native._C`. Everything else is in pyproject.toml.

`-g0` because debug information of the torch headers makes the file twenty times larger. With
FRAMEJIT_SANITIZE=1 the module checks itself while it runs (`make test-sanitize`). A wheel is named
after the release of torch that it was built for: 0.1.0+torch2.13.
"""

import os
import re
import sys
from pathlib import Path

import torch
from setuptools import setup
from torch.utils.cpp_extension import BuildExtension, CppExtension

ROOM = "src/framejit/native"
FLAGS = ["-O2", "-g0", "-fvisibility=hidden", "-Wall"]
LINK = []
if os.environ.get("FRAMEJIT_SANITIZE"):
    # No vptr checks: they need type information that torch's libraries do not export.
    LINK = ["-fsanitize=address,undefined", "-fno-sanitize=vptr"]
    FLAGS = [*LINK, "-O1", "-g1", "-fno-omit-frame-pointer", "-fvisibility=hidden", "-Wall"]
HEADERS = [
    "audit",
    "cpython_compat",
    "dispatch",
    "global_state",
    "guard_checks",
    "guard_tree",
    "hook",
    "objects",
    "ref",
    "result_links",
    "shape_program",
]

VERSION = re.search(r'__version__ = "(.+)"', Path("src/framejit/version.py").read_text())[1]
BUILT_FOR = "+torch" + ".".join(torch.__version__.split(".")[:2])

setup(
    version=VERSION if "sdist" in sys.argv else VERSION + BUILT_FOR,
    ext_modules=[
        CppExtension(
            "framejit.native._C",
            sources=[
                f"{ROOM}/module.cpp",
                f"{ROOM}/global_state.cpp",
                f"{ROOM}/guard_checks.cpp",
                f"{ROOM}/gradient_hooks.cpp",
                f"{ROOM}/guard_tree.cpp",
                f"{ROOM}/guard_record.cpp",
                f"{ROOM}/guard_type.cpp",
                f"{ROOM}/guard_export.cpp",
                f"{ROOM}/shape_program.cpp",
                f"{ROOM}/dispatch.cpp",
                f"{ROOM}/tail_call.cpp",
                f"{ROOM}/binding.cpp",
                f"{ROOM}/hook.cpp",
                f"{ROOM}/objects.cpp",
                f"{ROOM}/audit.cpp",
                f"{ROOM}/result_links.cpp",
            ],
            depends=[f"{ROOM}/{name}.h" for name in [*HEADERS, "tensor_check"]],
            extra_compile_args=FLAGS,
            extra_link_args=LINK,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
