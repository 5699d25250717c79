// What a guard tree and a global state were made of, as plain tuples, so that a package can hold them.
// In: a GuardTree or a GlobalState. Out: the node list that `GuardTree(nodes)` takes again, the values of the flags.
#include "guard_tree.h"

namespace framejit {

// What is held weakly.
static PyObject* living(PyObject* reference) {
  PyObject* object = PyWeakref_GetObject(reference);
  if (object == Py_None) return PyErr_SetString(PyExc_LookupError, "an object that a guard compares with has died"), nullptr;
  return Py_NewRef(object);
}

static PyObject* export_key(const Access& access) {
  switch (access.kind) {
    case Accessor::Slot:
    case Accessor::Index:
    case Accessor::KeyAt:
    case Accessor::ValueAt:
      return PyLong_FromSsize_t(access.index);
    case Accessor::Item:
      return access.weak ? living(access.key.get()) : Py_NewRef(access.key.get());
    default:
      return Py_NewRef(access.key ? access.key.get() : Py_None);
  }
}

static PyObject* export_nodes(const std::vector<int>& nodes) {
  Ref tuple = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(nodes.size())));
  if (!tuple) return nullptr;
  for (size_t i = 0; i < nodes.size(); i++) {
    PyObject* number = PyLong_FromLong(nodes[i]);
    if (!number) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), static_cast<Py_ssize_t>(i), number);
  }
  return tuple.release();
}

static PyObject* export_check(const Check& check) {
  const char* name = check_name(check.kind);
  switch (check.kind) {
    case CheckKind::Absent:
    case CheckKind::Present:
      return Py_BuildValue("(s)", name);
    case CheckKind::Len:
    case CheckKind::Bool:
    case CheckKind::Leaf:
      return Py_BuildValue("(sn)", name, check.number);
    case CheckKind::Same:
      return Py_BuildValue("(si)", name, check.nodes[0]);
    case CheckKind::Distinct:
    case CheckKind::Apart:
      return Py_BuildValue("(sN)", name, export_nodes(check.nodes));
    case CheckKind::Tensor:
      return Py_BuildValue("(sON)", "metadata", check.payload.get(), check.tensor->metadata());
    case CheckKind::Id: {
      PyObject* object = check.weak ? living(check.payload.get()) : Py_NewRef(check.payload.get());
      return object ? Py_BuildValue("(sN)", name, object) : nullptr;
    }
    default:
      return Py_BuildValue("(sO)", name, check.payload.get());
  }
}

PyObject* export_tree(const GuardTree& tree) {
  Ref nodes = Ref::steal(PyList_New(0));
  for (const Node& node : tree.nodes) {
    Ref checks = Ref::steal(PyList_New(0));
    if (!nodes || !checks) return nullptr;
    for (const Check& check : node.checks) {
      Ref one = Ref::steal(export_check(check));
      if (!one || PyList_Append(checks.get(), one.get()) < 0) return nullptr;
    }
    PyObject* key = export_key(node.access);
    Ref spec = key ? Ref::steal(Py_BuildValue("(isNOi)", node.parent, accessor_name(node.access.kind), key,
                                              checks.get(), node.capture)) : Ref();
    if (!spec || PyList_Append(nodes.get(), spec.get()) < 0) return nullptr;
  }
  return nodes.release();
}

}  // namespace framejit
