// The frame hook (PEP 523): while a thread has an active HookContext, its Python frames are looked at.
// In: frames. Out: a dispatch to a CompiledFunction, or the frame's own evaluation.
#pragma once
#include "dispatch.h"

namespace framejit {

int add_hook(PyObject* module);

}  // namespace framejit
