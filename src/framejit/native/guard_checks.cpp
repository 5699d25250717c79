// See guard_checks.h.
#include "guard_checks.h"

#include <algorithm>
#include <cstring>

namespace framejit {

static PyObject* guard_reference_type = nullptr;

static const struct {
  const char* name;
  Accessor kind;
} accessors[] = {{"slot", Accessor::Slot},   {"const", Accessor::Const}, {"cell", Accessor::Cell},
             {"dict", Accessor::Dict},   {"item", Accessor::Item},   {"index", Accessor::Index},
             {"type", Accessor::Type},   {"type_attr", Accessor::TypeAttr}, {"attr", Accessor::Attr},
             {"call", Accessor::Call},   {"key_at", Accessor::KeyAt}, {"value_at", Accessor::ValueAt},
             {"proxied", Accessor::Proxied}};

const char* accessor_name(Accessor kind) {
  for (auto& row : accessors) {
    if (row.kind == kind) return row.name;
  }
  return "";
}

int parse_access(PyObject* name, PyObject* key, bool is_root, Access* access) {
  bool found = false;
  for (auto& row : accessors) {
    if (PyUnicode_Check(name) && PyUnicode_CompareWithASCIIString(name, row.name) == 0) {
      access->kind = row.kind;
      found = true;
    }
  }
  if (!found) {
    PyErr_Format(PyExc_ValueError, "unknown accessor %R", name);
    return -1;
  }
  if (is_root != (access->kind == Accessor::Slot || access->kind == Accessor::Const)) {
    PyErr_Format(PyExc_ValueError, "accessor %R and the parent index do not fit", name);
    return -1;
  }
  access->key = Ref::borrow(key);
  switch (access->kind) {
    case Accessor::Slot:
    case Accessor::Index:
    case Accessor::KeyAt:
    case Accessor::ValueAt:
      access->index = PyLong_AsSsize_t(key);
      return access->index == -1 && PyErr_Occurred() ? -1 : 0;
    case Accessor::Item:
      access->hash = PyObject_Hash(key);
      access->string_key = PyUnicode_CheckExact(key);
      if (access->hash == -1) return -1;
      // Weakly if possible, like what an Id check compares with; a frozenset may have been made for this guard.
      access->weak = supports_weakrefs(key) && !PyAnySet_Check(key);
      if (access->weak) access->key = new_guard_reference(key);
      return access->key ? 0 : -1;
    case Accessor::TypeAttr:
    case Accessor::Attr: {
      if (!PyUnicode_CheckExact(key)) {
        PyErr_Format(PyExc_TypeError, "%U needs a str, not %R", name, key);
        return -1;
      }
      PyObject* interned = Py_NewRef(key);
      PyUnicode_InternInPlace(&interned);
      access->key = Ref::steal(interned);
      static const struct {
        const char* name;
        Field field;
      } fields[] = {{"__closure__", Field::Closure}, {"__defaults__", Field::Defaults},
                    {"__kwdefaults__", Field::KwDefaults}, {"__code__", Field::Code},
                    {"__globals__", Field::Globals}, {"__self__", Field::Self}, {"__func__", Field::Func},
                    {"__name__", Field::Name}, {"__qualname__", Field::QualName}, {"__mro__", Field::Mro},
                    {"__bases__", Field::Bases}};
      for (auto& row : fields) {
        if (access->kind == Accessor::Attr && PyUnicode_CompareWithASCIIString(key, row.name) == 0) {
          access->field = row.field;
        }
      }
      return 0;
    }
    default:
      return 0;
  }
}

static int parse_node_indices(PyObject* numbers, int node_index, std::vector<int>* nodes) {
  Ref fast = Ref::steal(PySequence_Fast(numbers, "node indices must be a sequence"));
  if (!fast) return -1;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(fast.get()); i++) {
    long node = PyLong_AsLong(PySequence_Fast_GET_ITEM(fast.get(), i));
    if (node == -1 && PyErr_Occurred()) return -1;
    if (node < 0 || node >= node_index) {
      PyErr_Format(PyExc_ValueError, "node %d refers to node %ld, which is not an earlier one", node_index, node);
      return -1;
    }
    nodes->push_back(static_cast<int>(node));
  }
  return 0;
}

