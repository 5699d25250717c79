// See global_state.h. Reads thread-local state of torch through functions only, about 20 ns in all.
#include "global_state.h"

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/SavedTensorHooks.h>
#include <c10/core/AutogradState.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/Device.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>

// Declared here because their headers take 14 s to compile; the linker checks the signatures.
namespace at {
class Context {
 public:
  bool deterministicAlgorithms() const;
  bool deterministicAlgorithmsWarnOnly() const;
};
TORCH_API Context& globalContext();
namespace autocast {
TORCH_API c10::ScalarType get_autocast_dtype(c10::DeviceType device_type);
TORCH_API bool is_autocast_cache_enabled();
TORCH_API int increment_nesting();
TORCH_API int decrement_nesting();
}  // namespace autocast
}  // namespace at

namespace framejit {

PyTypeObject* global_state_type = nullptr;

using FunctionModes = at::impl::PythonTorchFunctionTLS;

// ---- attributes of classes that captures take for granted ----

// A class with what look-ups of its attributes found when it was first seen, and whether they still do. Looked at anew
// only when the version of the class is another one: adding, changing or deleting an attribute, of a base too, takes it.
struct WatchedClass {
  PyTypeObject* type;
  std::vector<std::pair<PyObject*, PyObject*>> attributes;  // names and what is found, NULL for nothing; never freed
  uint32_t version = 0;
  PyObject* replaced = nullptr;  // the first name that finds something else
};

static std::vector<WatchedClass>& watched_classes() {
  static auto* classes = new std::vector<WatchedClass>();
  return *classes;
}

static PyObject* find_replaced(WatchedClass& watched) {
  uint32_t version = type_version(watched.type);
  if (version != 0 && version == watched.version) return watched.replaced;
  watched.replaced = nullptr;
  for (auto [name, expected] : watched.attributes) {
    if (_PyType_Lookup(watched.type, name) == expected) continue;
    watched.replaced = name;
    break;
  }
  watched.version = type_version(watched.type);  // looking gives it one
  return watched.replaced;
}

static bool any_attribute_replaced() {
  for (auto& watched : watched_classes()) {
    if (find_replaced(watched)) return true;
  }
  return false;
}

static PyObject* watch_attributes(PyObject*, PyObject* args) {
  PyObject *type, *names;
  if (!PyArg_ParseTuple(args, "O!O!:watch_attributes", &PyType_Type, &type, &PyDict_Type, &names)) return nullptr;
  WatchedClass watched{reinterpret_cast<PyTypeObject*>(Py_NewRef(type)), {}};
  PyObject *name, *found;
  Py_ssize_t position = 0;
  while (PyDict_Next(names, &position, &name, &found)) {
    if (!PyUnicode_CheckExact(name) || !PyTuple_Check(found) || PyTuple_GET_SIZE(found) > 1) {
      return PyErr_Format(PyExc_TypeError, "watch_attributes() takes names and tuples, not %R: %R", name, found);
    }
    PyObject* expected = PyTuple_GET_SIZE(found) ? PyTuple_GET_ITEM(found, 0) : nullptr;
    PyUnicode_InternInPlace(&(name = Py_NewRef(name)));
    watched.attributes.emplace_back(name, Py_XNewRef(expected));
  }
  watched_classes().push_back(std::move(watched));
  Py_RETURN_NONE;
}

static PyObject* replaced_attribute(PyObject*, PyObject*) {
  for (auto& watched : watched_classes()) {
    if (PyObject* name = find_replaced(watched)) return PyUnicode_FromFormat("%s.%U", watched.type->tp_name, name);
  }
  Py_RETURN_NONE;
}

static PyMethodDef state_functions[] = {
    {"watch_attributes", watch_attributes, METH_VARARGS,
     "watch_attributes(cls, found): from now on, the global state tells whether looking up one of the names finds "
     "something else than the element of its tuple, or, for an empty one, anything."},
    {"replaced_attribute", replaced_attribute, METH_NOARGS,
     "replaced_attribute() -> 'Class.name', the first watched attribute that has another value, or None."},
    {nullptr, nullptr, 0, nullptr}};

// ---- the state ----

GlobalFlags GlobalFlags::read() {
  GlobalFlags flags;
  const auto& autograd = c10::AutogradState::get_tls_state();
  flags.grad = autograd.get_grad_mode();
  flags.inference = autograd.get_inference_mode();
  flags.forward_grad = autograd.get_fw_grad_mode();
  flags.autocast_cache = at::autocast::is_autocast_cache_enabled();
  const auto& context = at::globalContext();
  flags.deterministic = context.deterministicAlgorithms();
  flags.deterministic_warn_only = context.deterministicAlgorithmsWarnOnly();
  flags.skip_next_torch_function = FunctionModes::peek_skip_next();
  flags.torch_function_state = static_cast<int8_t>(FunctionModes::get_disabled_state());
  flags.default_dtype = static_cast<int8_t>(c10::get_default_dtype_as_scalartype());
  flags.autocast_dtype_cpu = static_cast<int8_t>(at::autocast::get_autocast_dtype(c10::DeviceType::CPU));
  flags.autocast_dtype_cuda = static_cast<int8_t>(at::autocast::get_autocast_dtype(c10::DeviceType::CUDA));
  flags.torch_dispatch_modes = c10::impl::TorchDispatchModeTLS::stack_len();
  auto keys = c10::impl::tls_local_dispatch_key_set();
  flags.keys_included = keys.included_.raw_repr();
  flags.keys_excluded = keys.excluded_.raw_repr();
  const auto& refused = at::SavedTensorDefaultHooks::get_tls_state().disabled_error_message;
  flags.saved_tensor_hooks_refused = refused ? std::hash<std::string>()(*refused) | 1 : 0;
  flags.attributes_replaced = any_attribute_replaced();
  flags.autocast_cpu = !keys.excluded_.has(c10::DispatchKey::AutocastCPU);  // how torch itself stores it
  flags.autocast_cuda = !keys.excluded_.has(c10::DispatchKey::AutocastCUDA);
  return flags;
}

// Every field, for the comparison and for what is exported.
#define FOR_EACH_FLAG(X) \
  X(grad) X(inference) X(forward_grad) X(autocast_cpu) X(autocast_cuda) X(autocast_dtype_cpu) \
  X(autocast_dtype_cuda) X(autocast_cache) X(deterministic) X(deterministic_warn_only) X(default_dtype) \
  X(torch_function_state) X(skip_next_torch_function) X(torch_dispatch_modes) X(keys_included) \
  X(keys_excluded) X(saved_tensor_hooks_refused) X(attributes_replaced)

bool GlobalFlags::operator==(const GlobalFlags& other) const {
#define SAME(field) field == other.field&&
  return FOR_EACH_FLAG(SAME) true;
#undef SAME
}

static PyObject* function_mode_at(int64_t index) {
  const auto& mode = FunctionModes::get_stack_at(index);
  return mode->ptr(&mode->pyinterpreter());
}

// `with torch.device("cpu")` pushes a new DeviceContext object each time; what counts is its device.
static bool same_mode(PyObject* left, PyObject* right) {
  if (left == right) return true;
  if (Py_TYPE(left) != Py_TYPE(right) || strcmp(Py_TYPE(left)->tp_name, "DeviceContext") != 0) return false;
  SavedError saved;
  Ref left_device = Ref::steal(PyObject_GetAttrString(left, "device"));
  Ref right_device = Ref::steal(left_device ? PyObject_GetAttrString(right, "device") : nullptr);
  return left_device && right_device && PyObject_RichCompareBool(left_device.get(), right_device.get(), Py_EQ) == 1;
}

static bool same_function_modes(const GlobalStateObject* state) {
  const auto& recorded = *state->function_modes;
  if (static_cast<size_t>(FunctionModes::stack_len()) != recorded.size()) return false;
  for (size_t i = 0; i < recorded.size(); i++) {
    Ref current = Ref::borrow(function_mode_at(static_cast<int64_t>(i)));
    if (!same_mode(recorded[i].get(), current.get())) return false;
    if (static_cast<size_t>(FunctionModes::stack_len()) != recorded.size()) return false;  // same_mode ran Python
  }
  return true;
}

// The innermost hooks of torch.autograd.graph.saved_tensors_hooks; nulls without any.
static std::pair<PyObject*, PyObject*> saved_tensor_hooks() {
  const auto& stack = at::SavedTensorDefaultHooks::get_tls_state().stack;
  if (stack.empty()) return {nullptr, nullptr};
  const auto& [pack, unpack] = stack.top();
  return {pack.ptr(&pack.pyinterpreter()), unpack.ptr(&unpack.pyinterpreter())};
}

static bool same_cells(PyObject* left, PyObject* right) {
  if (left == right) return true;
  if (!left || !right || PyTuple_GET_SIZE(left) != PyTuple_GET_SIZE(right)) return false;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(left); i++) {
    if (PyCell_GET(PyTuple_GET_ITEM(left, i)) != PyCell_GET(PyTuple_GET_ITEM(right, i))) return false;
  }
  return true;
}

