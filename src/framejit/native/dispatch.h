// CompiledFunction, Entry, TailCall: a call finds the entry whose guards hold and runs it.
// In: a call (vectorcall, or a frame seen by hook.cpp). Out: its result. Binding of arguments is in binding.cpp.
#pragma once
#include "guard_tree.h"

namespace framejit {

// ---- per-thread state -------------------------------------------------------------------------------------------

// Who is shown a share of the calls (audit.h). `countdown` calls further is the next one.
struct Auditor {
  PyObject* function;  // owned, or NULL
  double rate;
  long long countdown;
};

struct ThreadState {
  PyObject* context;         // owned: the active HookContext, or NULL
  PyObject* running;         // owned: the context of the compiled object being run; new TailCalls remember it
  PyCodeObject* skip_code;   // borrowed: the next frame of this code is run as it is
  struct TailCallObject* handed;  // borrowed: nobody else is to hold its arguments once the frame of `handed_to` starts
  PyObject* handed_to;       // borrowed: a Python function, or NULL
  const void* passed_on;     // the frame that was passed to the hook below ours last, of those that still run; or NULL
  int run_only;              // 1: misses do not capture; 2: they are asked all the same, so that they can raise
  bool dispatch_disabled;    // compiled functions behave as their originals
  bool auditing;             // this thread is inside a call that is audited, or compiles
  Auditor auditor;           // of this thread alone
};
extern thread_local ThreadState thread_state;

// True with a RecursionError where there is no stack for calls that CPython does not count. (dispatch.cpp)
bool stack_is_used_up();

// Makes `context` (or none) the active one; returns the previous one. Installs and removes the frame hook. (hook.cpp)
Ref swap_context(ThreadState& thread, Ref context);

class ContextScope {
 public:
  ContextScope(ThreadState& thread, PyObject* context)
      : thread_(thread), previous_(swap_context(thread, Ref::borrow(context))) {}
  ~ContextScope() { swap_context(thread_, std::move(previous_)); }
  ContextScope(const ContextScope&) = delete;
  ContextScope& operator=(const ContextScope&) = delete;

 private:
  ThreadState& thread_;
  Ref previous_;
};

class RunningScope {
 public:
  RunningScope(ThreadState& thread, PyObject* context) : thread_(thread), previous_(thread.running) {
    thread.running = Py_XNewRef(context);
  }
  ~RunningScope() {
    PyObject* current = thread_.running;
    thread_.running = previous_;
    Py_XDECREF(current);
  }
  RunningScope(const RunningScope&) = delete;
  RunningScope& operator=(const RunningScope&) = delete;

 private:
  ThreadState& thread_;
  PyObject* previous_;
};

// The next frame of `callable`, if it is a Python function, is not looked at by the hook.
class SkipScope {
 public:
  SkipScope(ThreadState& thread, PyObject* callable) : thread_(thread), previous_(thread.skip_code) {
    bool is_function = PyFunction_Check(callable);
    thread.skip_code = is_function ? reinterpret_cast<PyCodeObject*>(PyFunction_GET_CODE(callable)) : nullptr;
  }
  ~SkipScope() { thread_.skip_code = previous_; }
  SkipScope(const SkipScope&) = delete;
  SkipScope& operator=(const SkipScope&) = delete;

 private:
  ThreadState& thread_;
  PyCodeObject* previous_;
};

// The arguments of `call`, which may be NULL, are given to `callable` in this block: the program sees when objects end.
class HandedScope {
 public:
  HandedScope(ThreadState& thread, TailCallObject* call, PyObject* callable)
      : thread_(thread), previous_(thread.handed), previous_to_(thread.handed_to) {
    if (PyMethod_Check(callable)) callable = PyMethod_GET_FUNCTION(callable);
    thread.handed = call;
    thread.handed_to = call && PyFunction_Check(callable) ? callable : nullptr;
  }
  ~HandedScope() {
    thread_.handed = previous_;
    thread_.handed_to = previous_to_;
  }
  HandedScope(const HandedScope&) = delete;
  HandedScope& operator=(const HandedScope&) = delete;

 private:
  ThreadState& thread_;
  TailCallObject* previous_;
  PyObject* previous_to_;
};
// The frame that was called has the arguments, `thread.handed` lets go of them.
void release_arguments(ThreadState& thread);

// ---- argument arrays --------------------------------------------------------------------------------------------

class ArgumentBuffer {
 public:
  // Room for `size` arguments and one more before them, as PY_VECTORCALL_ARGUMENTS_OFFSET asks for.
  PyObject** reserve(Py_ssize_t size) {
    if (size + 1 <= kOnStack) return on_stack_ + 1;
    heap_.reset(new PyObject*[static_cast<size_t>(size) + 1]);
    return heap_.get() + 1;
  }