PyTypeObject* tensor_class() {
  static PyObject* found = nullptr;
  if (!found) {
    Ref torch = Ref::steal(PyImport_ImportModule("torch"));
    found = torch ? PyObject_GetAttrString(torch.get(), "Tensor") : nullptr;
  }
  return reinterpret_cast<PyTypeObject*>(found);
}

static int parse_tensor(PyObject* spec, Check* check) {
  PyObject* example = PyTuple_GET_ITEM(spec, 1);
  if (!tensor_class()) return -1;
  if (!PyObject_TypeCheck(example, tensor_class())) {
    PyErr_Format(PyExc_TypeError, "a tensor check needs a tensor, not %R", reinterpret_cast<PyObject*>(Py_TYPE(example)));
    return -1;
  }
  long flags = PyTuple_GET_SIZE(spec) > 2 ? PyLong_AsLong(PyTuple_GET_ITEM(spec, 2)) : 0;
  if (flags == -1 && PyErr_Occurred()) return -1;
  std::vector<int64_t> free[2];  // dimensions whose size, whose stride may vary
  Py_ssize_t given = PyTuple_GET_SIZE(spec) - 3;
  for (Py_ssize_t which = 0; which < given && which < 2; which++) {
    Ref dims = Ref::steal(PySequence_Fast(PyTuple_GET_ITEM(spec, 3 + which), "dynamic dims must be a sequence"));
    if (!dims) return -1;
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(dims.get()); i++) {
      free[which].push_back(PyLong_AsLongLong(PySequence_Fast_GET_ITEM(dims.get(), i)));
      if (PyErr_Occurred()) return -1;
    }
  }
  try {
    check->tensor = std::make_unique<TensorCheck>(example, flags & 1, free[0], given > 1 ? &free[1] : nullptr);
  } catch (const std::exception& error) {
    if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "cannot read the tensor's metadata: %s", error.what());
    return -1;
  }
  check->payload = Ref::borrow(reinterpret_cast<PyObject*>(Py_TYPE(example)));
  return 0;
}

// What `TensorCheck::metadata` returned, in place of an example.
static int parse_metadata(PyObject* spec, Check* check) {
  PyObject* type = PyTuple_GET_ITEM(spec, 1);
  if (!PyType_Check(type)) {
    PyErr_Format(PyExc_TypeError, "a check of metadata needs the tensor's class, not %R", type);
    return -1;
  }
  check->tensor = std::make_unique<TensorCheck>(reinterpret_cast<PyTypeObject*>(type), PyTuple_GET_ITEM(spec, 2));
  check->payload = Ref::borrow(type);
  return PyErr_Occurred() ? -1 : 0;
}

static const struct {
  const char* name;
  CheckKind kind;
  Py_ssize_t size;  // of the tuple, at least
} check_kinds[] = {{"type", CheckKind::Type, 2},         {"id", CheckKind::Id, 2},
             {"equals", CheckKind::Equals, 2},     {"len", CheckKind::Len, 2},
             {"keys", CheckKind::Keys, 2},         {"absent", CheckKind::Absent, 1},
             {"present", CheckKind::Present, 1},   {"function", CheckKind::Function, 2},
             {"tensor", CheckKind::Tensor, 2},     {"same", CheckKind::Same, 2},
             {"distinct", CheckKind::Distinct, 2}, {"bool", CheckKind::Bool, 2},
             {"metadata", CheckKind::Tensor, 3},   {"apart", CheckKind::Apart, 2},
             {"leaf", CheckKind::Leaf, 2}};

Ref new_guard_reference(PyObject* object) { return Ref::steal(PyObject_CallOneArg(guard_reference_type, object)); }

