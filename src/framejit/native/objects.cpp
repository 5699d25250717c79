// What generated functions do to objects, without a Python frame for each: attributes and items of builtin dicts are
// written by the builtin classes' own methods, objects are made without __init__; and the state of the random numbers.
// In: objects. Out: the functions of module.cpp that codegen/runtime.py hands to generated code.
#include "objects.h"

#include <ATen/CPUGeneratorImpl.h>

#include <mutex>
#include <unordered_map>
#include <vector>

namespace framejit {

static PyObject* deleted = nullptr;          // means "there is to be no value"
static setattrofunc written_in_python;       // tp_setattro of classes with a __setattr__ of their own
static PyObject* new_name = nullptr;         // "__new__"

// Whether object.__setattr__ accepts the object: no C class on the way to `object` has a rule of its own.
static bool has_plain_attributes(PyTypeObject* type) {
  for (; type != nullptr; type = type->tp_base) {
    if (type->tp_setattro != PyObject_GenericSetAttr && type->tp_setattro != written_in_python) return false;
  }
  return true;
}

// True if nothing was raised but an error of `kind`, which is forgotten.
static bool forgive(PyObject* kind) {
  if (!PyErr_ExceptionMatches(kind)) return false;
  PyErr_Clear();
  return true;
}

static PyObject* set_attributes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 2 || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) != count - 2) {
    PyErr_SetString(PyExc_TypeError, "set_attributes takes an object, a tuple of names, and as many values");
    return nullptr;
  }
  if (!has_plain_attributes(Py_TYPE(args[0]))) {
    return PyErr_Format(PyExc_TypeError, "can't apply object.__setattr__ to %s object", Py_TYPE(args[0])->tp_name);
  }
  for (Py_ssize_t i = 2; i < count; i++) {
    PyObject* value = args[i] == deleted ? nullptr : args[i];
    // What the program itself added before it deleted it may never have existed outside.
    if (PyObject_GenericSetAttr(args[0], PyTuple_GET_ITEM(args[1], i - 2), value) < 0 &&
        (value != nullptr || !forgive(PyExc_AttributeError))) {
      return nullptr;
    }
  }
  Py_RETURN_NONE;
}

// write_dict(target, (key, value, ...)): the target.
static PyObject* write_dict(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyDict_Check(args[0]) || !PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) % 2 != 0) {
    PyErr_SetString(PyExc_TypeError, "write_dict takes a dict and a tuple of keys and values");
    return nullptr;
  }
  // The base class whose methods keep the target consistent.
  bool ordered = PyODict_Check(args[0]);
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[1]); i += 2) {
    PyObject *key = PyTuple_GET_ITEM(args[1], i), *value = PyTuple_GET_ITEM(args[1], i + 1);
    int failed;
    if (value == deleted) {
      failed = ordered ? PyODict_DelItem(args[0], key) : PyDict_DelItem(args[0], key);
      if (failed < 0 && forgive(PyExc_KeyError)) continue;
    } else {
      failed = ordered ? PyODict_SetItem(args[0], key, value) : PyDict_SetItem(args[0], key, value);
    }
    if (failed < 0) return nullptr;
  }
  return Py_NewRef(args[0]);
}

// ---- keys with a __hash__ of their own ----------------------------------------------------------------------------

// While it lives, some objects have known hashes and are equal to themselves only: their classes' slots are replaced,
// which Python code cannot see because none runs meanwhile (no key's own methods, no collection of garbage).
class KnownHashes {
 public:
  KnownHashes() : outer(innermost), collecting(PyGC_Disable()) { innermost = this; }
  KnownHashes(const KnownHashes&) = delete;

  ~KnownHashes() {
    for (auto slot = replaced.rbegin(); slot != replaced.rend(); ++slot) {
      slot->type->tp_hash = slot->hash;
      slot->type->tp_richcompare = slot->compare;
    }
    innermost = outer;
    if (collecting) PyGC_Enable();
  }

