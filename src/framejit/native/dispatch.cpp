// See dispatch.h. CompiledFunction and Entry: look-up of an entry, the way of a miss, and the Python types.
#include "audit.h"

#include <algorithm>

namespace framejit {

PyTypeObject* compiled_type = nullptr;
static PyTypeObject* entry_type = nullptr;
thread_local ThreadState thread_state{};

// ---- dispatch ---------------------------------------------------------------------------------------------------

// The arguments of an entry's function: slots, then captured values (owned).
struct EntryCall {
  ArgumentBuffer buffer;
  PyObject** args = nullptr;
  Py_ssize_t slot_count = 0, capture_count = 0;
};

static bool guards_hold(EntryObject* entry, PyObject* const* slots, Py_ssize_t count, EntryCall* call) {
  GuardTree& tree = *reinterpret_cast<GuardTreeObject*>(entry->tree)->tree;
  if (tree.capture_count < 0) return false;
  int captures = tree.capture_count;
  call->args = call->buffer.reserve(count + captures);
  call->slot_count = count;
  call->capture_count = captures;
  return tree.evaluate(slots, count, call->args + count);
}

// Calls with a tuple of the graph's inputs as the last argument.
static PyObject* call_with_tuple(PyObject* function, const InputTuple& layout, PyObject* const* slots,
                                 const EntryCall& call) {
  PyObject** captures = call.args + call.slot_count;
  PyObject* tuple = nullptr;
  if (call.slot_count < layout.slots_needed) {
    PyErr_SetString(PyExc_TypeError, "the layout of this entry names a slot that there is not");
  } else {
    tuple = PyTuple_New(static_cast<Py_ssize_t>(layout.inputs.size()));
  }
  if (tuple == nullptr) {
    for (Py_ssize_t i = 0; i < call.capture_count; i++) Py_DECREF(captures[i]);
    return nullptr;
  }
  PyObject** item = &PyTuple_GET_ITEM(tuple, 0);
  for (const InputTuple::Input& input : layout.inputs) {
    PyObject* value = input.position >= 0 ? captures[input.position] : slots[-1 - input.position];
    if (!input.moved) Py_INCREF(value);
    *item++ = value;
  }
  ArgumentBuffer buffer;
  PyObject** args = buffer.reserve(call.slot_count + static_cast<Py_ssize_t>(layout.shown.size()) + 1);
  PyObject** end = std::copy(slots, slots + call.slot_count, args);
  for (uint32_t k : layout.shown) *end++ = captures[k];
  *end++ = tuple;
  size_t count = static_cast<size_t>(end - args) | PY_VECTORCALL_ARGUMENTS_OFFSET;
  PyObject* result = PyObject_Vectorcall(function, args, count, nullptr);
  Py_DECREF(tuple);
  for (uint32_t k : layout.kept) Py_DECREF(captures[k]);
  return result;
}

static PyObject* call_with_captures(PyObject* function, PyObject* const* slots, const EntryCall& call) {
  std::copy(slots, slots + call.slot_count, call.args);
  size_t count = static_cast<size_t>(call.slot_count + call.capture_count) | PY_VECTORCALL_ARGUMENTS_OFFSET;
  PyObject* result = PyObject_Vectorcall(function, call.args, count, nullptr);
  for (Py_ssize_t i = 0; i < call.capture_count; i++) Py_DECREF(call.args[call.slot_count + i]);
  return result;
}

static PyObject* run_entry(CompiledObject* self, EntryObject* entry, PyObject* const* slots, EntryCall* call) {
  ThreadState& thread = thread_state;
  entry->hits++;
  Ref function = Ref::borrow(entry->function);
  RunningScope running(thread, self->context);
  ContextScope none(thread, nullptr);
  if (entry->inputs) return call_with_tuple(function.get(), *entry->inputs, slots, *call);
  return call_with_captures(function.get(), slots, *call);
}

// The trace function of a debugger (or of coverage) rests while a miss is handled: nobody wants to step through that.
class TracingRests {
 public:
  TracingRests() : thread_(PyThreadState_Get()), function_(thread_->c_tracefunc), outer_(resting_tracer) {
    if (!function_) return;
    tracer_ = Ref::borrow(thread_->c_traceobj);
    resting_tracer = tracer_.get();
    PyEval_SetTrace(nullptr, nullptr);
  }
  ~TracingRests() {
    if (!function_) return;
    resting_tracer = outer_;
    PyObject *type, *value, *traceback;
    PyErr_Fetch(&type, &value, &traceback);
    PyEval_SetTrace(function_, tracer_.get());
    PyErr_Restore(type, value, traceback);
  }
  TracingRests(const TracingRests&) = delete;
  TracingRests& operator=(const TracingRests&) = delete;

