"""Bytecode: decoding to canonical instructions, stack analysis, continuations.

In: code objects of the running Python release. Out: `CodeInfo` for the interpreter, and resume and
break functions for graph breaks. The only room that knows one Python release from another. Next
room: interpreter.
"""

from framejit.bytecode.continuations import build_break, build_resume, resume_point
from framejit.bytecode.decode import OPCODES, decode
from framejit.bytecode.frame_point import FramePoint, successors, successors_of_call
from framejit.bytecode.model import CodeInfo, Handler, Instruction

__all__ = [
    "OPCODES",
    "CodeInfo",
    "FramePoint",
    "Handler",
    "Instruction",
    "build_break",
    "build_resume",
    "decode",
    "resume_point",
    "successors",
    "successors_of_call",
]