// A context manager makes its hooks anew each time: functions are the same if code and variables are. The hooks of
// torch.utils.checkpoint work on whatever a graph saves, so nothing depends on their variables.
static bool same_hook(PyObject* left, PyObject* right) {
  if (left == right) return true;
  if (!left || !right || !PyFunction_Check(left) || !PyFunction_Check(right)) return false;
  auto* one = reinterpret_cast<PyFunctionObject*>(left);
  auto* two = reinterpret_cast<PyFunctionObject*>(right);
  if (one->func_code != two->func_code || one->func_globals != two->func_globals) return false;
  if (one->func_module && PyUnicode_Check(one->func_module) &&
      PyUnicode_CompareWithASCIIString(one->func_module, "torch.utils.checkpoint") == 0) {
    return true;
  }
  return one->func_defaults == two->func_defaults && one->func_kwdefaults == two->func_kwdefaults &&
      same_cells(one->func_closure, two->func_closure);
}

static bool same_saved_tensor_hooks(const GlobalStateObject* state) {
  auto [pack, unpack] = saved_tensor_hooks();
  return same_hook(state->pack, pack) && same_hook(state->unpack, unpack);
}

// Nothing tells it without changing it. It is the thread's own.
static int64_t autocast_level() {
  at::autocast::increment_nesting();
  return at::autocast::decrement_nesting();
}

