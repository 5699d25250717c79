// See result_links.cpp.
#pragma once
#include "ref.h"

namespace framejit {

int add_result_links(PyObject* module);

}  // namespace framejit