 private:
  static constexpr Py_ssize_t kOnStack = 48;
  PyObject* on_stack_[kOnStack];
  std::unique_ptr<PyObject*[]> heap_;
};

// The bound arguments of one call, followed by the closure's cells.
struct Binding {
  PyObject* const* slots = nullptr;
  Py_ssize_t count = 0;
  ArgumentBuffer buffer;
  std::vector<Ref> owned;  // *args, **kwargs, defaults
};

// 1: bound; 0: the arguments do not fit (no exception set); -1: exception.
int bind_arguments(PyFunctionObject* function, PyObject* const* args, Py_ssize_t count, PyObject* keyword_names,
                   Binding* binding);

// ---- objects ----------------------------------------------------------------------------------------------------

// How an entry's function gets its arguments when it hands most of them on to its graph: the slots, some of the captured
// values, and one tuple with the graph's inputs, which are not passed one by one.
struct InputTuple {
  struct Input {
    int32_t position;  // of a captured value; -1 - k: slot k
    bool moved;        // nobody else gets this captured value
  };
  std::vector<Input> inputs;
  std::vector<uint32_t> shown;  // captured values that are arguments of their own
  std::vector<uint32_t> kept;   // captured values that are not moved
  Py_ssize_t slots_needed = 0;
};

struct EntryObject {
  PyObject_HEAD
  PyObject* tree;      // GuardTreeObject
  PyObject* function;
  PyObject* layout;    // what `inputs` was made from, or None
  InputTuple* inputs;  // or NULL
  unsigned long long hits;
};

struct CompiledObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* function;  // a Python function, or NULL in raw mode
  PyObject* code;      // the function's code, which the entries were made for
  PyObject* miss;
  PyObject* fallback;  // raw mode only, may be NULL
  PyObject* context;   // HookContext or NULL
  PyObject* entries;   // a tuple, replaced on change, so that a running dispatch keeps its own
  PyObject* dict;
  PyObject* weak_references;
  Py_ssize_t slot_count;  // raw mode only
  Py_ssize_t variables;   // raw mode: how many of the slots are variables; what was on the stack follows
  Py_ssize_t last;        // index of the entry that was hit last
  char run_only;
  char stands_for_call;   // `function` is what `type(first argument).__call__` was
  PyTypeObject* call_type;  // where it was last looked up (compared only), and at which version of that class
  unsigned int call_version;
  char ask_always;        // call `miss` even where nothing new is compiled: it knows entries of a package
};

struct TailCallObject {
  PyObject_HEAD
  vectorcallfunc vectorcall;
  PyObject* target;
  PyObject* context;   // running context at creation, or NULL
  Py_ssize_t count;
  PyObject** args;     // `own`+1 or a heap block; one spare element before it
  PyObject* own[10];
};

extern PyTypeObject* compiled_type;
extern PyTypeObject* hook_context_type;

inline bool is_compiled(PyObject* object) { return PyObject_TypeCheck(object, compiled_type); }

// The arguments in a frame that has not begun.
struct FrameArguments {
  void* frame;
  Py_ssize_t count;
  void (*clear)(const FrameArguments&);  // lets go of them
};

// Runs the compiled object on the slots of a frame, tail calls included. *fallback: no entry fits (result NULL, no
// exception), the caller runs the frame itself. What `owned` holds is let go of before a tail call.
PyObject* dispatch_frame(CompiledObject* compiled, PyObject* const* slots, Py_ssize_t count, bool* fallback,
                         const FrameArguments* owned = nullptr);

int add_dispatch(PyObject* module);
int add_tail_call(PyObject* module);

// The same result; an exception in its place loses the frames of ours at the head of its traceback.
PyObject* seen_by_users(PyObject* result);
// Replaces a TailCall, whose reference it takes, by the final result of the chain. Uses constant C stack.
PyObject* run_tail_calls(PyObject* result);
// One call of a compiled object, perhaps for a TailCall; the result may be a TailCall.
PyObject* call_compiled_once(CompiledObject* self, PyObject* const* args, size_t flagged_count, PyObject* names,
                             TailCallObject* tail_call = nullptr);

extern PyTypeObject* tail_call_type;

}  // namespace framejit