  static thread_local PyObject* resting_tracer;

 private:
  PyThreadState* thread_;
  Py_tracefunc function_;
  PyObject* outer_;
  Ref tracer_;
};

thread_local PyObject* TracingRests::resting_tracer = nullptr;

// Asks `miss` for an entry, or for a function that runs in its place. NULL without an exception: none. An exception
// that it returns is raised here, so that no frame of `miss` is in its traceback.
static Ref ask_for_entry(CompiledObject* self, PyObject* const* slots, Py_ssize_t count) {
  Ref tuple = Ref::steal(PyTuple_New(count));
  if (!tuple) return Ref();
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(slots[i]));
  ContextScope none(thread_state, nullptr);
  AuditingScope own_calls(thread_state);
  TracingRests rests;
  Ref miss = Ref::borrow(self->miss);
  PyObject* args[] = {nullptr, reinterpret_cast<PyObject*>(self), tuple.get()};
  Ref entry = Ref::steal(PyObject_Vectorcall(miss.get(), args + 1, 2 | PY_VECTORCALL_ARGUMENTS_OFFSET, nullptr));
  if (!entry || entry.get() == Py_None) return Ref();
  if (PyExceptionInstance_Check(entry.get())) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(entry.get())), entry.get());
    return Ref();
  }
  if (!Py_IS_TYPE(entry.get(), entry_type) && !PyFunction_Check(entry.get())) {
    PyErr_Format(PyExc_TypeError, "miss must return an Entry, a function, an exception or None, not %R", entry.get());
    return Ref();
  }
  return entry;
}

// Calls what the compiled object represents, as plain Python, with frames below it being looked at.
static PyObject* call_original(CompiledObject* self, PyObject* callable, PyObject* const* args, size_t flagged_count,
                               PyObject* names) {
  ThreadState& thread = thread_state;
  Ref keep = Ref::borrow(callable);
  if (thread.dispatch_disabled) {
    ContextScope same(thread, thread.context);  // the rest of a `with disable()` block may set another one
    return PyObject_Vectorcall(callable, args, flagged_count, names);
  }
  ContextScope active(thread, self->context ? self->context : thread.context);
  RunningScope running(thread, self->context);
  SkipScope skip(thread, callable);
  return PyObject_Vectorcall(callable, args, flagged_count, names);
}

// Runs the entry that fits. *fallback: there is none (result NULL without an exception).
static PyObject* dispatch(CompiledObject* self, PyObject* const* slots, Py_ssize_t count, bool* fallback) {
  *fallback = false;
  EntryCall call;
  Ref entries = Ref::borrow(self->entries);  // Python code in guards may replace them
  Py_ssize_t entry_count = entries ? PyTuple_GET_SIZE(entries.get()) : 0;
  Py_ssize_t last = self->last < entry_count ? self->last : 0;
  for (Py_ssize_t k = -1; k < entry_count && entry_count > 0; k++) {
    if (k == last) continue;  // tried first
    Py_ssize_t index = k < 0 ? last : k;
    auto* entry = reinterpret_cast<EntryObject*>(PyTuple_GET_ITEM(entries.get(), index));
    if (guards_hold(entry, slots, count, &call)) {
      self->last = index;
      return run_entry(self, entry, slots, &call);
    }
  }
  int run_only = thread_state.run_only;
  bool ask = self->ask_always || run_only == 2 || (!self->run_only && !run_only);
  if (ask && self->miss && self->miss != Py_None) {
    Ref entry = ask_for_entry(self, slots, count);
    if (!entry && PyErr_Occurred()) return nullptr;
    if (entry && PyFunction_Check(entry.get())) {
      return call_original(self, entry.get(), slots, static_cast<size_t>(count), nullptr);
    }
    auto* found = reinterpret_cast<EntryObject*>(entry.get());
    if (found && guards_hold(found, slots, count, &call)) return run_entry(self, found, slots, &call);
  }
  *fallback = true;
  return nullptr;
}

