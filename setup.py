"""Builds the one extension module, `framejit.native._C`. Everything else is in pyproject.toml.

`-g0` because debug information of the torch headers makes the file twenty times larger. With
FRAMEJIT_SANITIZE=1 the module checks itself while it runs (`make test-sanitize`).
"""

import os

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
    "shape_program",
]

setup(
    ext_modules=[
        CppExtension(
            "framejit.native._C",
            sources=[
                f"{ROOM}/module.cpp",
                f"{ROOM}/global_state.cpp",
                f"{ROOM}/guard_checks.cpp",
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
            ],
            depends=[f"{ROOM}/{name}.h" for name in [*HEADERS, "tensor_check"]],
            extra_compile_args=FLAGS,
            extra_link_args=LINK,
        )
    ],
    cmdclass={"build_ext": BuildExtension},
)
