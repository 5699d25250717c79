// The extension module framejit.native._C: puts the parts together. In: nothing. Out: the names in _C.pyi.
#include "audit.h"
#include "dispatch.h"
#include "guard_checks.h"
#include "hook.h"
#include "objects.h"
#include "result_links.h"

#include <torch/headeronly/version.h>

#include <csignal>

namespace framejit {

static PyObject* python_type_version(PyObject*, PyObject* type) {
  if (!PyType_Check(type)) return PyErr_Format(PyExc_TypeError, "%R is not a type", type);
  return PyLong_FromUnsignedLong(type_version(reinterpret_cast<PyTypeObject*>(type)));
}

static PyObject* python_has_generic_getattr(PyObject*, PyObject* type) {
  if (!PyType_Check(type)) return PyErr_Format(PyExc_TypeError, "expected a class");
  return PyBool_FromLong(reinterpret_cast<PyTypeObject*>(type)->tp_getattro == PyObject_GenericGetAttr);
}

// Runs a program as the interpreter runs the script that it was started with: nothing of what calls this counts
// against the limit of recursion.
static PyObject* evaluate(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 2 || !PyCode_Check(args[0]) || !PyDict_Check(args[1])) {
    PyErr_SetString(PyExc_TypeError, "evaluate(code, globals) needs a code object and a dict");
    return nullptr;
  }
  PyThreadState* thread = PyThreadState_Get();
  int depth = recursion_depth(thread);
  set_recursion_depth(thread, 0);
  PyObject* result = PyEval_EvalCode(args[0], args[1], args[1]);
  set_recursion_depth(thread, depth);
  return result;
}

// signal.signal, but the operating system is told nothing: flags such as SA_RESTART stay, and so does a handler in C
// that has been put in front of Python's.
static PyObject* exchange_handler(PyObject*, PyObject* args) {
  int number;
  PyObject* handler;
  if (!PyArg_ParseTuple(args, "iO", &number, &handler)) return nullptr;
  Ref signals = Ref::steal(PyImport_ImportModule("_signal"));
  if (!signals) return nullptr;
  sigset_t one, before;
  struct sigaction action;
  sigemptyset(&one);
  if (sigaddset(&one, number) != 0 || sigaction(number, nullptr, &action) != 0) return PyErr_SetFromErrno(PyExc_OSError);
  pthread_sigmask(SIG_BLOCK, &one, &before);
  PyObject* replaced = PyObject_CallMethod(signals.get(), "signal", "iO", number, handler);
  if (replaced) sigaction(number, &action, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return replaced;
}

static PyObject* python_c_attribute(PyObject*, PyObject* args) {
  PyObject *object, *name;
  return PyArg_ParseTuple(args, "OU:c_attribute", &object, &name) ? c_attribute(object, name).release() : nullptr;
}

static PyMethodDef functions[] = {
    {"c_attribute", python_c_attribute, METH_VARARGS,
     "c_attribute(object, name): an attribute as C code finds it, past the program's own __getattribute__."},
    {"evaluate", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(evaluate)), METH_FASTCALL,
     "evaluate(code, globals): runs a program as the first thing on the stack, as far as sys.getrecursionlimit goes."},
    {"exchange_handler", exchange_handler, METH_VARARGS,
     "exchange_handler(number, handler): the handler of a signal, which this one replaces for Python alone."},
    {"has_generic_getattr", python_has_generic_getattr, METH_O,
     "Whether attributes of the instances of a class are looked up as those of plain objects."},
    {"is_plain_leaf",
     [](PyObject*, PyObject* args) -> PyObject* {
       PyObject* value;
       int may_have_hooks;
       if (!PyArg_ParseTuple(args, "Op", &value, &may_have_hooks)) return nullptr;
       return tensor_class() ? PyBool_FromLong(is_plain_leaf(value, may_have_hooks)) : nullptr;
     },
     METH_VARARGS,
     "is_plain_leaf(tensor, may_have_hooks): whether autograd only stores or adds up the gradient of this tensor, apart "
     "from what hooks do that Python knows."},
    {"supports_weakrefs", [](PyObject*, PyObject* object) { return PyBool_FromLong(supports_weakrefs(object)); }, METH_O,
     "Whether there may be weak references to an object."},
    {"type_version", python_type_version, METH_O, "The version tag of a type; 0 if it has none."},
    {nullptr, nullptr, 0, nullptr}};

#define FRAMEJIT_TEXT_OF(number) #number
#define FRAMEJIT_TEXT(number) FRAMEJIT_TEXT_OF(number)

// The libraries of another release may load and then do something else.
static int verify_torch_release() {
  constexpr const char* built = FRAMEJIT_TEXT(TORCH_VERSION_MAJOR) "." FRAMEJIT_TEXT(TORCH_VERSION_MINOR);
  Ref torch = Ref::steal(PyImport_ImportModule("torch"));
  Ref version = Ref::steal(torch ? PyObject_GetAttrString(torch.get(), "__version__") : nullptr);
  const char* text = version ? PyUnicode_AsUTF8(version.get()) : nullptr;
  if (!text) return -1;
  size_t length = strlen(built);
  if (strncmp(text, built, length) == 0 && (text[length] < '0' || text[length] > '9')) return 0;
  PyErr_Format(PyExc_ImportError, "its C++ part was built for torch %s", built);
  return -1;
}

// Our own view of a tensor object must agree with this torch; a wrong pointer would be followed on every call.
static int verify_tensor_layout() {
  Ref torch = Ref::steal(PyImport_ImportModule("torch"));
  Ref tensor = Ref::steal(torch ? PyObject_CallMethod(torch.get(), "empty", "i", 0) : nullptr);
  Ref address = Ref::steal(tensor ? PyObject_GetAttrString(tensor.get(), "_cdata") : nullptr);
  if (!address) return -1;
  auto* impl = static_cast<c10::TensorImpl*>(PyLong_AsVoidPtr(address.get()));
  if (impl != nullptr && impl == tensor_impl(tensor.get())) {
    impl->set_requires_grad(true);
    if (TensorFields::autograd_meta(impl) == impl->autograd_meta() && requires_grad(impl)) return 0;
  }
  if (!PyErr_Occurred()) PyErr_SetString(PyExc_ImportError, "its C++ part does not know how this torch lays out tensors");
  return -1;
}

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "framejit.native._C",
                                 "Dispatch, guards and the frame hook of framejit.", -1, functions,
                                 nullptr, nullptr, nullptr, nullptr};

}  // namespace framejit

PyMODINIT_FUNC PyInit__C() {
  using namespace framejit;
  Ref module = Ref::steal(PyModule_Create(&definition));
  if (!module || verify_torch_release() < 0 || verify_tensor_layout() < 0 || add_global_state(module.get()) < 0 || add_guard_reference(module.get()) < 0 ||
      add_check_names(module.get()) < 0 ||
      add_guard_tree(module.get()) < 0 || add_hook(module.get()) < 0 || add_dispatch(module.get()) < 0 ||
      add_tail_call(module.get()) < 0 || add_audit(module.get()) < 0 || add_objects(module.get()) < 0 || add_result_links(module.get()) < 0) {
    return nullptr;
  }
  return module.release();
}
