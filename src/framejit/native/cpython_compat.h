// Everything that differs between CPython 3.11, 3.12, 3.13 and 3.14, and every look into CPython's private structures.
// In: objects. Out: small inline functions with one meaning on all releases. No other file tests PY_VERSION_HEX.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstdint>
#include <cstring>
#include <unordered_map>
#include <vector>

#include "stack.h"

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030F0000
#error "framejit supports CPython 3.11 to 3.14"
#endif

namespace framejit {

// ---- dicts ----------------------------------------------------------------------------------------------------

// Tells where the versions of dicts are. The version is a number that no other state of any dict of this process has ever
// had: two equal readings mean the same dict, not changed in between, whatever the pointer was. What is at an address
// stays readable as long as the object that told it lives.
#if PY_VERSION_HEX >= 0x030E0000
// Dicts have no versions of their own: a watcher keeps one for each dict that somebody asks about.
class DictVersions {
 public:
  DictVersions() = default;
  DictVersions(const DictVersions&) = delete;
  DictVersions& operator=(const DictVersions&) = delete;
  ~DictVersions() {
    for (Counter* counter : counters_) release(counter);
  }

  // False: dicts cannot be watched, since others watch already.
  static bool available() {
    Registry& known = registry();
    if (known.watcher == kNotAsked) known.watcher = claim_watcher();
    return known.watcher != kNone;
  }

  // The eight bytes that hold the version of a dict. Only if they are available.
  const void* address(PyObject* dict) {
    Registry& known = registry();
    Counter*& counter = known.counters[dict];
    if (counter == nullptr) {
      counter = new Counter{++known.last, dict, 0};
      if (PyDict_Watch(known.watcher, dict) < 0) PyErr_Clear();  // only if it is no dict
    }
    counter->users++;
    counters_.push_back(counter);
    return &counter->version;
  }

 private:
  struct Counter {
    uint64_t version;
    PyObject* dict;  // NULL when it has died
    size_t users;
  };
  static constexpr int kNotAsked = -2, kNone = -1;
  struct Registry {
    std::unordered_map<PyObject*, Counter*> counters;
    uint64_t last = 0;
    int watcher = kNotAsked;
  };

  // Never destroyed: dicts die later than static objects.
  static Registry& registry() {
    static Registry* known = new Registry();
    return *known;
  }

  // Watchers are told before a write, in the order of their ids. Only after the last one nothing runs until the write
  // is done, and nobody can read the new version beside the old content: so it is the last id or none.
  static int claim_watcher() {
    constexpr int kLast = 7;
    std::vector<int> lower;
    int id = PyDict_AddWatcher(dict_changes);
    for (; id >= 0 && id < kLast; id = PyDict_AddWatcher(dict_changes)) lower.push_back(id);
    for (int other : lower) PyDict_ClearWatcher(other);
    PyErr_Clear();
    return id == kLast ? id : kNone;
  }

  // CPython tells of a write of what is there already only where attributes lie inside of objects. Their keys are texts,
  // so that looking runs no code.
  static bool stays_the_same(PyDict_WatchEvent event, PyObject* dict, PyObject* key, PyObject* value) {
    if (event != PyDict_EVENT_MODIFIED || !reinterpret_cast<PyDictObject*>(dict)->ma_values) return false;
    return PyUnicode_CheckExact(key) && PyDict_GetItemWithError(dict, key) == value;
  }

  static int dict_changes(PyDict_WatchEvent event, PyObject* dict, PyObject* key, PyObject* value) {
    Registry& known = registry();
    auto found = known.counters.find(dict);
    if (found == known.counters.end() || stays_the_same(event, dict, key, value)) return 0;
    found->second->version = ++known.last;
    if (event == PyDict_EVENT_DEALLOCATED) {
      found->second->dict = nullptr;
      known.counters.erase(found);
    }
    return 0;
  }

  static void release(Counter* counter) {
    if (--counter->users > 0) return;
    if (counter->dict) {
      registry().counters.erase(counter->dict);
      if (PyDict_Unwatch(registry().watcher, counter->dict) < 0) PyErr_Clear();
    }
    delete counter;
  }