static PyObject* call_raw_fallback(CompiledObject* self, PyObject* const* args, size_t flagged_count,
                                   TailCallObject* tail_call) {
  if (self->fallback && self->fallback != Py_None) {
    HandedScope handed(thread_state, tail_call, self->fallback);
    return call_original(self, self->fallback, args, flagged_count, nullptr);
  }
  PyErr_SetString(PyExc_RuntimeError, "no entry of this compiled function fits, and it has no fallback");
  return nullptr;
}

static void replace(PyObject** field, PyObject* value) {
  PyObject* old = *field;
  *field = Py_XNewRef(value);
  Py_XDECREF(old);
}

// `function.__code__` was assigned: what was compiled for the old code is of no use.
static int forget_old_code(CompiledObject* self) {
  Ref none = Ref::steal(PyTuple_New(0));
  if (!none) return -1;
  replace(&self->entries, none.get());
  self->last = 0;
  replace(&self->code, PyFunction_GET_CODE(self->function));
  return 0;
}

// The compiled object represents the `__call__` of an object's class, which can be replaced. 1: that is no Python
// function any more.
static int follow_call(CompiledObject* self, PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type == self->call_type && self->call_version && type_version(type) == self->call_version) return 0;
  static PyObject* name = PyUnicode_InternFromString("__call__");
  if (!name) return -1;
  PyObject* found = _PyType_Lookup(type, name);
  if (found != self->function) {
    if (!found || !PyFunction_Check(found)) return 1;
    replace(&self->function, found);
    if (forget_old_code(self) < 0) return -1;
  }
  self->call_type = type;
  self->call_version = type_version(type);
  return 0;
}

PyObject* call_compiled_once(CompiledObject* self, PyObject* const* args, size_t flagged_count, PyObject* names,
                             TailCallObject* tail_call) {
  Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
  bool fallback;
  if (!self->function) {
    if (count != self->slot_count || (names && PyTuple_GET_SIZE(names))) {
      return PyErr_Format(PyExc_TypeError, "this compiled function takes exactly %zd positional arguments",
                          self->slot_count);
    }
    if (thread_state.dispatch_disabled) return call_raw_fallback(self, args, flagged_count, tail_call);
    PyObject* result = dispatch(self, args, count, &fallback);
    return fallback ? call_raw_fallback(self, args, flagged_count, tail_call) : result;
  }
  if (thread_state.dispatch_disabled) return call_original(self, self->function, args, flagged_count, names);
  if (self->stands_for_call && count) {
    int followed = follow_call(self, args[0]);
    if (followed < 0) return nullptr;
    if (followed) return call_original(self, args[0], args + 1, static_cast<size_t>(count - 1), names);
  }
  if (PyFunction_GET_CODE(self->function) != self->code && forget_old_code(self) < 0) return nullptr;
  {
    Binding binding;
    int bound = bind_arguments(reinterpret_cast<PyFunctionObject*>(self->function), args, count, names, &binding);
    if (bound < 0) return nullptr;
    if (bound == 1) {
      PyObject* result = dispatch(self, binding.slots, binding.count, &fallback);
      if (!fallback) return result;
    }
  }
  return call_original(self, self->function, args, flagged_count, names);
}

// Neither this nor a call counts against the limit of recursion: the Python frame that follows does, so a compiled
// function may recurse as deep as its original.
PyObject* dispatch_frame(CompiledObject* compiled, PyObject* const* slots, Py_ssize_t count, bool* fallback,
                         const FrameArguments* owned) {
  *fallback = false;
  PyObject* result = dispatch(compiled, slots, count, fallback);
  if (!result || !Py_IS_TYPE(result, tail_call_type)) return seen_by_users(result);
  if (owned) owned->clear(*owned);
  return run_tail_calls(result);
}

// The arguments of a call as the auditor gets them.
struct AuditedCall {
  CompiledObject* compiled;
  PyObject* const* args;
  size_t flagged_count;
  PyObject* names;

  static PyObject* run(void* data, bool*) {
    auto* call = static_cast<AuditedCall*>(data);
    return run_tail_calls(call_compiled_once(call->compiled, call->args, call->flagged_count, call->names));
  }
};

