// Binds the arguments of a call to a Python function's parameters, as CPython does, without running the function.
// In: vectorcall arguments. Out: slots in the order of co_varnames (positional, keyword-only, *args, **kwargs), then
// the closure's cells. Arguments that do not fit are reported as such: the caller lets Python raise its own TypeError.
#include "dispatch.h"

#include <algorithm>

namespace framejit {

static void append_cells(PyFunctionObject* function, PyObject** end) {
  if (!function->func_closure) return;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(function->func_closure); i++) {
    end[i] = PyTuple_GET_ITEM(function->func_closure, i);
  }
}

// Index of the parameter called `name` in [first, end), or -1; -2 on an exception.
static Py_ssize_t find_parameter(PyCodeObject* code, PyObject* name, Py_ssize_t first, Py_ssize_t end) {
  for (Py_ssize_t i = first; i < end; i++) {
    if (code_local_name(code, i) == name) return i;
  }
  for (Py_ssize_t i = first; i < end; i++) {
    int same = PyObject_RichCompareBool(code_local_name(code, i), name, Py_EQ);
    if (same != 0) return same < 0 ? -2 : i;
  }
  return -1;
}

static int bind_keywords(PyCodeObject* code, PyObject** slots, PyObject* const* values, PyObject* names,
                         PyObject* extra) {
  Py_ssize_t named = code->co_argcount + code->co_kwonlyargcount;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(names); k++) {
    PyObject* name = PyTuple_GET_ITEM(names, k);
    Py_ssize_t index = PyUnicode_Check(name) ? find_parameter(code, name, code->co_posonlyargcount, named) : -1;
    if (index == -2) return -1;
    if (index >= 0) {
      if (slots[index]) return 0;  // given twice
      slots[index] = values[k];
    } else {
      if (!extra || !PyUnicode_Check(name)) return 0;
      if (PyDict_SetItem(extra, name, values[k]) < 0) return -1;
    }
  }
  return 1;
}

static int fill_defaults(PyFunctionObject* function, PyCodeObject* code, Binding* binding, PyObject** slots) {
  Py_ssize_t positional = code->co_argcount;
  PyObject* defaults = function->func_defaults;
  Py_ssize_t default_count = defaults ? PyTuple_GET_SIZE(defaults) : 0;
  for (Py_ssize_t i = 0; i < positional; i++) {
    if (slots[i]) continue;
    Py_ssize_t index = i - (positional - default_count);
    if (index < 0) return 0;
    binding->owned.push_back(Ref::borrow(PyTuple_GET_ITEM(defaults, index)));
    slots[i] = binding->owned.back().get();
  }
  for (Py_ssize_t i = positional; i < positional + code->co_kwonlyargcount; i++) {
    if (slots[i]) continue;
    if (!function->func_kwdefaults) return 0;
    PyObject* value = PyDict_GetItemWithError(function->func_kwdefaults, code_local_name(code, i));
    if (!value) return PyErr_Occurred() ? -1 : 0;
    binding->owned.push_back(Ref::borrow(value));
    slots[i] = value;
  }
  return 1;
}

int bind_arguments(PyFunctionObject* function, PyObject* const* args, Py_ssize_t count, PyObject* keyword_names,
                   Binding* binding) {
  auto* code = reinterpret_cast<PyCodeObject*>(function->func_code);
  Py_ssize_t cells = function->func_closure ? PyTuple_GET_SIZE(function->func_closure) : 0;
  Py_ssize_t keywords = keyword_names ? PyTuple_GET_SIZE(keyword_names) : 0;
  bool has_extra = code->co_flags & (CO_VARARGS | CO_VARKEYWORDS);
  if (count == code->co_argcount && keywords == 0 && code->co_kwonlyargcount == 0 && !has_extra) {
    binding->count = count + cells;
    if (cells == 0) {
      binding->slots = args;
      return 1;
    }
    PyObject** slots = binding->buffer.reserve(count + cells);
    std::copy(args, args + count, slots);
    append_cells(function, slots + count);
    binding->slots = slots;
    return 1;
  }

  Py_ssize_t named = code->co_argcount + code->co_kwonlyargcount;
  bool has_args = code->co_flags & CO_VARARGS, has_kwargs = code->co_flags & CO_VARKEYWORDS;
  Py_ssize_t own = named + has_args + has_kwargs;
  if (count > code->co_argcount && !has_args) return 0;
  PyObject** slots = binding->buffer.reserve(own + cells);
  Py_ssize_t given = std::min<Py_ssize_t>(count, code->co_argcount);
  std::fill(slots, slots + own, nullptr);
  std::copy(args, args + given, slots);
  if (has_args) {
    Ref rest = Ref::steal(PyTuple_New(count - given));
    if (!rest) return -1;
    for (Py_ssize_t i = given; i < count; i++) PyTuple_SET_ITEM(rest.get(), i - given, Py_NewRef(args[i]));
    slots[named] = rest.get();
    binding->owned.push_back(std::move(rest));
  }
  PyObject* extra = nullptr;
  if (has_kwargs) {
    Ref dict = Ref::steal(PyDict_New());
    if (!dict) return -1;
    extra = slots[named + has_args] = dict.get();
    binding->owned.push_back(std::move(dict));
  }
  if (keywords) {
    int bound = bind_keywords(code, slots, args + count, keyword_names, extra);
    if (bound != 1) return bound;
  }
  int filled = fill_defaults(function, code, binding, slots);
  if (filled != 1) return filled;
  append_cells(function, slots + own);
  binding->slots = slots;
  binding->count = own + cells;
  return 1;
}

}  // namespace framejit
