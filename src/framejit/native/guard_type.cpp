// The Python type `GuardTree`: parsing of the node list, methods, garbage collection. The logic is in guard_tree.cpp.
#include "guard_tree.h"

#include <algorithm>

namespace framejit {

PyTypeObject* guard_tree_type = nullptr;

static int parse_node(PyObject* spec, int index, GuardTree* tree) {
  if (!PyTuple_Check(spec) || PyTuple_GET_SIZE(spec) != 5 || !PyList_Check(PyTuple_GET_ITEM(spec, 3))) {
    PyErr_Format(PyExc_TypeError, "node %d must be (parent, accessor, key, [checks], capture), not %R", index, spec);
    return -1;
  }
  Node node;
  long parent = PyLong_AsLong(PyTuple_GET_ITEM(spec, 0));
  if (PyErr_Occurred()) return -1;
  if (parent < -1 || parent >= index) {
    PyErr_Format(PyExc_ValueError, "node %d has parent %ld, which is not an earlier node", index, parent);
    return -1;
  }
  node.parent = static_cast<int>(parent);
  if (parse_access(PyTuple_GET_ITEM(spec, 1), PyTuple_GET_ITEM(spec, 2), parent == -1, &node.access) < 0) return -1;
  Ref checks = Ref::steal(PyList_AsTuple(PyTuple_GET_ITEM(spec, 3)));
  if (!checks) return -1;
  for (Py_ssize_t k = 0; k < PyTuple_GET_SIZE(checks.get()); k++) {
    Check check;
    if (parse_check(PyTuple_GET_ITEM(checks.get(), k), index, &check) < 0) return -1;
    for (int other : check.nodes) node.related = tree->nodes[static_cast<size_t>(other)].related = true;
    if (check.kind == CheckKind::Id || check.kind == CheckKind::Same) node.has_identity = true;
    node.checks.push_back(std::move(check));
  }
  long capture = PyLong_AsLong(PyTuple_GET_ITEM(spec, 4));
  if (PyErr_Occurred()) return -1;
  if (capture < -1 || capture > INT32_MAX - 1) {
    PyErr_Format(PyExc_ValueError, "node %d has capture %ld", index, capture);
    return -1;
  }
  node.capture = static_cast<int>(capture);
  if (parent >= 0) tree->nodes[static_cast<size_t>(parent)].has_children = true;
  tree->nodes.push_back(std::move(node));
  return 0;
}

static int number_captures(GuardTree* tree) {
  std::vector<bool> seen;
  int total = 0;
  for (const Node& node : tree->nodes) {
    if (node.capture < 0) continue;
    total++;
    if (seen.size() <= static_cast<size_t>(node.capture)) seen.resize(std::min<size_t>(node.capture + 1, 1 << 24));
    if (static_cast<size_t>(node.capture) >= seen.size() || seen[node.capture]) {
      PyErr_Format(PyExc_ValueError, "capture %d is given twice or too large", node.capture);
      return -1;
    }
    seen[node.capture] = true;
  }
  if (static_cast<size_t>(total) != seen.size()) {
    PyErr_Format(PyExc_ValueError, "captures must be numbered 0 .. n-1, but there are %d up to %zu", total, seen.size());
    return -1;
  }
  tree->value_count = tree->capture_count = total;
  return 0;
}

static PyObject* tree_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *nodes, *state = Py_None, *shapes = Py_None;
  static const char* names[] = {"nodes", "state", "shapes", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OO:GuardTree", const_cast<char**>(names), &PyList_Type, &nodes,
                                   &state, &shapes)) {
    return nullptr;
  }
  if (state != Py_None && !Py_IS_TYPE(state, global_state_type)) {
    PyErr_SetString(PyExc_TypeError, "state must be a GlobalState or None");
    return nullptr;
  }
  auto tree = std::make_unique<GuardTree>();
  Ref specs = Ref::steal(PyList_AsTuple(nodes));  // hashing a key may run code that changes the list
  if (!specs) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(specs.get()); i++) {
    if (parse_node(PyTuple_GET_ITEM(specs.get(), i), static_cast<int>(i), tree.get()) < 0) return nullptr;
  }
  if (number_captures(tree.get()) < 0) return nullptr;
  if (state != Py_None) tree->state = Ref::borrow(state);
  if (shapes != Py_None) {
    tree->shapes = std::make_unique<ShapeProgram>();
    if (tree->shapes->parse(shapes, static_cast<int>(tree->nodes.size())) < 0) return nullptr;
    for (int node : tree->shapes->nodes()) tree->nodes[static_cast<size_t>(node)].related = true;
    tree->capture_count += tree->shapes->output_count();
  }
  auto* self = reinterpret_cast<GuardTreeObject*>(type->tp_alloc(type, 0));
  if (self) self->tree = tree.release();
  return reinterpret_cast<PyObject*>(self);
}

static int tree_traverse(GuardTreeObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  return self->tree ? self->tree->traverse(visit, arg) : 0;
}

static int tree_clear(GuardTreeObject* self) {
  if (self->tree) self->tree->clear();
  return 0;
}

static void tree_dealloc(GuardTreeObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete self->tree;
  type->tp_free(self);
  Py_DECREF(type);
}

static bool require_tuple(PyObject* slots) {
  if (PyTuple_Check(slots)) return true;
  PyErr_SetString(PyExc_TypeError, "slots must be a tuple");
  return false;
}