  std::vector<Counter*> counters_;
};
#else
class DictVersions {
 public:
  static bool available() { return true; }

  // The eight bytes that hold the version of a dict. They may also change for other reasons (the low bits belong to watchers).
  const void* address(PyObject* dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
  }
};
#endif

// Makes the version of a dict change with every write to it. In 3.13 the dict of an object may share the values that
// lie inside the object, which are written without it; taking an item out gives it a table of its own.
inline bool own_dict_values(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030D0000 && PY_VERSION_HEX < 0x030E0000
  struct ValuesHead {  // the start of PyDictValues
    uint8_t capacity, size, embedded, valid;
  };
  auto* values = reinterpret_cast<const ValuesHead*>(reinterpret_cast<PyDictObject*>(dict)->ma_values);
  if (values == nullptr || !values->embedded) return true;
  bool empty = PyDict_GET_SIZE(dict) == 0;
  if (empty && PyDict_SetItemString(dict, "framejit", Py_None) < 0) return PyErr_Clear(), false;
  PyObject* item = PyObject_CallMethod(dict, "popitem", nullptr);
  if (item == nullptr) return PyErr_Clear(), false;
  int failed = empty ? 0 : PyDict_SetItem(dict, PyTuple_GET_ITEM(item, 0), PyTuple_GET_ITEM(item, 1));
  Py_DECREF(item);
  return failed ? (PyErr_Clear(), false) : true;
#else
  return (void)dict, true;
#endif
}

// True if all keys are exact strings, so that a look-up of an exact string runs no Python code.
inline bool dict_has_only_string_keys(PyObject* dict) {
  struct KeysHead {  // the start of PyDictKeysObject, the same in all supported releases
    Py_ssize_t references;
    uint8_t log2_size, log2_index_bytes, kind;
  };
  return reinterpret_cast<KeysHead*>(reinterpret_cast<PyDictObject*>(dict)->ma_keys)->kind != 0;
}

inline PyObject* dict_get_known_hash(PyObject* dict, PyObject* key, Py_hash_t hash) {
  return _PyDict_GetItem_KnownHash(dict, key, hash);
}

// ---- instances ------------------------------------------------------------------------------------------------

// The `__dict__` of an instance if it exists as a dict object, borrowed; else NULL. Never allocates.
inline PyObject* existing_instance_dict(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
#if PY_VERSION_HEX >= 0x030D0000
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
    return reinterpret_cast<PyObject**>(object)[-3];
  }
#elif PY_VERSION_HEX >= 0x030C0000
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) {
    // A tagged pointer: an odd one points at the values of an object that has no dict yet.
    uintptr_t tagged = reinterpret_cast<uintptr_t*>(object)[-3];
    return tagged & 1 ? nullptr : reinterpret_cast<PyObject*>(tagged);
  }
#else
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) return reinterpret_cast<PyObject**>(object)[-3];
#endif
  Py_ssize_t offset = type->tp_dictoffset;
  if (offset > 0) return *reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + offset);
  if (offset == 0) return nullptr;
  PyObject** pointer = _PyObject_GetDictPtr(object);  // variable-sized objects
  return pointer ? *pointer : nullptr;
}

// Where the pointer to the `__dict__` of an instance is; NULL if it has no such place.
inline PyObject** instance_dict_slot(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_flags & Py_TPFLAGS_MANAGED_DICT) return reinterpret_cast<PyObject**>(object) - 3;
  if (type->tp_dictoffset > 0) {
    return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(object) + type->tp_dictoffset);
  }
  return type->tp_dictoffset == 0 ? nullptr : _PyObject_GetDictPtr(object);  // variable-sized objects
}