bool global_state_matches(const GlobalStateObject* state) {
  return GlobalFlags::read() == state->flags && same_function_modes(state) && same_saved_tensor_hooks(state) &&
      (!state->autocast_level_required || autocast_level() == state->autocast_level);
}

// Overwrites what was just read by what an exported state has; all of it must be there.
static int set_flags(GlobalStateObject* self, PyObject* values) {
  GlobalFlags* flags = &self->flags;
#define SET_IN(object, field)                                                                  \
  {                                                                                            \
    PyObject* value = PyDict_GetItemString(values, #field);                                    \
    if (!value) return PyErr_Format(PyExc_KeyError, "%s", #field), -1;                         \
    auto number = PyLong_AsUnsignedLongLongMask(value);                                        \
    if (PyErr_Occurred()) return -1;                                                           \
    (object)->field = static_cast<decltype((object)->field)>(number);                          \
  }
#define SET(field) SET_IN(flags, field)
  FOR_EACH_FLAG(SET)
  SET_IN(self, autocast_level)
  SET_IN(self, autocast_level_required)
#undef SET
#undef SET_IN
  return 0;
}

static PyObject* state_new(PyTypeObject* type, PyObject* args, PyObject* kwargs) {
  PyObject *values = nullptr, *modes = nullptr;
  static const char* names[] = {"flags", "function_modes", nullptr};
  if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O!O!:GlobalState", const_cast<char**>(names), &PyDict_Type, &values,
                                   &PyTuple_Type, &modes)) {
    return nullptr;
  }
  if (!values != !modes) {
    PyErr_SetString(PyExc_TypeError, "GlobalState() takes flags and function_modes, or nothing");
    return nullptr;
  }
  Ref made = Ref::steal(type->tp_alloc(type, 0));
  auto* self = reinterpret_cast<GlobalStateObject*>(made.get());
  if (!self) return nullptr;
  self->flags = GlobalFlags::read();
  self->autocast_level = autocast_level();
  self->function_modes = new std::vector<Ref>();
  if (values && set_flags(self, values) < 0) return nullptr;
  int64_t count = values ? PyTuple_GET_SIZE(modes) : FunctionModes::stack_len();
  for (int64_t i = 0; i < count; i++) {
    self->function_modes->push_back(Ref::borrow(values ? PyTuple_GET_ITEM(modes, i) : function_mode_at(i)));
  }
  if (!values) {
    auto [pack, unpack] = saved_tensor_hooks();
    self->pack = Py_XNewRef(pack);
    self->unpack = Py_XNewRef(unpack);
  }
  return made.release();
}