  // `number` is what its __hash__ returned.
  bool add(PyObject* object, PyObject* number) {
    if (!PyLong_Check(number)) return PyErr_SetString(PyExc_TypeError, "a hash is an integer"), false;
    Py_hash_t hash = PyLong_AsSsize_t(number);  // as the type's slot does
    if (hash == -1 && PyErr_Occurred()) {
      PyErr_Clear();
      hash = PyLong_Type.tp_hash(number);
    }
    hashes[object] = hash == -1 ? -2 : hash;
    PyTypeObject* type = Py_TYPE(object);
    if (type->tp_hash != known_hash) {
      replaced.push_back({type, type->tp_hash, type->tp_richcompare});
      type->tp_hash = known_hash;
      type->tp_richcompare = same_object;
    }
    return true;
  }

 private:
  struct Slots {
    PyTypeObject* type;
    hashfunc hash;
    richcmpfunc compare;
  };

  static const Slots* own(PyTypeObject* type) {
    for (KnownHashes* known = innermost; known != nullptr; known = known->outer) {
      for (const Slots& slots : known->replaced) {
        if (slots.type == type) return &slots;
      }
    }
    return nullptr;
  }

  static const Py_hash_t* find(PyObject* object) {
    for (KnownHashes* known = innermost; known != nullptr; known = known->outer) {
      auto found = known->hashes.find(object);
      if (found != known->hashes.end()) return &found->second;
    }
    return nullptr;
  }

  static Py_hash_t known_hash(PyObject* object) {
    const Py_hash_t* hash = find(object);
    return hash != nullptr ? *hash : own(Py_TYPE(object))->hash(object);
  }

  static PyObject* same_object(PyObject* left, PyObject* right, int op) {
    if ((op == Py_EQ || op == Py_NE) && (find(left) != nullptr || find(right) != nullptr)) {
      return PyBool_FromLong((left == right) == (op == Py_EQ));
    }
    return own(Py_TYPE(left))->compare(left, right, op);
  }

  static KnownHashes* innermost;
  KnownHashes* outer;
  int collecting;
  std::unordered_map<PyObject*, Py_hash_t> hashes;
  std::vector<Slots> replaced;
};

KnownHashes* KnownHashes::innermost = nullptr;

// with_hashes((key, hash, ...), function, container, *arguments): function(container, *arguments).
static PyObject* with_hashes(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 3 || !PyTuple_Check(args[0]) || PyTuple_GET_SIZE(args[0]) % 2 != 0) {
    PyErr_SetString(PyExc_TypeError, "with_hashes takes a tuple of keys and hashes, a function, its arguments");
    return nullptr;
  }
  Ref before;  // what the container loses goes afterwards: its end may run Python code
  KnownHashes known;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[0]); i += 2) {
    if (!known.add(PyTuple_GET_ITEM(args[0], i), PyTuple_GET_ITEM(args[0], i + 1))) return nullptr;
  }
  if (PyDict_Check(args[2])) {
    before = Ref::steal(PyList_New(0));
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (before && PyDict_Next(args[2], &position, &key, &value)) {
      if (PyList_Append(before.get(), key) < 0 || PyList_Append(before.get(), value) < 0) return nullptr;
    }
    if (!before) return nullptr;
  } else if (PySet_Check(args[2])) {
    Ref iterator = Ref::steal(PySet_Type.tp_iter(args[2]));
    before = Ref::steal(iterator ? PySequence_List(iterator.get()) : nullptr);
    if (!before) return nullptr;
  }
  return PyObject_Vectorcall(args[1], args + 2, count - 2, nullptr);
}

// new_object(cls, base, *arguments): base.__new__(cls, *arguments).
static PyObject* new_object(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count < 2 || !PyType_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "new_object takes a class, its builtin base, and at most its content");
    return nullptr;
  }
  Ref make = Ref::steal(PyObject_GetAttr(args[1], new_name));
  if (!make) return nullptr;
  PyObject* passed[] = {args[0], count > 2 ? args[2] : nullptr};
  return PyObject_Vectorcall(make.get(), passed, count > 2 ? 2 : 1, nullptr);
}