static PyObject* tree_check(GuardTreeObject* self, PyObject* slots) {
  if (!require_tuple(slots)) return nullptr;
  GuardTree& tree = *self->tree;
  int count = tree.capture_count;
  std::vector<PyObject*> captures(count < 0 ? 0 : static_cast<size_t>(count));
  if (!tree.evaluate(&PyTuple_GET_ITEM(slots, 0), PyTuple_GET_SIZE(slots), captures.data())) Py_RETURN_NONE;
  PyObject* result = PyTuple_New(count);
  for (int k = 0; k < count; k++) {
    if (result) {
      PyTuple_SET_ITEM(result, k, captures[k]);
    } else {
      Py_DECREF(captures[k]);
    }
  }
  return result;
}

static PyObject* tree_explain(GuardTreeObject* self, PyObject* slots) {
  if (!require_tuple(slots)) return nullptr;
  GuardTree& tree = *self->tree;
  if (tree.state && !global_state_matches(reinterpret_cast<GlobalStateObject*>(tree.state.get()))) {
    return Py_BuildValue("(ii)", -1, -2);
  }
  std::vector<Ref> values;
  Failure failure;
  if (tree.check_by_value(&PyTuple_GET_ITEM(slots, 0), PyTuple_GET_SIZE(slots), &values, &failure)) Py_RETURN_NONE;
  return Py_BuildValue("(ii)", failure.node, failure.check);
}

static PyObject* tree_export(GuardTreeObject* self, PyObject*) { return export_tree(*self->tree); }
static PyObject* tree_state(GuardTreeObject* self, void*) {
  return Py_NewRef(self->tree->state ? self->tree->state.get() : Py_None);
}

static PyObject* tree_size(GuardTreeObject* self, void*) { return PyLong_FromSize_t(self->tree->nodes.size()); }
static PyObject* tree_captures(GuardTreeObject* self, void*) { return PyLong_FromLong(self->tree->capture_count); }
static PyObject* tree_records(GuardTreeObject* self, void*) { return PyLong_FromSize_t(self->tree->record_count()); }
static PyObject* tree_full_checks(GuardTreeObject* self, void*) {
  return PyLong_FromUnsignedLongLong(self->tree->full_checks);
}

// How much a hit of the latest record does.
static PyObject* tree_record_size(GuardTreeObject* self, void*) {
  const Record* record = self->tree->latest_record();
  if (record == nullptr) Py_RETURN_NONE;
  Py_ssize_t loads = 0, others = 0;
  for (const Op& op : record->ops) {
    if (op.kind == OpKind::LoadSlot || op.kind == OpKind::Load) loads++;
    else if (op.kind != OpKind::Words) others++;
  }
  return Py_BuildValue("{snsnsnsnsn}", "words", static_cast<Py_ssize_t>(record->words.size()), "tensors",
                       static_cast<Py_ssize_t>(record->tensors.size()), "loads", loads, "checks", others, "late",
                       static_cast<Py_ssize_t>(record->late.size()));
}

static PyMethodDef tree_methods[] = {
    {"check", reinterpret_cast<PyCFunction>(tree_check), METH_O,
     "check(slots) -> tuple of captured values, or None if a guard fails."},
    {"explain", reinterpret_cast<PyCFunction>(tree_explain), METH_O,
     "explain(slots) -> None, or (node index, check index) of the first failure; check index -1: a captured value is "
     "missing, -2: the global state differs, -3 - k: shape check k."},
    {"export", reinterpret_cast<PyCFunction>(tree_export), METH_NOARGS,
     "export() -> the nodes, as the constructor takes them; LookupError if an object of an identity check has died."},
    {nullptr, nullptr, 0, nullptr}};

static PyGetSetDef tree_properties[] = {
    {"state", reinterpret_cast<getter>(tree_state), nullptr, "The GlobalState, or None.", nullptr},
    {"size", reinterpret_cast<getter>(tree_size), nullptr, "Number of nodes.", nullptr},
    {"capture_count", reinterpret_cast<getter>(tree_captures), nullptr, "Number of captured values.", nullptr},
    {"record_count", reinterpret_cast<getter>(tree_records), nullptr, "Number of records kept for fast hits.", nullptr},
    {"record_size", reinterpret_cast<getter>(tree_record_size), nullptr,
     "How many steps of each kind a hit takes, by the latest record; None without one.", nullptr},
    {"full_checks", reinterpret_cast<getter>(tree_full_checks), nullptr,
     "How often the tree was checked by value because no record decided.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr}};

int add_guard_tree(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("GuardTree(nodes, state=None): the guards of one compiled entry. `nodes` is a list of "
                                    "(parent, accessor, key, checks, capture); `shapes` is (inputs, checks, outputs), see "
                                    "shape_program.h.")},
      {Py_tp_new, reinterpret_cast<void*>(tree_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(tree_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(tree_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(tree_clear)},
      {Py_tp_methods, tree_methods},
      {Py_tp_getset, tree_properties},
      {0, nullptr}};
  static PyType_Spec spec = {"framejit.native._C.GuardTree", sizeof(GuardTreeObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  guard_tree_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  return guard_tree_type ? PyModule_AddObjectRef(module, "GuardTree", reinterpret_cast<PyObject*>(guard_tree_type)) : -1;
}

}  // namespace framejit
