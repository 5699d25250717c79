// Audits: which calls of compiled objects are also run as plain Python, and how the two runs are made. What is compared
// is the business of the auditor, a Python callable. In: a call that is due. Out: the compiled call's result.
#include "audit.h"

#include <cmath>

namespace framejit {

int audits = 0;
static Auditor everywhere{};  // for threads without an auditor of their own

// How many calls further the next one is due: all calls have the same chance, and the program's random numbers stay
// what they are.
static long long next_gap(double rate) {
  static unsigned long long state = 0x9E3779B97F4A7C15ull;
  if (rate >= 1.0) return 1;
  state ^= state << 13;
  state ^= state >> 7;
  state ^= state << 17;
  double uniform = (static_cast<double>(state >> 11) + 1.0) / 9007199254740993.0;
  return 1 + static_cast<long long>(std::min(std::log(uniform) / std::log1p(-rate), 1e15));
}

static Auditor* current_auditor(ThreadState& thread) {
  if (thread.auditing || thread.dispatch_disabled) return nullptr;
  if (thread.auditor.function) return &thread.auditor;
  return everywhere.function ? &everywhere : nullptr;
}

bool audit_is_due() {
  Auditor* auditor = current_auditor(thread_state);
  if (!auditor || --auditor->countdown > 0) return false;
  auditor->countdown = next_gap(auditor->rate);
  return true;
}

// An exception that was raised, as one object; the thread has none afterwards.
static Ref take_error() {
  PyObject *type, *value, *traceback;
  PyErr_Fetch(&type, &value, &traceback);
  if (!type) return Ref();
  PyErr_NormalizeException(&type, &value, &traceback);
  if (traceback) PyException_SetTraceback(value, traceback);
  Py_DECREF(type);
  Py_XDECREF(traceback);
  return Ref::steal(value);
}

static Ref none_if_null(const Ref& object) { return Ref::borrow(object ? object.get() : Py_None); }

// The auditor's own Python code: its frames are nobody's business.
static Ref ask(PyObject* callable, PyObject* one, PyObject* two, PyObject* three, PyObject* four) {
  ContextScope none(thread_state, nullptr);
  return Ref::steal(PyObject_CallFunctionObjArgs(callable, one, two, three, four, nullptr));
}

static Ref run_plain(PyObject* call) {
  ThreadState& thread = thread_state;
  ContextScope none(thread, nullptr);
  bool disabled = std::exchange(thread.dispatch_disabled, true);
  Ref result = Ref::steal(PyObject_Call(PyTuple_GET_ITEM(call, 0), PyTuple_GET_ITEM(call, 1), PyTuple_GET_ITEM(call, 2)));
  thread.dispatch_disabled = disabled;
  return result;
}

static bool is_call(PyObject* object) {
  return PyTuple_Check(object) && PyTuple_GET_SIZE(object) == 3 && PyTuple_Check(PyTuple_GET_ITEM(object, 1)) &&
      PyDict_Check(PyTuple_GET_ITEM(object, 2));
}

// The auditor returns None (not this call), or a function `step(result, error, fell_back)` that is told what each run
// did, and returns the next plain call, or None when it has seen enough. It may raise: that is the call's outcome then.
PyObject* audited(PyObject* compiled, PyObject* function, PyObject* args, PyObject* kwargs, bool* fell_back,
                  PyObject* (*run)(void*, bool*), void* data) {
  ThreadState& thread = thread_state;
  Auditor* auditor = thread.auditor.function ? &thread.auditor : &everywhere;
  Ref begin = Ref::borrow(auditor->function);
  AuditingScope auditing(thread);
  Ref step = ask(begin.get(), compiled, function, args, kwargs);
  if (!step) return nullptr;
  if (step.get() == Py_None) {
    thread.auditing = false;  // calls inside this one are calls of their own
    return run(data, fell_back);
  }
  Ref result = Ref::steal(run(data, fell_back));
  Ref error = result ? Ref() : take_error();
  Ref seen_result = result, seen_error = error;
  for (;;) {
    Ref call = ask(step.get(), none_if_null(seen_result).get(), none_if_null(seen_error).get(),
                   *fell_back ? Py_True : Py_False, nullptr);
    if (!call) {
      *fell_back = false;
      return nullptr;
    }
    if (!is_call(call.get())) break;
    seen_result = run_plain(call.get());
    seen_error = seen_result ? Ref() : take_error();
  }
  if (error) {
    PyObject* type = Py_NewRef(reinterpret_cast<PyObject*>(Py_TYPE(error.get())));
    PyObject* traceback = PyException_GetTraceback(error.get());
    PyErr_Restore(type, error.release(), traceback);
  }
  return result.release();
}

// ---- Python -----------------------------------------------------------------------------------------------------

static PyObject* set_auditor(PyObject*, PyObject* args) {
  PyObject* function;
  double rate;
  int all_threads;
  if (!PyArg_ParseTuple(args, "Odp:set_auditor", &function, &rate, &all_threads)) return nullptr;
  if (function != Py_None && (!PyCallable_Check(function) || !(rate > 0.0 && rate <= 1.0))) {
    PyErr_SetString(PyExc_ValueError, "an auditor is a callable, with a rate above 0 and up to 1");
    return nullptr;
  }
  Auditor& auditor = all_threads ? everywhere : thread_state.auditor;
  PyObject* previous = auditor.function ? Py_BuildValue("Od", auditor.function, auditor.rate)
                                        : Py_BuildValue("Od", Py_None, 1.0);
  if (!previous) return nullptr;
  Ref old = Ref::steal(auditor.function);
  auditor.function = function == Py_None ? nullptr : Py_NewRef(function);
  audits += (auditor.function != nullptr) - static_cast<bool>(old);
  auditor.rate = rate;
  auditor.countdown = auditor.function ? next_gap(rate) : 0;
  return previous;
}

static PyMethodDef functions[] = {
    {"set_auditor", set_auditor, METH_VARARGS,
     "set_auditor(function, rate, all_threads): a share of the calls of compiled objects is shown to `function(compiled, "
     "function, args, kwargs)`; None: no longer. Returns the previous pair for this thread, or for all of them."},
    {nullptr, nullptr, 0, nullptr}};

int add_audit(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace framejit