static PyObject* call_audited(CompiledObject* self, PyObject* const* args, size_t flagged_count, PyObject* names) {
  Py_ssize_t count = PyVectorcall_NARGS(flagged_count);
  Ref positional = Ref::steal(PyTuple_New(count));
  Ref named = Ref::steal(PyDict_New());
  if (!positional || !named) return nullptr;
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(positional.get(), i, Py_NewRef(args[i]));
  for (Py_ssize_t i = 0; names && i < PyTuple_GET_SIZE(names); i++) {
    if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(names, i), args[count + i]) < 0) return nullptr;
  }
  AuditedCall call{self, args, flagged_count, names};
  Ref function = Ref::borrow(self->function);
  bool fell_back = false;
  return audited(reinterpret_cast<PyObject*>(self), function.get(), positional.get(), named.get(), &fell_back,
                 AuditedCall::run, &call);
}

bool stack_is_used_up() {
  if (stack_left() != StackLeft::nearly_none) return false;
  PyErr_SetString(PyExc_RecursionError, "maximum recursion depth exceeded: the thread's C stack is used up");
  return true;
}

static PyObject* compiled_vectorcall(PyObject* object, PyObject* const* args, size_t flagged_count, PyObject* names) {
  if (stack_is_used_up()) return nullptr;
  NestedEvaluation nested(PyThreadState_GET());
  if (audits) {
    auto* self = reinterpret_cast<CompiledObject*>(object);
    if (self->function && audit_is_due()) return call_audited(self, args, flagged_count, names);
  }
  PyObject* result = call_compiled_once(reinterpret_cast<CompiledObject*>(object), args, flagged_count, names);
  return result && !Py_IS_TYPE(result, tail_call_type) ? result : run_tail_calls(result);
}

// ---- Entry ------------------------------------------------------------------------------------------------------

// Reads ((captured values that are arguments), (positions of the graph's inputs)); null with an exception.
static std::unique_ptr<InputTuple> parse_layout(PyObject* spec, int capture_count) {
  PyObject *shown, *inputs;
  if (!PyTuple_Check(spec) ||
      !PyArg_ParseTuple(spec, "O!O!:layout", &PyTuple_Type, &shown, &PyTuple_Type, &inputs)) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "layout must be a pair of tuples");
    return nullptr;
  }
  auto layout = std::make_unique<InputTuple>();
  std::vector<int> uses(static_cast<size_t>(capture_count));
  auto number = [&](PyObject* item, bool slots_too, long* position) {
    *position = PyLong_AsLong(item);
    if (*position == -1 && PyErr_Occurred()) return false;
    if (*position < capture_count && *position >= (slots_too ? -4096 : 0)) return true;
    PyErr_Format(PyExc_ValueError, "%ld is no position of a captured value or slot", *position);
    return false;
  };
  long position;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(shown); i++) {
    if (!number(PyTuple_GET_ITEM(shown, i), false, &position)) return nullptr;
    uses[static_cast<size_t>(position)] = 2;  // the function's argument borrows it
    layout->shown.push_back(static_cast<uint32_t>(position));
  }
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(inputs); i++) {
    if (!number(PyTuple_GET_ITEM(inputs, i), true, &position)) return nullptr;
    if (position < 0) layout->slots_needed = std::max<Py_ssize_t>(layout->slots_needed, -position);
    else uses[static_cast<size_t>(position)]++;
    layout->inputs.push_back({static_cast<int32_t>(position), false});
  }
  for (auto& input : layout->inputs) input.moved = input.position >= 0 && uses[static_cast<size_t>(input.position)] == 1;
  for (size_t k = 0; k < uses.size(); k++) {
    if (uses[k] != 1) layout->kept.push_back(static_cast<uint32_t>(k));
  }
  return layout;
}

static PyObject* entry_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *tree, *function, *layout = Py_None;
  static const char* names[] = {"tree", "function", "layout", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O|O:Entry", const_cast<char**>(names), guard_tree_type, &tree,
                                   &function, &layout)) {
    return nullptr;
  }
  if (!PyCallable_Check(function)) return PyErr_Format(PyExc_TypeError, "%R is not callable", function);
  std::unique_ptr<InputTuple> inputs;
  if (layout != Py_None) {
    inputs = parse_layout(layout, std::max(reinterpret_cast<GuardTreeObject*>(tree)->tree->capture_count, 0));
    if (!inputs) return nullptr;
  }
  auto* self = reinterpret_cast<EntryObject*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->tree = Py_NewRef(tree);
  self->function = Py_NewRef(function);
  self->layout = Py_NewRef(layout);
  self->inputs = inputs.release();
  return reinterpret_cast<PyObject*>(self);
}