static PyObject* guard_reference_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  if (PyTuple_GET_SIZE(args) > 0 && !supports_weakrefs(PyTuple_GET_ITEM(args, 0))) {
    return PyErr_Format(PyExc_TypeError, "cannot create weak reference to '%s' object", Py_TYPE(PyTuple_GET_ITEM(args, 0))->tp_name);
  }
  return _PyWeakref_RefType.tp_new(type, args, kwargs);
}

int add_guard_reference(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_new, reinterpret_cast<void*>(guard_reference_new)},
      {Py_tp_doc, const_cast<char*>("A weak reference that a guard holds: a type of its own, so that the program's can be told apart.")},
      {0, nullptr}};
  static PyType_Spec spec = {"framejit.native._C.GuardReference", 0, 0, Py_TPFLAGS_DEFAULT, slots};
  guard_reference_type = PyType_FromSpecWithBases(&spec, reinterpret_cast<PyObject*>(&_PyWeakref_RefType));
  return guard_reference_type ? PyModule_AddObjectRef(module, "GuardReference", guard_reference_type) : -1;
}

int add_check_names(PyObject* module) {
  Ref names = Ref::steal(PyFrozenSet_New(nullptr));
  for (auto& row : check_kinds) {
    Ref name = Ref::steal(PyUnicode_FromString(row.name));
    if (!names || !name || PySet_Add(names.get(), name.get()) < 0) return -1;
  }
  return PyModule_AddObjectRef(module, "CHECKS", names.get());
}

// ---- parsing --------------------------------------------------------------------------------------------------

const char* check_name(CheckKind kind) {
  for (auto& row : check_kinds) {
    if (row.kind == kind) return row.name;
  }
  return "";
}

int parse_check(PyObject* spec, int node_index, Check* check) {
  if (!PyTuple_Check(spec) || PyTuple_GET_SIZE(spec) < 1 || !PyUnicode_Check(PyTuple_GET_ITEM(spec, 0))) {
    PyErr_Format(PyExc_TypeError, "a check must be a tuple (kind, ...), not %R", spec);
    return -1;
  }
  const char* name = nullptr;
  for (auto& row : check_kinds) {
    if (PyUnicode_CompareWithASCIIString(PyTuple_GET_ITEM(spec, 0), row.name) != 0) continue;
    if (PyTuple_GET_SIZE(spec) < row.size) break;
    name = row.name;
    check->kind = row.kind;
  }
  if (!name) {
    PyErr_Format(PyExc_ValueError, "unknown or incomplete check %R", spec);
    return -1;
  }
  PyObject* payload = PyTuple_GET_SIZE(spec) > 1 ? PyTuple_GET_ITEM(spec, 1) : nullptr;
  auto require = [&](bool fits, const char* what) {
    if (fits) {
      check->payload = Ref::borrow(payload);
      return 0;
    }
    PyErr_Format(PyExc_TypeError, "check %s needs %s, not %R", name, what, payload);
    return -1;
  };
  switch (check->kind) {
    case CheckKind::Type:
      return require(PyType_Check(payload), "a type");
    case CheckKind::Id:
      // Weakly if possible: a guard must not keep a module alive, and a dead object equals nothing.
      check->weak = supports_weakrefs(payload);
      check->payload = check->weak ? new_guard_reference(payload) : Ref::borrow(payload);
      return check->payload ? 0 : -1;
    case CheckKind::Len:
      check->number = PyLong_AsSsize_t(payload);
      return PyErr_Occurred() ? -1 : 0;
    case CheckKind::Bool:
      check->number = PyObject_IsTrue(payload);
      return PyErr_Occurred() ? -1 : 0;
    case CheckKind::Keys:
      return require(PyTuple_CheckExact(payload), "a tuple");
    case CheckKind::Function:
      return require(PyCode_Check(payload), "a code object");
    case CheckKind::Tensor:
      return strcmp(name, "tensor") == 0 ? parse_tensor(spec, check) : parse_metadata(spec, check);
    case CheckKind::Same: {
      Ref one = Ref::steal(PyTuple_Pack(1, payload));
      return one ? parse_node_indices(one.get(), node_index, &check->nodes) : -1;
    }
    case CheckKind::Distinct:
    case CheckKind::Apart:
      return parse_node_indices(payload, node_index, &check->nodes);
    case CheckKind::Leaf:
      check->number = PyObject_IsTrue(payload);
      return tensor_class() && !PyErr_Occurred() ? 0 : -1;
    default:
      check->payload = Ref::borrow(payload);
      return 0;
  }
}

