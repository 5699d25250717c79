// TailCall and `tail`: what an entry returns when the rest of the work is another call.
// In: target and arguments. Out: run_tail_calls runs a whole chain in a loop, so neither the C stack nor the Python
// stack grows with its length.
#include "dispatch.h"

#include <algorithm>

namespace framejit {

PyTypeObject* tail_call_type = nullptr;

// Tail calls live for microseconds and are made on hot paths: keep some blocks. Guarded by the GIL.
static constexpr int kMaxFree = 32;
static TailCallObject* free_blocks[kMaxFree];
static int free_count = 0;
static constexpr Py_ssize_t kInline = static_cast<Py_ssize_t>(sizeof(TailCallObject::own) / sizeof(PyObject*)) - 1;

// Files of Python code that stands for C functions: its frames are left out of tracebacks.
static PyObject* unseen_files = nullptr;

PyObject* seen_by_users(PyObject* result) {
  if (result || !unseen_files) return result;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  while (trace && PyTraceBack_Check(trace)) {
    auto* top = reinterpret_cast<PyTracebackObject*>(trace);
    Ref code = Ref::steal(reinterpret_cast<PyObject*>(PyFrame_GetCode(top->tb_frame)));
    if (PySet_Contains(unseen_files, reinterpret_cast<PyCodeObject*>(code.get())->co_filename) != 1) break;
    PyObject* rest = Py_XNewRef(reinterpret_cast<PyObject*>(top->tb_next));
    Py_DECREF(trace);
    trace = rest;
  }
  // CPython 3.14 keeps what there is if it is given none.
  if (!trace && value && PyExceptionInstance_Check(value)) PyException_SetTraceback(value, Py_None);
  PyErr_Restore(type, value, trace);
  return nullptr;
}

static PyObject* set_unseen_files(PyObject*, PyObject* files) {
  if (!PyFrozenSet_CheckExact(files)) {
    PyErr_SetString(PyExc_TypeError, "set_unseen_files takes a frozenset");
    return nullptr;
  }
  Ref old = Ref::steal(std::exchange(unseen_files, Py_NewRef(files)));
  Py_RETURN_NONE;
}

static PyObject* tail_call_vectorcall(PyObject* self, PyObject* const*, size_t flagged_count, PyObject* names) {
  if (PyVectorcall_NARGS(flagged_count) || (names && PyTuple_GET_SIZE(names))) {
    PyErr_SetString(PyExc_TypeError, "a TailCall takes no arguments");
    return nullptr;
  }
  // Not counted against the limit of recursion: the Python frame that follows is, as everywhere.
  return run_tail_calls(Py_NewRef(self));
}

static PyObject* step_vectorcall(PyObject* self, PyObject* const*, size_t flagged_count, PyObject* names) {
  if (PyVectorcall_NARGS(flagged_count) || (names && PyTuple_GET_SIZE(names))) {
    PyErr_SetString(PyExc_TypeError, "a step takes no arguments");
    return nullptr;
  }
  Ref holder = Ref::borrow(self);
  auto* call = reinterpret_cast<TailCallObject*>(self);
  size_t count = static_cast<size_t>(call->count) | PY_VECTORCALL_ARGUMENTS_OFFSET;
  HandedScope handed(thread_state, call, call->target);
  return seen_by_users(PyObject_Vectorcall(call->target, call->args, count, nullptr));
}

void release_arguments(ThreadState& thread) {
  thread.handed_to = nullptr;
  TailCallObject* call = std::exchange(thread.handed, nullptr);
  Py_ssize_t count = std::exchange(call->count, 0);
  for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(call->args[i]);
}

static PyObject* make_tail_call(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 1 || !PyCallable_Check(args[0])) {
    PyErr_SetString(PyExc_TypeError, "tail(target, *args) needs a callable target");
    return nullptr;
  }
  TailCallObject* self;
  if (free_count > 0) {
    self = free_blocks[--free_count];
    (void)PyObject_Init(reinterpret_cast<PyObject*>(self), tail_call_type);
  } else {
    self = PyObject_GC_New(TailCallObject, tail_call_type);
    if (!self) return nullptr;
  }
  self->vectorcall = tail_call_vectorcall;
  self->target = Py_NewRef(args[0]);
  self->context = Py_XNewRef(thread_state.running);
  self->count = count - 1;
  if (self->count <= kInline) {
    self->args = self->own + 1;
  } else {
    auto* block = static_cast<PyObject**>(PyMem_Malloc(sizeof(PyObject*) * static_cast<size_t>(count)));
    if (!block) {
      self->count = 0;
      self->args = self->own + 1;
      Py_DECREF(self);
      return PyErr_NoMemory();
    }
    self->args = block + 1;
  }
  for (Py_ssize_t i = 0; i < self->count; i++) self->args[i] = Py_NewRef(args[i + 1]);
  PyObject_GC_Track(self);
  return reinterpret_cast<PyObject*>(self);
}

static PyObject* make_step(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  PyObject* made = make_tail_call(module, args, count);
  if (made) reinterpret_cast<TailCallObject*>(made)->vectorcall = step_vectorcall;
  return made;
}

