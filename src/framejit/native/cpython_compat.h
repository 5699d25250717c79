// Everything that differs between CPython 3.11, 3.12 and 3.13, and every look into CPython's private structures.
// In: objects. Out: small inline functions with one meaning on all releases. No other file tests PY_VERSION_HEX.
#pragma once
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <structmember.h>

#include <cstdint>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030E0000
#error "framejit supports CPython 3.11, 3.12 and 3.13"
#endif

namespace framejit {

// ---- dicts ----------------------------------------------------------------------------------------------------

// A number that no other state of any dict of this process has ever had. So two equal readings mean: the same dict,
// not changed in between, whatever the pointer was.
inline uint64_t dict_version(PyObject* dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  uint64_t tag = reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
#if PY_VERSION_HEX >= 0x030D0000
  return tag >> 12;  // the low bits belong to dict watchers
#elif PY_VERSION_HEX >= 0x030C0000
  return tag >> 8;
#else
  return tag;
#endif
}

// The eight bytes that hold the version. They may also change for other reasons (dict watchers).
inline const void* dict_version_address(PyObject* dict) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  return &reinterpret_cast<PyDictObject*>(dict)->ma_version_tag;
#pragma GCC diagnostic pop
}

// Makes the version of a dict change with every write to it. Since 3.13 the dict of an object may share the values that
// lie inside the object, which are written without it; taking an item out gives it a table of its own.
inline bool own_dict_values(PyObject* dict) {
#if PY_VERSION_HEX >= 0x030D0000
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

inline bool supports_weakrefs(PyObject* object) { return PyType_SUPPORTS_WEAKREFS(Py_TYPE(object)); }

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

}  // namespace framejit

// The part below needs CPython's internal headers; only hook.cpp asks for it.
#ifdef FRAMEJIT_WITH_FRAMES
#define Py_BUILD_CORE
#include <internal/pycore_frame.h>
#undef Py_BUILD_CORE

#if PY_VERSION_HEX >= 0x030D0000
extern "C" void _PyEval_FrameClearAndPop(PyThreadState*, struct _PyInterpreterFrame*);
#endif

namespace framejit {

using Frame = struct _PyInterpreterFrame;

inline PyCodeObject* frame_code(Frame* frame) {
#if PY_VERSION_HEX >= 0x030D0000
  return reinterpret_cast<PyCodeObject*>(frame->f_executable);
#else
  return frame->f_code;
#endif
}

inline PyFunctionObject* frame_function(Frame* frame) {
#if PY_VERSION_HEX >= 0x030C0000
  return reinterpret_cast<PyFunctionObject*>(frame->f_funcobj);
#else
  return frame->f_func;
#endif
}

// Evaluates a frame one level below our hook. From 3.12 on each C call costs from a fixed budget of C recursion, which
// a hook would halve for deep Python recursion; so the hook's own share is given back for the time of the call.
inline PyObject* evaluate_below(PyThreadState* thread, Frame* frame, int throwing, _PyFrameEvalFunction evaluate) {
#if PY_VERSION_HEX >= 0x030C0000
  constexpr int kHookUnits = 1;
  thread->c_recursion_remaining += kHookUnits;
  PyObject* result = evaluate(thread, frame, throwing);
  thread->c_recursion_remaining -= kHookUnits;
  return result;
#else
  return evaluate(thread, frame, throwing);
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