bool all_differ(std::vector<PyObject*>& objects) {
  std::sort(objects.begin(), objects.end());
  return std::adjacent_find(objects.begin(), objects.end()) == objects.end();
}

// ---- accessors ------------------------------------------------------------------------------------------------

static PyObject* none_if_null(PyObject* value) { return value ? value : Py_None; }

static bool load_field(Field field, PyObject* parent, PyObject** value) {
  if (PyFunction_Check(parent)) {
    auto* function = reinterpret_cast<PyFunctionObject*>(parent);
    switch (field) {
      case Field::Closure: *value = none_if_null(function->func_closure); return true;
      case Field::Defaults: *value = none_if_null(function->func_defaults); return true;
      case Field::KwDefaults: *value = none_if_null(function->func_kwdefaults); return true;
      case Field::Code: *value = function->func_code; return true;
      case Field::Globals: *value = function->func_globals; return true;
      case Field::Name: *value = function->func_name; return true;
      case Field::QualName: *value = function->func_qualname; return true;
      default: return false;
    }
  }
  if (Py_IS_TYPE(parent, &PyMethod_Type)) {
    if (field == Field::Self) return *value = PyMethod_GET_SELF(parent), true;
    if (field == Field::Func) return *value = PyMethod_GET_FUNCTION(parent), true;
  }
  if (PyType_Check(parent) && PyType_HasFeature(reinterpret_cast<PyTypeObject*>(parent), Py_TPFLAGS_HEAPTYPE)) {
    auto* type = reinterpret_cast<PyHeapTypeObject*>(parent);
    switch (field) {
      case Field::Name: *value = type->ht_name; return true;
      case Field::QualName: *value = type->ht_qualname; return true;
      case Field::Mro: *value = type->ht_type.tp_mro; return true;
      case Field::Bases: *value = type->ht_type.tp_bases; return true;
      default: return false;
    }
  }
  return false;
}

// A slot, or another field that holds an object: read as its descriptor would, which wins over everything else.
static PyMemberDef* find_member(PyObject* name, PyObject* parent) {
  PyTypeObject* type = Py_TYPE(parent);
  if (type->tp_getattro != PyObject_GenericGetAttr) return nullptr;
  PyObject* found = _PyType_Lookup(type, name);
  if (found == nullptr || !Py_IS_TYPE(found, &PyMemberDescr_Type)) return nullptr;
  auto* descriptor = reinterpret_cast<PyMemberDescrObject*>(found);
  PyMemberDef* member = descriptor->d_member;
  bool holds_object = member->type == T_OBJECT_EX || member->type == T_OBJECT;
  return holds_object && PyObject_TypeCheck(parent, descriptor->d_common.d_type) ? member : nullptr;
}

static PyObject** address_of(PyMemberDef* member, PyObject* parent) {
  return reinterpret_cast<PyObject**>(reinterpret_cast<char*>(parent) + member->offset);
}

PyObject** member_address(PyObject* name, PyObject* parent, PyObject** if_null) {
  PyMemberDef* member = find_member(name, parent);
  if (member == nullptr) return nullptr;
  *if_null = member->type == T_OBJECT ? Py_None : nullptr;
  return address_of(member, parent);
}

static bool load_member(PyObject* name, PyObject* parent, PyObject** value) {
  PyMemberDef* member = find_member(name, parent);
  if (member == nullptr) return false;
  PyObject* held = *address_of(member, parent);
  *value = held || member->type == T_OBJECT_EX ? held : Py_None;
  return true;
}