// ---- random numbers ---------------------------------------------------------------------------------------------

struct RandomState {
  at::mt19937_data_pod engine;
  std::optional<float> next_float;
  std::optional<double> next_double;
};

static at::CPUGeneratorImpl* cpu_generator() {
  return static_cast<at::CPUGeneratorImpl*>(at::detail::getDefaultCPUGenerator().unsafeGetGeneratorImpl());
}

static void free_random_state(PyObject* capsule) {
  delete static_cast<RandomState*>(PyCapsule_GetPointer(capsule, nullptr));
}

static PyObject* random_state(PyObject*, PyObject*) {
  auto state = std::make_unique<RandomState>();
  {
    at::CPUGeneratorImpl* generator = cpu_generator();
    std::scoped_lock<std::mutex> lock(generator->mutex_);
    state->engine = generator->engine().data();
    state->next_float = generator->next_float_normal_sample();
    state->next_double = generator->next_double_normal_sample();
  }
  PyObject* capsule = PyCapsule_New(state.get(), nullptr, free_random_state);
  if (capsule != nullptr) state.release();
  return capsule;
}

static PyObject* restore_random(PyObject*, PyObject* capsule) {
  auto* state = static_cast<RandomState*>(PyCapsule_GetPointer(capsule, nullptr));
  if (state == nullptr) return nullptr;
  at::CPUGeneratorImpl* generator = cpu_generator();
  std::scoped_lock<std::mutex> lock(generator->mutex_);
  at::mt19937 engine = generator->engine();
  engine.set_data(state->engine);
  generator->set_engine(engine);
  generator->set_next_float_normal_sample(state->next_float);
  generator->set_next_double_normal_sample(state->next_double);
  Py_RETURN_NONE;
}

// ---- functools.lru_cache ----------------------------------------------------------------------------------------

// What a bounded cache holds under a key; the same in every release since 3.8 (its size is compared).
struct CachedLink {
  PyObject_HEAD
  CachedLink* previous;
  CachedLink* next;
  Py_hash_t hash;
  PyObject* key;
  PyObject* result;
};

// Of the objects that a cached function refers to: the last two dicts are its cache and its __dict__ (if it has
// one), the last plain object marks where keyword arguments start in a key.
struct CacheParts {
  PyObject* before = nullptr;
  PyObject* dict = nullptr;
  PyObject* mark = nullptr;
};

static int find_cache_part(PyObject* object, void* data) {
  auto* parts = static_cast<CacheParts*>(data);
  if (PyDict_CheckExact(object)) parts->before = parts->dict, parts->dict = object;
  if (Py_IS_TYPE(object, &PyBaseObject_Type)) parts->mark = object;
  return 0;
}

