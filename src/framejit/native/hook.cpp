// See hook.h. HookContext (which code is compiled, by whom), set_context, and the frame evaluation function.
#define FRAMEJIT_WITH_FRAMES
#include "audit.h"
#include "hook.h"

#include <unordered_map>

namespace framejit {

PyTypeObject* hook_context_type = nullptr;

// ---- HookContext ------------------------------------------------------------------------------------------------

struct FrameKey {
  PyObject *code, *globals;
  bool operator==(const FrameKey& other) const { return code == other.code && globals == other.globals; }
};
struct FrameKeyHash {
  size_t operator()(const FrameKey& key) const {
    auto mix = [](PyObject* pointer) { return reinterpret_cast<size_t>(pointer) >> 4; };
    return mix(key.code) * 0x9E3779B97F4A7C15u + mix(key.globals);
  }
};
struct FrameDecision {
  Ref code, globals;  // keep the addresses in the key from being reused
  Ref compiled;       // NULL: run the frame as it is
};
using Decisions = std::unordered_map<FrameKey, FrameDecision, FrameKeyHash>;

struct HookContextObject {
  PyObject_HEAD
  PyObject* callback;
  Decisions* decisions;
  PyObject* dict;
  PyObject* weak_references;
  char ask_always;  // ask the callback also where nothing new is captured
};

static PyObject* context_new(PyTypeObject* type, PyObject*, PyObject*) {
  auto* self = reinterpret_cast<HookContextObject*>(type->tp_alloc(type, 0));
  if (self) self->decisions = new Decisions();
  return reinterpret_cast<PyObject*>(self);
}

static int context_init(HookContextObject* self, PyObject* args, PyObject* kwargs) {
  PyObject* callback;
  static const char* names[] = {"callback", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O:HookContext", const_cast<char**>(names), &callback)) return -1;
  if (!PyCallable_Check(callback)) {
    PyErr_SetString(PyExc_TypeError, "callback must be callable");
    return -1;
  }
  Ref old = Ref::steal(std::exchange(self->callback, Py_NewRef(callback)));
  return 0;
}

static int context_traverse(HookContextObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  Py_VISIT(self->callback);
  Py_VISIT(self->dict);
  for (const auto& item : *self->decisions) {
    Py_VISIT(item.second.code.get());
    Py_VISIT(item.second.globals.get());
    Py_VISIT(item.second.compiled.get());
  }
  return 0;
}

static int context_tp_clear(HookContextObject* self) {
  Decisions old;
  old.swap(*self->decisions);  // the destructors may come back here
  Py_CLEAR(self->callback);
  Py_CLEAR(self->dict);
  return 0;
}

static void context_dealloc(HookContextObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  if (self->weak_references) PyObject_ClearWeakRefs(reinterpret_cast<PyObject*>(self));
  context_tp_clear(self);
  delete self->decisions;
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject* context_forget(HookContextObject* self, PyObject* code) {
  std::vector<FrameDecision> removed;  // destroyed after the loop
  for (auto item = self->decisions->begin(); item != self->decisions->end();) {
    if (item->first.code != code) {
      ++item;
      continue;
    }
    removed.push_back(std::move(item->second));
    item = self->decisions->erase(item);
  }
  return PyBool_FromLong(!removed.empty());
}

static PyObject* context_clear(HookContextObject* self, PyObject*) {
  Decisions old;
  old.swap(*self->decisions);
  Py_RETURN_NONE;
}

static PyObject* context_compiled(HookContextObject* self, PyObject*) {
  PyObject* list = PyList_New(0);
  for (const auto& item : *self->decisions) {
    if (!list || !item.second.compiled) continue;
    if (PyList_Append(list, item.second.compiled.get()) < 0) Py_CLEAR(list);
  }
  return list;
}

// ---- installing -------------------------------------------------------------------------------------------------

static PyObject* evaluate_frame(PyThreadState* thread, Frame* frame, int throwing);

static int active_threads = 0;                  // threads with an active context
static _PyFrameEvalFunction below = nullptr;    // whom our hook passes frames to
static bool buried = false;                     // somebody installed a hook above ours, so ours stayed in the chain
static PyCodeObject* empty_code = nullptr;      // `lambda: None`

// Do frames still come to our hook, through those above it? They do not once these have been taken away.
static bool is_in_chain() {
  ThreadState& thread = thread_state;
  SavedError error;
  Ref globals = Ref::steal(PyDict_New());
  Ref function = globals ? Ref::steal(PyFunction_New(reinterpret_cast<PyObject*>(empty_code), globals.get())) : Ref();
  if (!function) return PyErr_Clear(), false;
  SkipScope as_it_is(thread, function.get());
  Ref result = Ref::steal(PyObject_CallNoArgs(function.get()));
  if (!result) PyErr_Clear();
  return thread.skip_code != empty_code;  // our hook takes it back
}

static void install() {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  _PyFrameEvalFunction top = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  bool there = top == evaluate_frame || (std::exchange(buried, false) && top != _PyEval_EvalFrameDefault && is_in_chain());
  if (there) return;
  below = top;
  _PyInterpreterState_SetEvalFrameFunc(interpreter, evaluate_frame);
}

static void uninstall() {
  PyInterpreterState* interpreter = PyInterpreterState_Get();
  _PyFrameEvalFunction top = _PyInterpreterState_GetEvalFrameFunc(interpreter);
  buried = top != evaluate_frame && top != _PyEval_EvalFrameDefault;
  if (top == evaluate_frame) _PyInterpreterState_SetEvalFrameFunc(interpreter, below);
}

Ref swap_context(ThreadState& thread, Ref context) {
  PyObject* previous = thread.context;
  thread.context = context.release();
  if (!previous && thread.context && active_threads++ == 0) install();
  if (previous && !thread.context && --active_threads == 0) uninstall();
  return Ref::steal(previous);
}

// ---- evaluation -------------------------------------------------------------------------------------------------

static PyObject* evaluate_below(PyThreadState* python_thread, Frame* frame, int throwing,
                                _PyFrameEvalFunction evaluate) {
  NestedEvaluation nested(python_thread);
  return evaluate(python_thread, frame, throwing);
}

static PyObject* pass_on(PyThreadState* python_thread, Frame* frame, int throwing) {
  if (!below || below == _PyEval_EvalFrameDefault) {
    return evaluate_below(python_thread, frame, throwing, _PyEval_EvalFrameDefault);
  }
  ThreadState& thread = thread_state;
  const void* before = std::exchange(thread.passed_on, frame);
  PyObject* result = evaluate_below(python_thread, frame, throwing, below);
  thread.passed_on = before;
  return result;
}

// What the context wants for this function's frames: a CompiledFunction, or NULL for "as it is". Asks the callback the
// first time. *failed: the callback raised.
static Ref decide(HookContextObject* context, PyFunctionObject* function, bool* failed) {
  FrameKey key{function->func_code, function->func_globals};
  auto known = context->decisions->find(key);
  if (known != context->decisions->end()) return known->second.compiled;
  bool nothing_new = thread_state.run_only != 0;  // then "as it is" is no decision for later
  if (!context->callback || (nothing_new && !context->ask_always)) return Ref();
  FrameDecision decision{Ref::borrow(key.code), Ref::borrow(key.globals), Ref()};
  {
    ContextScope none(thread_state, nullptr);
    Ref callback = Ref::borrow(context->callback);
    Ref answer = Ref::steal(PyObject_CallOneArg(callback.get(), reinterpret_cast<PyObject*>(function)));
    if (answer && answer.get() != Py_None && !is_compiled(answer.get())) {
      PyErr_Format(PyExc_TypeError, "callback must return a CompiledFunction or None, not %R", answer.get());
      answer = Ref();
    }
    if (!answer) {
      *failed = true;
      return Ref();
    }
    if (answer.get() == Py_None && nothing_new) return Ref();
    if (answer.get() != Py_None) decision.compiled = std::move(answer);
  }
  Ref compiled = decision.compiled;
  FrameDecision replaced = std::exchange((*context->decisions)[key], std::move(decision));
  return compiled;
}

struct AuditedFrame {
  CompiledObject* compiled;
  PyObject* const* slots;
  Py_ssize_t count;

  static PyObject* run(void* data, bool* fell_back) {
    auto* call = static_cast<AuditedFrame*>(data);
    return dispatch_frame(call->compiled, call->slots, call->count, fell_back);
  }
};

static PyObject* dispatch_audited(CompiledObject* compiled, PyFunctionObject* function, PyObject* const* slots,
                                  Py_ssize_t count, bool* fell_back) {
  *fell_back = false;
  Ref tuple = Ref::steal(PyTuple_New(count));
  if (!tuple) return nullptr;
  for (Py_ssize_t i = 0; i < count; i++) PyTuple_SET_ITEM(tuple.get(), i, Py_NewRef(slots[i]));
  AuditedFrame call{compiled, slots, count};
  return audited(reinterpret_cast<PyObject*>(compiled), reinterpret_cast<PyObject*>(function), tuple.get(), Py_None,
                 fell_back, AuditedFrame::run, &call);
}

static void clear_arguments(const FrameArguments& arguments) {
  auto* frame = static_cast<Frame*>(arguments.frame);
  for (Py_ssize_t i = 0; i < arguments.count; i++) clear_frame_local(frame, ends_at(i, arguments.count));
}

static PyObject* evaluate_frame(PyThreadState* python_thread, Frame* frame, int throwing) {
  ThreadState& thread = thread_state;
  if (thread.passed_on == frame) {
    // The hook below was installed again above ours and passes to ours what ours has passed to it.
    return evaluate_below(python_thread, frame, throwing, _PyEval_EvalFrameDefault);
  }
  if (thread.handed_to && thread.handed_to == reinterpret_cast<PyObject*>(frame_function(frame))) {
    release_arguments(thread);
  }
  PyCodeObject* code = frame_code(frame);
  constexpr int kSuspends = CO_GENERATOR | CO_COROUTINE | CO_ASYNC_GENERATOR;
  if (!throwing && !(code->co_flags & kSuspends) && stack_is_used_up()) {
    discard_frame(python_thread, frame, empty_code);
    return nullptr;
  }
  if (!thread.context) {
    if (active_threads == 0) uninstall();  // the hook that had buried ours is gone
    return pass_on(python_thread, frame, throwing);
  }
  if (thread.skip_code == code) {
    thread.skip_code = nullptr;
    return pass_on(python_thread, frame, throwing);
  }
  constexpr int kFunction = CO_OPTIMIZED | CO_NEWLOCALS;
  // `tracing`: this is a trace function, a profiler or an audit hook, which watches the program and is no part of it.
  if (throwing || thread.dispatch_disabled || python_thread->tracing || (code->co_flags & kSuspends) ||
      (code->co_flags & kFunction) != kFunction) {
    return pass_on(python_thread, frame, throwing);
  }
  Ref context = Ref::borrow(thread.context);
  PyFunctionObject* function = frame_function(frame);
  bool failed = false;
  Ref compiled = decide(reinterpret_cast<HookContextObject*>(context.get()), function, &failed);
  if (!failed && !compiled) return pass_on(python_thread, frame, throwing);

  PyObject* result = nullptr;
  if (!failed) {
    // No prologue has run: arguments are the first locals, cells are still those of the function.
    Py_ssize_t own = code->co_argcount + code->co_kwonlyargcount + ((code->co_flags & CO_VARARGS) != 0) +
        ((code->co_flags & CO_VARKEYWORDS) != 0);
    Py_ssize_t cells = function->func_closure ? PyTuple_GET_SIZE(function->func_closure) : 0;
    ArgumentBuffer buffer;
    PyObject** slots = buffer.reserve(own + cells);
    for (Py_ssize_t i = 0; i < own; i++) slots[i] = frame_local(frame, i);
    for (Py_ssize_t i = 0; i < cells; i++) slots[own + i] = PyTuple_GET_ITEM(function->func_closure, i);
    bool fallback;
    FrameArguments arguments{frame, own, clear_arguments};
    auto* target = reinterpret_cast<CompiledObject*>(compiled.get());
    result = audits && audit_is_due() ? dispatch_audited(target, function, slots, own + cells, &fallback)
                                      : dispatch_frame(target, slots, own + cells, &fallback, &arguments);
    if (fallback) return pass_on(python_thread, frame, throwing);
  }
  discard_frame(python_thread, frame, empty_code);
  return result;
}

// ---- Python -----------------------------------------------------------------------------------------------------

static PyObject* set_context(PyObject*, PyObject* context) {
  if (context != Py_None && !PyObject_TypeCheck(context, hook_context_type)) {
    return PyErr_Format(PyExc_TypeError, "context must be a HookContext or None, not %R", context);
  }
  Ref previous = swap_context(thread_state, Ref::borrow(context == Py_None ? nullptr : context));
  return previous ? previous.release() : Py_NewRef(Py_None);
}

static PyObject* current_context(PyObject*, PyObject*) {
  return Py_NewRef(thread_state.context ? thread_state.context : Py_None);
}

static PyObject* hook_state(PyObject*, PyObject*) {
  _PyFrameEvalFunction top = _PyInterpreterState_GetEvalFrameFunc(PyInterpreterState_Get());
  return PyUnicode_FromString(top == evaluate_frame ? "ours" : top == _PyEval_EvalFrameDefault ? "default" : "other");
}

static PyMethodDef context_methods[] = {
    {"forget", reinterpret_cast<PyCFunction>(context_forget), METH_O,
     "Forgets what was decided for a code object; True if there was anything."},
    {"clear", reinterpret_cast<PyCFunction>(context_clear), METH_NOARGS, "Forgets all decisions."},
    {"compiled", reinterpret_cast<PyCFunction>(context_compiled), METH_NOARGS, "The compiled functions, as a list."},
    {nullptr, nullptr, 0, nullptr}};

static PyMemberDef context_members[] = {
    {"__dictoffset__", T_PYSSIZET, offsetof(HookContextObject, dict), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(HookContextObject, weak_references), READONLY, nullptr},
    {"callback", T_OBJECT, offsetof(HookContextObject, callback), READONLY, "callback(function) -> compiled | None."},
    {"ask_always", T_BOOL, offsetof(HookContextObject, ask_always), 0, "Ask also where nothing new is captured."},
    {nullptr, 0, 0, 0, nullptr}};

static PyGetSetDef context_properties[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

static PyMethodDef functions[] = {
    {"set_context", set_context, METH_O,
     "Thread-local: looks at the frames of this thread through a HookContext (None: no longer). Returns the previous "
     "one. Set it back before the thread ends."},
    {"current_context", current_context, METH_NOARGS, "The active HookContext of this thread, or None."},
    {"hook_state", hook_state, METH_NOARGS, "Whose frame hook is installed: 'ours', 'other' or 'default'."},
    {nullptr, nullptr, 0, nullptr}};

static int make_empty_code() {
  Ref globals = Ref::steal(PyDict_New());
  if (!globals || PyDict_SetItemString(globals.get(), "__builtins__", PyEval_GetBuiltins()) < 0) return -1;
  empty_code = reinterpret_cast<PyCodeObject*>(
      PyRun_String("(lambda: None).__code__", Py_eval_input, globals.get(), globals.get()));
  return empty_code ? 0 : -1;
}

int add_hook(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("HookContext(callback): decides, once per code and globals, which frames are run by a "
                                    "CompiledFunction.")},
      {Py_tp_new, reinterpret_cast<void*>(context_new)},
      {Py_tp_init, reinterpret_cast<void*>(context_init)},
      {Py_tp_dealloc, reinterpret_cast<void*>(context_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(context_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(context_tp_clear)},
      {Py_tp_methods, context_methods},
      {Py_tp_members, context_members},
      {Py_tp_getset, context_properties},
      {0, nullptr}};
  static PyType_Spec spec = {"framejit.native._C.HookContext", sizeof(HookContextObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};
  hook_context_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!hook_context_type || make_empty_code() < 0 || PyModule_AddFunctions(module, functions) < 0) return -1;
  return PyModule_AddObjectRef(module, "HookContext", reinterpret_cast<PyObject*>(hook_context_type));
}

}  // namespace framejit