// Makes the `__dict__` exist as a dict object. NULL without an exception if the type has none or memory ran out.
inline PyObject* materialise_instance_dict(PyObject* object) {
  PyTypeObject* type = Py_TYPE(object);
  if (type->tp_dictoffset == 0 && !(type->tp_flags & Py_TPFLAGS_MANAGED_DICT)) return nullptr;
#if PY_VERSION_HEX >= 0x030D0000
  Py_XDECREF(PyObject_GenericGetDict(object, nullptr));
#else
  PyObject** pointer = _PyObject_GetDictPtr(object);  // turns inline values into a dict
  if (pointer == nullptr || *pointer == nullptr) Py_XDECREF(PyObject_GenericGetDict(object, nullptr));
#endif
  if (PyErr_Occurred()) PyErr_Clear();
  return existing_instance_dict(object);
}

inline bool supports_weakrefs(PyObject* object) {
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
  // Weak references to these are left pointing at memory that is free: CPython crashes.
  const char* name = Py_TYPE(object)->tp_name;
  if (strcmp(name, "typing.ParamSpecArgs") == 0 || strcmp(name, "typing.ParamSpecKwargs") == 0) return false;
#endif
  return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object));
}

// What a weak reference points at; Py_None if it is dead. Only compared, never followed.
inline PyObject* weak_referent(PyObject* reference) {
  return reinterpret_cast<PyWeakReference*>(reference)->wr_object;
}

inline const void* weak_referent_address(PyObject* reference) {
  return &reinterpret_cast<PyWeakReference*>(reference)->wr_object;
}

// ---- types ----------------------------------------------------------------------------------------------------

// The dict that holds a type's own attributes, borrowed (the type owns it as long as it lives).
inline PyObject* type_own_dict(PyTypeObject* type) {
#if PY_VERSION_HEX >= 0x030C0000
  PyObject* dict = PyType_GetDict(type);
  Py_XDECREF(dict);
  return dict;
#else
  return type->tp_dict;
#endif
}

// Changes whenever the type, or a class it inherits from, changes; never reused. 0: no version to rely on.
inline uint32_t type_version(PyTypeObject* type) {
#if PY_VERSION_HEX < 0x030D0000
  if (!(type->tp_flags & Py_TPFLAGS_VALID_VERSION_TAG)) return 0;
#endif
  return type->tp_version_tag;
}

// The version and four bytes of padding. Losing its version sets it to 0 in all supported releases.
inline const void* type_version_address(PyTypeObject* type) {
  static_assert(offsetof(PyTypeObject, tp_version_tag) % 8 == 0 &&
                offsetof(PyTypeObject, tp_finalize) == offsetof(PyTypeObject, tp_version_tag) + 8);
  return &type->tp_version_tag;
}

// ---- code and frames ------------------------------------------------------------------------------------------

inline PyObject* code_local_name(PyCodeObject* code, Py_ssize_t index) {
  return PyTuple_GET_ITEM(code->co_localsplusnames, index);
}

// ---- recursion ------------------------------------------------------------------------------------------------

// How much of the limit of recursion is used. The limit may change between two calls.
inline int recursion_depth(PyThreadState* thread) {
#if PY_VERSION_HEX >= 0x030C0000
  return thread->py_recursion_limit - thread->py_recursion_remaining;
#else
  return thread->recursion_limit - thread->recursion_remaining;
#endif
}

inline void set_recursion_depth(PyThreadState* thread, int depth) {
#if PY_VERSION_HEX >= 0x030C0000
  thread->py_recursion_remaining = thread->py_recursion_limit - depth;
#else
  thread->recursion_remaining = thread->recursion_limit - depth;
#endif
}

// CPython 3.12 and 3.13 count what is evaluated by nested C calls from a fixed budget, of which plain Python calls use
// nothing. Where ours are between them, one evaluation is given back meanwhile, as long as there is stack.
class NestedEvaluation {
 public:
#if PY_VERSION_HEX >= 0x030C0000 && PY_VERSION_HEX < 0x030E0000
  explicit NestedEvaluation(PyThreadState* thread)
      : thread_(thread), given_(stack_left() == StackLeft::enough ? kEvaluation : 0) {
    thread_->c_recursion_remaining += given_;
  }
  ~NestedEvaluation() { thread_->c_recursion_remaining -= given_; }

 private:
  static constexpr int kEvaluation = 2;  // what _PyEval_EvalFrameDefault takes
  PyThreadState* thread_;
  int given_;
#else
  explicit NestedEvaluation(PyThreadState*) {}
  ~NestedEvaluation() {}

