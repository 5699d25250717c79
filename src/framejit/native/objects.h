// See objects.cpp.
#pragma once
#include "ref.h"

namespace framejit {

int add_objects(PyObject* module);

}  // namespace framejit