static int entry_traverse(EntryObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->tree);
  Py_VISIT(self->function);
  return 0;
}

// No tp_clear: tree and function stay valid as long as the entry can be reached; cycles are broken by the compiled
// object, the tree or the function.
static void entry_dealloc(EntryObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  Py_XDECREF(self->tree);
  Py_XDECREF(self->function);
  Py_XDECREF(self->layout);
  delete self->inputs;
  type->tp_free(self);
  Py_DECREF(type);
}

static PyMemberDef entry_members[] = {
    {"tree", T_OBJECT, offsetof(EntryObject, tree), READONLY, "The GuardTree."},
    {"function", T_OBJECT, offsetof(EntryObject, function), READONLY, "Called with the slots and the captured values."},
    {"layout", T_OBJECT, offsetof(EntryObject, layout), READONLY,
     "None, or (captured values that are arguments, positions of what comes in a tuple behind them): the position of a "
     "captured value is its number, that of slot k is -1 - k."},
    {"hits", T_ULONGLONG, offsetof(EntryObject, hits), 0, "How often the entry was run."},
    {nullptr, 0, 0, 0, nullptr}};

// ---- CompiledFunction -------------------------------------------------------------------------------------------

static PyObject* compiled_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* self = reinterpret_cast<CompiledObject*>(type->tp_alloc(type, 0));
  if (!self) return nullptr;
  self->vectorcall = compiled_vectorcall;
  // Python subclasses do not inherit vectorcall in 3.11; one that does not define __call__ may use it as well.
  if (type->tp_call == PyVectorcall_Call) type->tp_flags |= Py_TPFLAGS_HAVE_VECTORCALL;
  self->entries = PyTuple_New(0);
  if (!self->entries) Py_CLEAR(self);
  return reinterpret_cast<PyObject*>(self);
}

static bool require_context(PyObject* context) {
  if (context == Py_None || PyObject_TypeCheck(context, hook_context_type)) return true;
  PyErr_Format(PyExc_TypeError, "context must be a HookContext or None, not %R", context);
  return false;
}

static int compiled_init(CompiledObject* self, PyObject* args, PyObject* kwargs) {
  PyObject *function, *miss, *slot_count = Py_None, *context = Py_None;
  static const char* names[] = {"function", "miss", "nslots", "context", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "OO|OO:CompiledFunction", const_cast<char**>(names), &function, &miss,
                                   &slot_count, &context)) {
    return -1;
  }
  if (!require_context(context)) return -1;
  if (miss != Py_None && !PyCallable_Check(miss)) {
    PyErr_SetString(PyExc_TypeError, "miss must be callable or None");
    return -1;
  }
  if (function == Py_None) {
    Py_ssize_t count = slot_count == Py_None ? -1 : PyLong_AsSsize_t(slot_count);
    if (count < 0) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "without a function, nslots must be given");
      return -1;
    }
    self->slot_count = self->variables = count;
    function = nullptr;
  } else if (!PyFunction_Check(function)) {
    PyErr_Format(PyExc_TypeError, "function must be a Python function or None, not %R", function);
    return -1;
  }
  if (self->function && self->function != function) {
    PyErr_SetString(PyExc_TypeError, "the function of a compiled function cannot be replaced");
    return -1;
  }
  replace(&self->function, function);
  replace(&self->code, function ? PyFunction_GET_CODE(function) : nullptr);
  replace(&self->miss, miss);
  replace(&self->context, context == Py_None ? nullptr : context);
  return 0;
}

static int compiled_traverse(CompiledObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->function);
  Py_VISIT(self->code);
  Py_VISIT(self->miss);
  Py_VISIT(self->fallback);
  Py_VISIT(self->context);
  Py_VISIT(self->entries);
  Py_VISIT(self->dict);
  return 0;
}

static int compiled_clear(CompiledObject* self) {
  Py_CLEAR(self->function);
  Py_CLEAR(self->code);
  Py_CLEAR(self->miss);
  Py_CLEAR(self->fallback);
  Py_CLEAR(self->context);
  Py_CLEAR(self->entries);
  Py_CLEAR(self->dict);
  return 0;
}