 private:
#endif
  NestedEvaluation(const NestedEvaluation&) = delete;
  NestedEvaluation& operator=(const NestedEvaluation&) = delete;
};

}  // namespace framejit

// The part below needs CPython's internal headers; only hook.cpp asks for it.
namespace framejit {

// Which of `count` variables of a frame ends as number `step`: the first to the last; since CPython 3.14 the last to
// the first.
inline Py_ssize_t ends_at(Py_ssize_t step, Py_ssize_t count) {
#if PY_VERSION_HEX >= 0x030E0000
  return count - 1 - step;
#else
  (void)count;
  return step;
#endif
}

}  // namespace framejit

#ifdef FRAMEJIT_WITH_FRAMES
#define Py_BUILD_CORE
#if PY_VERSION_HEX >= 0x030E0000
#include <internal/pycore_interpframe.h>
#else
#include <internal/pycore_frame.h>
#endif
#undef Py_BUILD_CORE

#if PY_VERSION_HEX >= 0x030D0000
extern "C" void _PyEval_FrameClearAndPop(PyThreadState*, struct _PyInterpreterFrame*);
#endif

namespace framejit {

using Frame = struct _PyInterpreterFrame;

inline PyCodeObject* frame_code(Frame* frame) {
#if PY_VERSION_HEX >= 0x030E0000
  return reinterpret_cast<PyCodeObject*>(PyStackRef_AsPyObjectBorrow(frame->f_executable));
#elif PY_VERSION_HEX >= 0x030D0000
  return reinterpret_cast<PyCodeObject*>(frame->f_executable);
#else
  return frame->f_code;
#endif
}

inline PyFunctionObject* frame_function(Frame* frame) {
#if PY_VERSION_HEX >= 0x030E0000
  return reinterpret_cast<PyFunctionObject*>(PyStackRef_AsPyObjectBorrow(frame->f_funcobj));
#elif PY_VERSION_HEX >= 0x030C0000
  return reinterpret_cast<PyFunctionObject*>(frame->f_funcobj);
#else
  return frame->f_func;
#endif
}

// A variable of a frame that has not begun, borrowed.
inline PyObject* frame_local(Frame* frame, Py_ssize_t index) {
#if PY_VERSION_HEX >= 0x030E0000
  return PyStackRef_AsPyObjectBorrow(frame->localsplus[index]);
#else
  return frame->localsplus[index];
#endif
}

inline void clear_frame_local(Frame* frame, Py_ssize_t index) {
#if PY_VERSION_HEX >= 0x030E0000
  PyStackRef_CLEAR(frame->localsplus[index]);
#else
  Py_CLEAR(frame->localsplus[index]);
#endif
}

// Ends a frame that is never evaluated. In 3.11 the caller clears it, since 3.12 the callee does: in 3.12 we leave that
// to CPython by letting it evaluate `empty_code` (`lambda: None`) in this very frame, unseen by debuggers and profilers.
// Keeps a pending exception.
inline void discard_frame(PyThreadState* thread, Frame* frame, PyCodeObject* empty_code) {
#if PY_VERSION_HEX >= 0x030D0000
  (void)empty_code;
  PyObject* error = PyErr_GetRaisedException();
  _PyEval_FrameClearAndPop(thread, frame);
  PyErr_SetRaisedException(error);
#elif PY_VERSION_HEX >= 0x030C0000
  PyObject* error = PyErr_GetRaisedException();
  Py_INCREF(empty_code);
  PyObject* previous = reinterpret_cast<PyObject*>(frame->f_code);
  frame->f_code = empty_code;
  frame->prev_instr = _PyCode_CODE(empty_code) - 1;
  thread->tracing++;
  Py_XDECREF(_PyEval_EvalFrameDefault(thread, frame, 0));
  thread->tracing--;
  Py_DECREF(previous);
  PyErr_SetRaisedException(error);
#else
  (void)thread, (void)frame, (void)empty_code;
#endif
}

}  // namespace framejit
#endif