bool load_pure(const Access& access, PyObject* parent, PyObject** value) {
  *value = nullptr;
  if (access.kind == Accessor::Const) return *value = access.key.get(), true;
  if (parent == nullptr) return true;
  switch (access.kind) {
    case Accessor::Cell:
      if (PyCell_Check(parent)) *value = PyCell_GET(parent);
      return true;
    case Accessor::Dict:
      if (PyType_Check(parent)) return *value = type_own_dict(reinterpret_cast<PyTypeObject*>(parent)), true;
      *value = existing_instance_dict(parent);
      // An object that could have a dict but has none yet: making one allocates.
      return *value != nullptr || (Py_TYPE(parent)->tp_dictoffset == 0 &&
                                   !PyType_HasFeature(Py_TYPE(parent), Py_TPFLAGS_MANAGED_DICT));
    case Accessor::Item:
      if (!PyDict_Check(parent)) return true;
      if (!access.string_key || !dict_has_only_string_keys(parent)) return false;
      *value = dict_get_known_hash(parent, access.key.get(), access.hash);
      return true;
    case Accessor::Index:
      if (access.index < 0) return true;
      if (PyTuple_Check(parent) && access.index < PyTuple_GET_SIZE(parent)) {
        *value = PyTuple_GET_ITEM(parent, access.index);
      } else if (PyList_Check(parent) && access.index < PyList_GET_SIZE(parent)) {
        *value = PyList_GET_ITEM(parent, access.index);
      }
      return true;
    case Accessor::Type:
      return *value = reinterpret_cast<PyObject*>(Py_TYPE(parent)), true;
    case Accessor::TypeAttr:
      if (PyType_Check(parent)) *value = _PyType_Lookup(reinterpret_cast<PyTypeObject*>(parent), access.key.get());
      return true;
    case Accessor::Attr:
      return (access.field != Field::None && load_field(access.field, parent, value)) ||
          load_member(access.key.get(), parent, value);
    case Accessor::Proxied:
      // The start of CPython's mappingproxyobject, the same in all releases.
      if (Py_IS_TYPE(parent, &PyDictProxy_Type)) {
        struct Proxy {
          PyObject_HEAD
          PyObject* mapping;
        };
        *value = reinterpret_cast<Proxy*>(parent)->mapping;
      }
      return true;
    case Accessor::KeyAt:
    case Accessor::ValueAt: {
      if (!PyDict_Check(parent)) return true;
      if (has_own_order(parent)) return false;
      bool key = access.kind == Accessor::KeyAt;
      PyObject **first = key ? value : nullptr, **second = key ? nullptr : value, *further;
      // An entry is where its position says, unless there are gaps: then there are entries further on than the size.
      Py_ssize_t position = access.index, end = PyDict_GET_SIZE(parent);
      if (access.index < end && !PyDict_Next(parent, &end, &further, nullptr)) {
        PyDict_Next(parent, &position, first, second);
        return true;
      }
      position = 0;
      for (Py_ssize_t i = 0; i <= access.index; i++) {
        if (!PyDict_Next(parent, &position, first, second)) return *value = nullptr, true;
      }
      return true;
    }
    default:
      return false;
  }
}

static Ref nothing_on_error(PyObject* new_reference) {
  if (new_reference == nullptr) PyErr_Clear();
  return Ref::steal(new_reference);
}

// The keys in the order that iteration shows, as a list.
static Ref ordered_keys(PyObject* dict) {
  if (!has_own_order(dict)) return nothing_on_error(PyDict_Keys(dict));
  Ref iterator = nothing_on_error(PyODict_Type.tp_iter(dict));  // not that of a subclass
  return iterator ? nothing_on_error(PySequence_List(iterator.get())) : Ref();
}

static Ref item_of(PyObject* dict, PyObject* key) {
  PyObject* value = PyDict_GetItemWithError(dict, key);
  if (value == nullptr && PyErr_Occurred()) PyErr_Clear();
  return Ref::borrow(value);
}