// call_handed([callable, *args], names): empties the list, so that only the function that is called holds them.
static PyObject* call_handed(PyObject* module, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyList_CheckExact(args[0]) || PyList_GET_SIZE(args[0]) < 1) {
    PyErr_SetString(PyExc_TypeError, "call_handed takes a list of a callable and its arguments, and a tuple of names");
    return nullptr;
  }
  auto* list = reinterpret_cast<PyListObject*>(args[0]);
  Ref method = Ref::borrow(list->ob_item[0]);
  if (!PyCallable_Check(method.get())) return PyObject_Vectorcall(method.get(), nullptr, 0, nullptr);
  if (PyMethod_Check(method.get())) {
    PyObject* function = Py_NewRef(PyMethod_GET_FUNCTION(method.get()));
    if (PyList_Insert(args[0], 1, PyMethod_GET_SELF(method.get())) < 0 || PyList_SetItem(args[0], 0, function) < 0) {
      return nullptr;
    }
  }
  method = Ref();
  Ref holder = Ref::steal(make_tail_call(module, list->ob_item, Py_SIZE(list)));
  if (!holder || PyList_SetSlice(args[0], 0, Py_SIZE(list), nullptr) < 0) return nullptr;
  auto* call = reinterpret_cast<TailCallObject*>(holder.get());
  PyObject* names = PyTuple_GET_SIZE(args[1]) ? args[1] : nullptr;
  size_t positional = static_cast<size_t>(call->count) - static_cast<size_t>(PyTuple_GET_SIZE(args[1]));
  HandedScope handed(thread_state, call, call->target);
  return PyObject_Vectorcall(call->target, call->args, positional | PY_VECTORCALL_ARGUMENTS_OFFSET, names);
}

static int tail_call_traverse(TailCallObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->target);
  Py_VISIT(self->context);
  for (Py_ssize_t i = 0; i < self->count; i++) Py_VISIT(self->args[i]);
  return 0;
}

static void tail_call_dealloc(TailCallObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  if (PyObject_GC_IsTracked(reinterpret_cast<PyObject*>(self))) PyObject_GC_UnTrack(self);
  Py_TRASHCAN_BEGIN(self, tail_call_dealloc)
  Py_ssize_t variables = self->count;
  if (self->target && is_compiled(self->target)) {
    variables = std::clamp<Py_ssize_t>(reinterpret_cast<CompiledObject*>(self->target)->variables, 0, variables);
  }
  Py_XDECREF(self->target);
  Py_XDECREF(self->context);
  for (Py_ssize_t i = variables; i < self->count; i++) Py_DECREF(self->args[i]);
  for (Py_ssize_t i = 0; i < variables; i++) Py_DECREF(self->args[ends_at(i, variables)]);
  if (self->args != self->own + 1) PyMem_Free(self->args - 1);
  if (free_count < kMaxFree) {
    free_blocks[free_count++] = self;
  } else {
    PyObject_GC_Del(self);
  }
  Py_DECREF(type);
  Py_TRASHCAN_END
}

PyObject* run_tail_calls(PyObject* result) {
  ThreadState& thread = thread_state;
  while (result && Py_IS_TYPE(result, tail_call_type)) {
    Ref holder = Ref::steal(result);  // keeps target and arguments alive during the call
    auto* call = reinterpret_cast<TailCallObject*>(result);
    size_t count = static_cast<size_t>(call->count) | PY_VECTORCALL_ARGUMENTS_OFFSET;
    if (is_compiled(call->target)) {
      result = call_compiled_once(reinterpret_cast<CompiledObject*>(call->target), call->args, count, nullptr, call);
      continue;
    }
    // A break function: its own frame runs as it is, the frames below it are looked at.
    PyObject* context = call->context ? call->context : thread.context;
    ContextScope active(thread, context);
    RunningScope running(thread, call->context);
    SkipScope skip(thread, call->target);
    HandedScope handed(thread, call, call->target);
    result = PyObject_Vectorcall(call->target, call->args, count, nullptr);
  }
  return seen_by_users(result);
}

static PyMemberDef tail_call_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(TailCallObject, vectorcall), READONLY, nullptr},
    {"target", T_OBJECT, offsetof(TailCallObject, target), READONLY, "What is called."},
    {"context", T_OBJECT, offsetof(TailCallObject, context), READONLY, "The hook context of a break function."},
    {nullptr, 0, 0, 0, nullptr}};

static PyObject* tail_call_args(TailCallObject* self, void*) {
  PyObject* tuple = PyTuple_New(self->count);
  for (Py_ssize_t i = 0; tuple && i < self->count; i++) PyTuple_SET_ITEM(tuple, i, Py_NewRef(self->args[i]));
  return tuple;
}

static PyGetSetDef tail_call_properties[] = {
    {"args", reinterpret_cast<getter>(tail_call_args), nullptr, "The arguments, as a tuple.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

static PyMethodDef functions[] = {
    {"tail", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_tail_call)), METH_FASTCALL,
     "tail(target, *args) -> TailCall: what an entry returns to let its caller call target(*args)."},
    {"step", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(make_step)), METH_FASTCALL,
     "step(target, *args) -> TailCall: calling it calls target(*args) alone; lets go of the arguments in their order."},
    {"call_handed", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_handed)), METH_FASTCALL,
     "call_handed([callable, *args], names): calls it; empties the list, so that nobody else holds the arguments."},
    {"set_unseen_files", set_unseen_files, METH_O,
     "set_unseen_files(frozenset): frames of code in these files are left out of tracebacks."},
    {nullptr, nullptr, 0, nullptr}};

int add_tail_call(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A call to be made by whoever receives it. Calling it runs the whole chain.")},
      {Py_tp_dealloc, reinterpret_cast<void*>(tail_call_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(tail_call_traverse)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_members, tail_call_members},
      {Py_tp_getset, tail_call_properties},
      {0, nullptr}};
  static PyType_Spec spec = {"framejit.native._C.TailCall", sizeof(TailCallObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
                                 Py_TPFLAGS_DISALLOW_INSTANTIATION | Py_TPFLAGS_IMMUTABLETYPE,
                             slots};
  tail_call_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!tail_call_type || PyModule_AddFunctions(module, functions) < 0) return -1;
  return PyModule_AddObjectRef(module, "TailCall", reinterpret_cast<PyObject*>(tail_call_type));
}

}  // namespace framejit