static void compiled_dealloc(CompiledObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (self->weak_references) PyObject_ClearWeakRefs(reinterpret_cast<PyObject*>(self));
  compiled_clear(self);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject* compiled_get(PyObject* self, PyObject* instance, PyObject*) {
  if (instance == nullptr || instance == Py_None) return Py_NewRef(self);
  return PyMethod_New(self, instance);
}

static PyObject* compiled_add_entry(CompiledObject* self, PyObject* entry) {
  if (!Py_IS_TYPE(entry, entry_type)) return PyErr_Format(PyExc_TypeError, "%R is not an Entry", entry);
  Ref one = Ref::steal(PyTuple_Pack(1, entry));
  Ref all = Ref::steal(one ? PySequence_Concat(self->entries, one.get()) : nullptr);
  if (!all) return nullptr;
  replace(&self->entries, all.get());
  self->last = PyTuple_GET_SIZE(all.get()) - 1;  // it was made for the call at hand
  Py_RETURN_NONE;
}

static PyObject* compiled_clear_entries(CompiledObject* self, PyObject*) {
  Ref none = Ref::steal(PyTuple_New(0));
  if (!none) return nullptr;
  replace(&self->entries, none.get());
  self->last = 0;
  Py_RETURN_NONE;
}

static PyObject* compiled_entries(CompiledObject* self, void*) { return PySequence_List(self->entries); }

static PyObject* none_if_null(PyObject* object) { return Py_NewRef(object ? object : Py_None); }
static PyObject* compiled_function(CompiledObject* self, void*) { return none_if_null(self->function); }
static PyObject* compiled_context(CompiledObject* self, void*) { return none_if_null(self->context); }
static PyObject* compiled_fallback(CompiledObject* self, void*) { return none_if_null(self->fallback); }
static PyObject* compiled_miss(CompiledObject* self, void*) { return none_if_null(self->miss); }

static int compiled_set_context(CompiledObject* self, PyObject* value, void*) {
  if (!value) value = Py_None;
  if (!require_context(value)) return -1;
  replace(&self->context, value == Py_None ? nullptr : value);
  return 0;
}

static int set_callable(PyObject** field, PyObject* value) {
  if (value && value != Py_None && !PyCallable_Check(value)) {
    PyErr_Format(PyExc_TypeError, "%R is not callable", value);
    return -1;
  }
  replace(field, value);
  return 0;
}
static int compiled_set_fallback(CompiledObject* self, PyObject* value, void*) {
  return set_callable(&self->fallback, value);
}
static int compiled_set_miss(CompiledObject* self, PyObject* value, void*) { return set_callable(&self->miss, value); }

static PyMethodDef compiled_methods[] = {
    {"add_entry", reinterpret_cast<PyCFunction>(compiled_add_entry), METH_O, "Adds an Entry behind the others."},
    {"clear_entries", reinterpret_cast<PyCFunction>(compiled_clear_entries), METH_NOARGS, "Forgets all entries."},
    {nullptr, nullptr, 0, nullptr}};

static PyMemberDef compiled_members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(CompiledObject, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(CompiledObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(CompiledObject, weak_references), READONLY, nullptr},
    {"variables", T_PYSSIZET, offsetof(CompiledObject, variables), 0,
     "How many of the slots are variables; those that follow were on the stack, and are let go of first."},
    {"run_only", T_BOOL, offsetof(CompiledObject, run_only), 0, "On a miss do not call `miss`."},
    {"stands_for_call", T_BOOL, offsetof(CompiledObject, stands_for_call), 0,
     "The function was looked up as the `__call__` of its first argument's class, which may change."},
    {"ask_always", T_BOOL, offsetof(CompiledObject, ask_always), 0, "Call `miss` even where nothing new is compiled."},
    {nullptr, 0, 0, 0, nullptr}};

static PyGetSetDef compiled_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {"entries", reinterpret_cast<getter>(compiled_entries), nullptr, "A list of the entries.", nullptr},
    {"function", reinterpret_cast<getter>(compiled_function), nullptr, "The Python function, or None.", nullptr},
    {"context", reinterpret_cast<getter>(compiled_context), reinterpret_cast<setter>(compiled_set_context),
     "The HookContext that is active while original code runs.", nullptr},
    {"fallback", reinterpret_cast<getter>(compiled_fallback), reinterpret_cast<setter>(compiled_set_fallback),
     "Without a function: called with the slots when no entry fits.", nullptr},
    {"miss", reinterpret_cast<getter>(compiled_miss), reinterpret_cast<setter>(compiled_set_miss),
     "miss(compiled, slots) -> Entry | function | exception | None, called when no entry fits.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

// ---- module functions -------------------------------------------------------------------------------------------

static PyObject* set_run_only(PyObject*, PyObject* value) {
  long level = PyLong_AsLong(value);
  if (level == -1 && PyErr_Occurred()) return nullptr;
  if (level < 0 || level > 2) return PyErr_Format(PyExc_ValueError, "the level must be 0, 1 or 2, not %R", value);
  return PyLong_FromLong(std::exchange(thread_state.run_only, static_cast<int>(level)));
}

static PyObject* set_dispatch_enabled(PyObject*, PyObject* value) {
  int flag = PyObject_IsTrue(value);
  if (flag < 0) return nullptr;
  return PyBool_FromLong(!std::exchange(thread_state.dispatch_disabled, flag == 0));
}

static PyObject* is_run_only(PyObject*, PyObject*) { return PyLong_FromLong(thread_state.run_only); }

static PyObject* resting_tracer(PyObject*, PyObject*) {
  PyObject* tracer = TracingRests::resting_tracer;
  return Py_NewRef(tracer ? tracer : Py_None);
}

static PyMethodDef functions[] = {
    {"resting_tracer", resting_tracer, METH_NOARGS,
     "The trace function (of sys.settrace) that waits for the end of the miss that is being handled, or None."},
    {"is_run_only", is_run_only, METH_NOARGS, "Thread-local: what `set_run_only` set."},
    {"set_run_only", set_run_only, METH_O, "Thread-local: with 1, misses capture nothing; with 2, they are asked, to raise. Returns the previous setting."},
    {"set_dispatch_enabled", set_dispatch_enabled, METH_O,
     "Thread-local: False makes compiled functions behave as their originals. Returns the previous setting."},
    {nullptr, nullptr, 0, nullptr}};

int add_dispatch(PyObject* module) {
  static PyType_Slot entry_slots[] = {
      {Py_tp_doc, const_cast<char*>("Entry(tree, function, layout=None): guards, and what to run when they hold.")},
      {Py_tp_new, reinterpret_cast<void*>(entry_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(entry_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(entry_traverse)},
      {Py_tp_members, entry_members},
      {0, nullptr}};
  static PyType_Spec entry_spec = {"framejit.native._C.Entry", sizeof(EntryObject), 0,
                                   Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, entry_slots};
  static PyType_Slot compiled_slots[] = {
      {Py_tp_doc, const_cast<char*>("CompiledFunction(function, miss, nslots=None, context=None): a callable that runs "
                                    "the entry whose guards hold.")},
      {Py_tp_new, reinterpret_cast<void*>(compiled_new)},
      {Py_tp_init, reinterpret_cast<void*>(compiled_init)},
      {Py_tp_dealloc, reinterpret_cast<void*>(compiled_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(compiled_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(compiled_clear)},
      {Py_tp_call, reinterpret_cast<void*>(PyVectorcall_Call)},
      {Py_tp_descr_get, reinterpret_cast<void*>(compiled_get)},
      {Py_tp_methods, compiled_methods},
      {Py_tp_members, compiled_members},
      {Py_tp_getset, compiled_properties},
      {0, nullptr}};
  static PyType_Spec compiled_spec = {"framejit.native._C.CompiledFunction", sizeof(CompiledObject), 0,
                                      Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                                          Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_METHOD_DESCRIPTOR,
                                      compiled_slots};
  entry_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&entry_spec));
  compiled_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&compiled_spec));
  if (!entry_type || !compiled_type || PyModule_AddFunctions(module, functions) < 0) return -1;
  if (PyModule_AddObjectRef(module, "Entry", reinterpret_cast<PyObject*>(entry_type)) < 0) return -1;
  return PyModule_AddObjectRef(module, "CompiledFunction", reinterpret_cast<PyObject*>(compiled_type));
}

}  // namespace framejit