Ref c_attribute(PyObject* object, PyObject* name) {
  PyTypeObject* type = Py_TYPE(object);
  getattrofunc look_up = type->tp_getattro;
  if (look_up != PyObject_GenericGetAttr && PyType_HasFeature(type, Py_TPFLAGS_HEAPTYPE) && !PyModule_Check(object)) {
    // The first function on the way that is written in C.
    static PyObject* asked = PyUnicode_InternFromString("__getattribute__");
    PyObject* order = type->tp_mro;
    for (Py_ssize_t i = 0; asked && order && i < PyTuple_GET_SIZE(order); i++) {
      PyObject* own = type_own_dict(reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(order, i)));
      PyObject* found = own ? PyDict_GetItemWithError(own, asked) : nullptr;
      if (found == nullptr || !Py_IS_TYPE(found, &PyWrapperDescr_Type)) continue;
      PyTypeObject* owner = reinterpret_cast<PyWrapperDescrObject*>(found)->d_common.d_type;
      if (!PyObject_TypeCheck(object, owner)) continue;
      look_up = owner->tp_getattro;
      break;
    }
  }
  return Ref::steal(look_up(object, name));
}

Ref load_full(const Access& access, PyObject* parent) {
  PyObject* value;
  if (load_pure(access, parent, &value)) return Ref::borrow(value);
  switch (access.kind) {
    case Accessor::Dict:
      return Ref::borrow(materialise_instance_dict(parent));
    case Accessor::Item: {
      if (!access.weak) return item_of(parent, access.key.get());
      Ref key = Ref::borrow(weak_referent(access.key.get()));
      return key.get() == Py_None ? Ref() : item_of(parent, key.get());  // nothing has a key that has died
    }
    case Accessor::Attr:
      return nothing_on_error(c_attribute(parent, access.key.get()).release());
    case Accessor::Call:
      return nothing_on_error(PyObject_CallOneArg(access.key.get(), parent));
    case Accessor::KeyAt:
    case Accessor::ValueAt: {
      Ref keys = ordered_keys(parent);
      if (!keys || access.index < 0 || access.index >= PyList_GET_SIZE(keys.get())) return Ref();
      PyObject* key = PyList_GET_ITEM(keys.get(), access.index);
      return access.kind == Accessor::KeyAt ? Ref::borrow(key) : item_of(parent, key);
    }
    default:
      return Ref();
  }
}

// ---- checks ---------------------------------------------------------------------------------------------------

static bool compares_by_identity(PyTypeObject* type) {
  return type->tp_richcompare == nullptr || type->tp_richcompare == PyBaseObject_Type.tp_richcompare;
}

static bool compares_as_tuple(PyTypeObject* type) { return type->tp_richcompare == PyTuple_Type.tp_richcompare; }

bool is_unchanging(PyObject* value) {
  PyTypeObject* type = Py_TYPE(value);
  if (value == Py_None || type == &PyBool_Type || type == &PyLong_Type || type == &PyFloat_Type ||
      type == &PyUnicode_Type || type == &PyBytes_Type || type == &PyComplex_Type || value == Py_Ellipsis) {
    return true;
  }
  // A class whose instances may be changed, e.g. by adding __eq__, is a heap type.
  if (type->tp_flags & Py_TPFLAGS_HEAPTYPE) return false;
  if (type == &PyTuple_Type || (PyTuple_Check(value) && compares_as_tuple(type))) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
      if (!is_unchanging(PyTuple_GET_ITEM(value, i))) return false;
    }
    return true;
  }
  return compares_by_identity(type);
}