static PyObject* state_export(GlobalStateObject* self, PyObject*) {
  Ref flags = Ref::steal(PyDict_New());
  Ref modes = Ref::steal(PyTuple_New(static_cast<Py_ssize_t>(self->function_modes->size())));
  if (!flags || !modes) return nullptr;
#define PUT_OF(object, field)                                                                                \
  {                                                                                                          \
    Ref value = Ref::steal(PyLong_FromUnsignedLongLong(static_cast<uint64_t>((object).field)));              \
    if (!value || PyDict_SetItemString(flags.get(), #field, value.get()) < 0) return nullptr;                \
  }
#define PUT(field) PUT_OF(self->flags, field)
  FOR_EACH_FLAG(PUT)
  PUT_OF(*self, autocast_level)
  PUT_OF(*self, autocast_level_required)
#undef PUT
#undef PUT_OF
  for (size_t i = 0; i < self->function_modes->size(); i++) {
    PyTuple_SET_ITEM(modes.get(), static_cast<Py_ssize_t>(i), Py_NewRef((*self->function_modes)[i].get()));
  }
  return PyTuple_Pack(3, flags.get(), modes.get(), self->pack ? Py_True : Py_False);
}

static int state_traverse(GlobalStateObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (self->function_modes) {
    for (auto& mode : *self->function_modes) Py_VISIT(mode.get());
  }
  Py_VISIT(self->pack);
  Py_VISIT(self->unpack);
  return 0;
}

static int state_clear(GlobalStateObject* self) {
  if (self->function_modes) {
    auto modes = std::move(*self->function_modes);
    self->function_modes->clear();
  }
  Py_CLEAR(self->pack);
  Py_CLEAR(self->unpack);
  return 0;
}

static void state_dealloc(GlobalStateObject* self) {
  PyTypeObject* type = Py_TYPE(self);
  PyObject_GC_UnTrack(self);
  delete self->function_modes;
  Py_CLEAR(self->pack);
  Py_CLEAR(self->unpack);
  type->tp_free(self);
  Py_DECREF(type);
}

static PyObject* state_check(GlobalStateObject* self, PyObject*) {
  return PyBool_FromLong(global_state_matches(self));
}

static PyObject* state_require_autocast_level(GlobalStateObject* self, PyObject* level) {
  self->autocast_level = PyLong_AsLongLong(level);
  if (PyErr_Occurred()) return nullptr;
  self->autocast_level_required = true;
  Py_RETURN_NONE;
}

static PyMethodDef state_methods[] = {
    {"require_autocast_level", reinterpret_cast<PyCFunction>(state_require_autocast_level), METH_O,
     "require_autocast_level(level): from now on, it matches only inside of so many blocks of torch.autocast."},
    {"check", reinterpret_cast<PyCFunction>(state_check), METH_NOARGS,
     "True if the state of this thread equals the snapshot."},
    {"export", reinterpret_cast<PyCFunction>(state_export), METH_NOARGS,
     "export() -> (flags by name, __torch_function__ modes, are there saved-tensor hooks?); the first two as the "
     "constructor takes them."},
    {nullptr, nullptr, 0, nullptr}};

int add_global_state(PyObject* module) {
  static PyType_Slot slots[] = {
      {Py_tp_doc, const_cast<char*>("A snapshot of the state that a captured program depends on besides its inputs.")},
      {Py_tp_new, reinterpret_cast<void*>(state_new)},
      {Py_tp_dealloc, reinterpret_cast<void*>(state_dealloc)},
      {Py_tp_traverse, reinterpret_cast<void*>(state_traverse)},
      {Py_tp_clear, reinterpret_cast<void*>(state_clear)},
      {Py_tp_methods, state_methods},
      {0, nullptr}};
  static PyType_Spec spec = {"framejit.native._C.GlobalState", sizeof(GlobalStateObject), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots};
  global_state_type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
  if (!global_state_type || PyModule_AddFunctions(module, state_functions) < 0) return -1;
  return PyModule_AddObjectRef(module, "GlobalState", reinterpret_cast<PyObject*>(global_state_type));
}

}  // namespace framejit