// cached_result(function, args, keywords, types): what functools.lru_cache holds for this call, which leaves no trace.
static PyObject* cached_result(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 4 || strcmp(Py_TYPE(args[0])->tp_name, "functools._lru_cache_wrapper") != 0) {
    PyErr_SetString(PyExc_TypeError, "cached_result takes a function under functools.lru_cache, and three tuples");
    return nullptr;
  }
  CacheParts parts;
  Py_TYPE(args[0])->tp_traverse(args[0], find_cache_part, &parts);
  PyObject** own = _PyObject_GetDictPtr(args[0]);
  PyObject* cache = own != nullptr && *own == parts.dict ? parts.before : parts.dict;
  if (cache == nullptr || parts.mark == nullptr) return PyErr_SetString(PyExc_LookupError, "no cache"), nullptr;
  PyObject* only = PyTuple_GET_SIZE(args[1]) == 1 ? PyTuple_GET_ITEM(args[1], 0) : nullptr;
  bool alone = only && PyTuple_GET_SIZE(args[2]) == 0 && PyTuple_GET_SIZE(args[3]) == 0;
  Ref key = Ref::borrow(args[1]);
  if (alone && (PyLong_CheckExact(only) || PyUnicode_CheckExact(only))) {
    key = Ref::borrow(only);
  } else {
    if (PyTuple_GET_SIZE(args[2]) != 0) {
      Ref mark = Ref::steal(PyTuple_Pack(1, parts.mark));
      if (!mark) return nullptr;
      key = Ref::steal(PySequence_Concat(key.get(), mark.get()));
      if (key) key = Ref::steal(PySequence_Concat(key.get(), args[2]));
    }
    if (key) key = Ref::steal(PySequence_Concat(key.get(), args[3]));
    if (!key) return nullptr;
  }
  PyObject* found = PyDict_GetItemWithError(cache, key.get());
  if (found == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_LookupError, "not in the cache");
    return nullptr;
  }
  if (strcmp(Py_TYPE(found)->tp_name, "functools._lru_list_elem") == 0) {
    if (Py_TYPE(found)->tp_basicsize != sizeof(CachedLink)) return PyErr_SetString(PyExc_LookupError, "layout"), nullptr;
    found = reinterpret_cast<CachedLink*>(found)->result;
  }
  return Py_NewRef(found);
}

// ---- methods ----------------------------------------------------------------------------------------------------

// What LOAD_SPECIAL leaves, bound: a method for an object, or what needs none.
static PyObject* bound_method(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count == 1) return Py_NewRef(args[0]);
  if (count != 2 || !Py_TYPE(args[1])->tp_descr_get) {
    PyErr_SetString(PyExc_TypeError, "bound_method takes an object, if there is one, and a method");
    return nullptr;
  }
  return Py_TYPE(args[1])->tp_descr_get(args[1], args[0], reinterpret_cast<PyObject*>(Py_TYPE(args[0])));
}

// ---- the module -------------------------------------------------------------------------------------------------

static PyMethodDef functions[] = {
    {"set_attributes", reinterpret_cast<PyCFunction>(set_attributes), METH_FASTCALL,
     "set_attributes(object, names, *values): as object.__setattr__ does; DELETED deletes."},
    {"write_dict", reinterpret_cast<PyCFunction>(write_dict), METH_FASTCALL,
     "write_dict(target, (key, value, ...)): as dict or OrderedDict does; DELETED deletes. Returns the target."},
    {"with_hashes", reinterpret_cast<PyCFunction>(with_hashes), METH_FASTCALL,
     "with_hashes((key, hash, ...), function, container, *arguments): calls it while no method of the keys runs."},
    {"new_object", reinterpret_cast<PyCFunction>(new_object), METH_FASTCALL,
     "new_object(cls, base[, content]): base.__new__(cls[, content])."},
    {"cached_result", reinterpret_cast<PyCFunction>(cached_result), METH_FASTCALL,
     "cached_result(function, args, keywords, types): what functools.lru_cache holds; LookupError."},
    {"bound_method", reinterpret_cast<PyCFunction>(bound_method), METH_FASTCALL,
     "bound_method([object, ]method): a function bound to the object; alone: itself."},
    {"cpu_random_state", random_state, METH_NOARGS, "The state of the CPU's default generator."},
    {"restore_cpu_random_state", restore_random, METH_O, "Put back what cpu_random_state() returned."},
    {nullptr, nullptr, 0, nullptr}};

int add_objects(PyObject* module) {
  deleted = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
  new_name = PyUnicode_InternFromString("__new__");
  Ref example = Ref::steal(PyObject_CallFunction(reinterpret_cast<PyObject*>(&PyType_Type), "s(){sO}", "Example",
                                                 "__setattr__", Py_None));
  if (!deleted || !new_name || !example) return -1;
  written_in_python = reinterpret_cast<PyTypeObject*>(example.get())->tp_setattro;
  if (PyModule_AddFunctions(module, functions) < 0) return -1;
  return PyModule_AddObjectRef(module, "DELETED", deleted);
}

}  // namespace framejit