static Answer equals_pure(PyObject* value, PyObject* expected) {
  if (value == expected) return Answer::Yes;
  PyTypeObject* type = Py_TYPE(expected);
  if (Py_TYPE(value) != type) return Answer::No;
  if (type == &PyUnicode_Type) return answer(PyUnicode_Compare(value, expected) == 0);
  if (type == &PyLong_Type) {
    PyObject* result = PyLong_Type.tp_richcompare(value, expected, Py_EQ);
    Py_DECREF(result);  // True or False
    return answer(result == Py_True);
  }
  if (type == &PyFloat_Type) {  // by bits: a constant in a graph may be -0.0 or nan
    double left = PyFloat_AS_DOUBLE(value), right = PyFloat_AS_DOUBLE(expected);
    return answer(memcmp(&left, &right, sizeof left) == 0);
  }
  if (type == &PyComplex_Type) {
    Py_complex left = PyComplex_AsCComplex(value), right = PyComplex_AsCComplex(expected);
    return answer(memcmp(&left, &right, sizeof left) == 0);
  }
  if (type == &PyBytes_Type) {
    return answer(PyBytes_GET_SIZE(value) == PyBytes_GET_SIZE(expected) &&
                  memcmp(PyBytes_AS_STRING(value), PyBytes_AS_STRING(expected), PyBytes_GET_SIZE(value)) == 0);
  }
  if (PyTuple_Check(value) && compares_as_tuple(type)) {
    if (PyTuple_GET_SIZE(value) != PyTuple_GET_SIZE(expected)) return Answer::No;
    Answer all = Answer::Yes;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
      Answer one = equals_pure(PyTuple_GET_ITEM(value, i), PyTuple_GET_ITEM(expected, i));
      if (one == Answer::No) return Answer::No;
      if (one == Answer::Unknown) all = Answer::Unknown;
    }
    return all;
  }
  return compares_by_identity(type) ? Answer::No : Answer::Unknown;
}

static bool equals_full(PyObject* value, PyObject* expected);

// The same elements with the same types: {1} == {1.0} is not enough. Two sets that were built alike
// list their elements alike; otherwise each one is looked for.
static bool elements_equal(PyObject* value, PyObject* expected) {
  Ref left = Ref::steal(PySequence_List(value)), right = Ref::steal(PySequence_List(expected));
  if (!left || !right || PyList_GET_SIZE(left.get()) != PyList_GET_SIZE(right.get())) {
    PyErr_Clear();
    return false;
  }
  Py_ssize_t size = PyList_GET_SIZE(left.get());
  for (Py_ssize_t i = 0; i < size; i++) {
    PyObject* element = PyList_GET_ITEM(left.get(), i);
    bool found = equals_full(element, PyList_GET_ITEM(right.get(), i));
    for (Py_ssize_t j = 0; j < size && !found; j++) found = equals_full(element, PyList_GET_ITEM(right.get(), j));
    if (!found) return false;
  }
  return true;
}

static bool equals_full(PyObject* value, PyObject* expected) {
  Answer quick = equals_pure(value, expected);
  if (quick != Answer::Unknown) return quick == Answer::Yes;
  if (PyTuple_CheckExact(value)) {  // element by element, so that exact types count inside as well
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(value); i++) {
      if (!equals_full(PyTuple_GET_ITEM(value, i), PyTuple_GET_ITEM(expected, i))) return false;
    }
    return true;
  }
  int equal = PyObject_RichCompareBool(value, expected, Py_EQ);
  if (equal < 0) PyErr_Clear();
  if (equal == 1 && PyRange_Check(value)) {  // range(0, 5, 2) == range(0, 6, 2), and their stops differ
    for (const char* name : {"start", "stop", "step"}) {
      Ref left = Ref::steal(PyObject_GetAttrString(value, name));
      Ref right = Ref::steal(PyObject_GetAttrString(expected, name));
      if (!left || !right || !equals_full(left.get(), right.get())) return PyErr_Clear(), false;
    }
  }
  if (equal == 1 && PyAnySet_CheckExact(value)) return elements_equal(value, expected);
  return equal == 1;
}

static Answer keys_pure(PyObject* dict, PyObject* expected) {
  if (!PyDict_Check(dict) || PyDict_GET_SIZE(dict) != PyTuple_GET_SIZE(expected)) return Answer::No;
  if (has_own_order(dict)) return Answer::Unknown;
  Py_ssize_t position = 0;
  PyObject* key;
  for (Py_ssize_t i = 0; PyDict_Next(dict, &position, &key, nullptr); i++) {
    Answer same = equals_pure(key, PyTuple_GET_ITEM(expected, i));
    if (same != Answer::Yes) return same;
  }
  return Answer::Yes;
}

static bool keys_full(PyObject* dict, PyObject* expected) {
  Answer quick = keys_pure(dict, expected);
  if (quick != Answer::Unknown) return quick == Answer::Yes;
  Ref keys = ordered_keys(dict);
  if (!keys || PyList_GET_SIZE(keys.get()) != PyTuple_GET_SIZE(expected)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(expected); i++) {
    if (!equals_full(PyList_GET_ITEM(keys.get(), i), PyTuple_GET_ITEM(expected, i))) return false;
  }
  return true;
}

// The size that the built-in base type stores; -1 for anything else.
static Py_ssize_t builtin_size(PyObject* value) {
  if (PyTuple_Check(value) || PyList_Check(value)) return Py_SIZE(value);
  if (PyDict_Check(value)) return PyDict_GET_SIZE(value);
  if (PyAnySet_Check(value)) return PySet_GET_SIZE(value);
  if (PyUnicode_Check(value)) return PyUnicode_GET_LENGTH(value);
  if (PyBytes_Check(value)) return PyBytes_GET_SIZE(value);
  return -1;
}

static Answer truth_of_builtin(PyObject* value, bool expected) {
  if (value == Py_None || PyBool_Check(value)) return answer((value == Py_True) == expected);
  PyTypeObject* type = Py_TYPE(value);
  if (type == &PyLong_Type || type == &PyFloat_Type || type == &PyComplex_Type) {
    return answer(type->tp_as_number->nb_bool(value) == static_cast<int>(expected));
  }
  // Also inside instances of subclasses: that these override neither __bool__ nor __len__ is guarded on their class.
  Py_ssize_t size = builtin_size(value);
  return answer(size >= 0 && (size > 0) == expected);
}

Answer check_pure(const Check& check, PyObject* value, const ThreadKeys& thread) {
  if (value == nullptr) return answer(check.kind == CheckKind::Absent);
  PyObject* payload = check.payload.get();
  switch (check.kind) {
    case CheckKind::Type: return answer(reinterpret_cast<PyObject*>(Py_TYPE(value)) == payload);
    case CheckKind::Id:
      // A dead reference shows None, which is never the object of a weak one.
      return answer(check.weak ? value == weak_referent(payload) && value != Py_None : value == payload);
    case CheckKind::Equals: return equals_pure(value, payload);
    case CheckKind::Len: return answer(builtin_size(value) == check.number);
    case CheckKind::Keys: return keys_pure(value, payload);
    case CheckKind::Absent: return Answer::No;
    case CheckKind::Present: return Answer::Yes;
    case CheckKind::Function:
      return answer(PyFunction_Check(value) && PyFunction_GET_CODE(value) == payload);
    case CheckKind::Tensor:
      return check.tensor->plain() ? answer(check.tensor->matches(value, thread)) : Answer::Unknown;
    case CheckKind::Bool: return truth_of_builtin(value, check.number != 0);
    case CheckKind::Leaf: return answer(is_plain_leaf(value, check.number != 0));
    default: return Answer::Unknown;
  }
}

bool check_full(const Check& check, PyObject* value, const ThreadKeys& thread) {
  Answer quick = check_pure(check, value, thread);
  if (quick != Answer::Unknown) return quick == Answer::Yes;
  PyObject* payload = check.payload.get();
  switch (check.kind) {
    case CheckKind::Equals: return equals_full(value, payload);
    case CheckKind::Keys: return keys_full(value, payload);
    case CheckKind::Tensor: return check.tensor->matches(value, thread);
    default: return false;
  }
}

}  // namespace framejit
