// Nodes of autograd's graph between the results of one call of a compiled graph, which AOTAutograd makes one node of.
// In: a call's arguments and results, and which results are computed from others. Out: results whose nodes lead to each
// other as in eager mode. They pass gradients on to AOTAutograd's node, and nothing to each other, until somebody looks
// at a gradient between them: then graph/inner_results.py says what goes where. And results whose hooks are called with
// gradients only.
#include "result_links.h"

#include "guard_checks.h"
#include "tensor_check.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <iterator>
#include <memory>
#include <mutex>
#include <typeinfo>
#include <utility>

#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/python_hook.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/autograd/variable.h>

namespace framejit {

namespace {

using torch::autograd::Edge;
using torch::autograd::edge_list;
using torch::autograd::Node;
using torch::autograd::variable_list;

constexpr int kNoTask = -1;

at::Tensor tensor_of(PyObject* object) {
  return at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(tensor_impl(object)));
}

bool is_tensor(PyObject* object) { return PyObject_TypeCheck(object, tensor_class()); }

// Python's error, as autograd hands it on.
[[noreturn]] void throw_error() {
  python_error error;
  error.persist();
  throw error;
}

// What a method of Python's returns. The GIL is held.
Ref called(PyObject* object, const char* method, Ref arguments) {
  Ref function = Ref::steal(arguments ? PyObject_GetAttrString(object, method) : nullptr);
  Ref found = Ref::steal(function ? PyObject_CallObject(function.get(), arguments.get()) : nullptr);
  if (!found) throw_error();
  return found;
}

// The tensors of a sequence of tensors and None.
variable_list tensors_of(PyObject* sequence) {
  Ref items = Ref::steal(PySequence_Fast(sequence, "gradients"));
  if (!items) throw_error();
  variable_list found(PySequence_Fast_GET_SIZE(items.get()));
  for (size_t i = 0; i < found.size(); i++) {
    PyObject* item = PySequence_Fast_GET_ITEM(items.get(), i);
    if (is_tensor(item)) found[i] = tensor_of(item);
  }
  return found;
}

// The reverse; the GIL is held.
Ref tuple_of(const variable_list& tensors) {
  Ref found = Ref::steal(PyTuple_New(tensors.size()));
  for (size_t i = 0; found && i < tensors.size(); i++) {
    PyObject* item = tensors[i].defined() ? THPVariable_Wrap(tensors[i]) : Py_NewRef(Py_None);
    if (item == nullptr) throw_error();
    PyTuple_SET_ITEM(found.get(), i, item);
  }
  return found;
}

// An object, or none, that may be let go of where the GIL is not held.
class Kept {
 public:
  Kept() = default;
  explicit Kept(Ref object) : object_(std::move(object)) {}
  Kept(Kept&&) noexcept = default;
  Kept& operator=(Kept&& other) noexcept {
    Ref old = std::exchange(object_, std::exchange(other.object_, Ref()));
    let_go(std::move(old));
    return *this;
  }
  ~Kept() { let_go(std::move(object_)); }
  PyObject* get() const { return object_.get(); }

 private:
  static void let_go(Ref object) {
    if (!object) return;
    if (!Py_IsInitialized()) {
      object.release();
      return;
    }
    pybind11::gil_scoped_acquire gil;
    object = Ref();
  }
  Ref object_;
};

struct Link {
  Py_ssize_t place;
  std::vector<Py_ssize_t> near;  // the positions of the results that it is computed from
  bool is_view;                  // of one, which all of its gradient goes to
};

// What is the same for all calls of a compiled graph.
struct Layout {
  Kept owner;
  Py_ssize_t compiled;
  std::vector<Py_ssize_t> above;
  std::vector<Link> links;
};

// A result that others are computed from.
struct Above {
  c10::weak_intrusive_ptr<Node> node;
  uint32_t number;
  c10::weak_intrusive_ptr<c10::TensorImpl> tensor;
  uint32_t version;
};

// A run of autograd that came here, and what computes its gradients between results: nothing where nobody looks.
struct Visit {
  int task;
  Kept run;
};
constexpr size_t kMostQuiet = 8;  // how many visits without one are remembered: more threads come rarely

// One call of the compiled graph, as its backward needs it.
struct Call {
  std::shared_ptr<Layout> layout;
  Kept arguments, autocast;
  std::vector<uint32_t> versions;  // of the tensors among the arguments that count writes to them
  std::vector<Above> above;
  std::unique_ptr<c10::weak_intrusive_ptr<Node>> compiled;  // AOTAutograd's node
  // Several threads may come here with a run of autograd each, or with one. Nothing of Python's runs under this lock.
  std::mutex mutex;
  std::vector<Visit> visits;
  bool hooked = false;

  bool is_looked_at() const;
  bool has_visit(int task, PyObject** run);
  Kept begin(const std::shared_ptr<Call>& self, bool looked_at);
  PyObject* run_for(const std::shared_ptr<Call>& self, int task);
  void end(int task);

  template <typename Visitor>
  void for_versions(Visitor visit) const {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(arguments.get()); i++) {
      PyObject* one = PyTuple_GET_ITEM(arguments.get(), i);
      at::TensorImpl* tensor = is_tensor(one) ? tensor_impl(one) : nullptr;
      if (tensor != nullptr && !tensor->is_inference()) visit(tensor->version_counter().current_version());
    }
  }
};

// Where the gradient of one result arrives. The edges after the first lead to those that it is computed from.
struct BetweenResults : Node {
  std::shared_ptr<Call> call;
  const Link& link;

  BetweenResults(edge_list&& edges, const std::shared_ptr<Call>& call, const Link& link)
      : Node(std::move(edges)), call(call), link(link) {}

  std::string name() const override { return "BetweenResults"; }

  variable_list apply(variable_list&& gradients) override {
    variable_list passed(num_outputs());
    if (!gradients[0].defined()) return passed;
    passed[0] = gradients[0];
    std::shared_ptr<Call> known;
    {
      std::lock_guard<std::mutex> lock(mutex_);
      known = call;
    }
    int now = torch::autograd::get_current_graph_task_id();
    if (!known || now == kNoTask) return passed;
    PyObject* run = known->run_for(known, now);
    if (run == nullptr) return passed;
    pybind11::gil_scoped_acquire gil;
    Ref gradient = tuple_of(gradients), near = Ref::steal(PyTuple_New(link.near.size()));
    for (size_t i = 0; i < link.near.size(); i++) PyTuple_SET_ITEM(near.get(), i, PyLong_FromSsize_t(link.near[i]));
    Ref given = Ref::steal(Py_BuildValue("(nOO)", link.place, near.get(), gradient.get()));
    variable_list found = tensors_of(called(run, "passed_on", given).get());
    for (size_t i = 1; i < passed.size() && i <= found.size(); i++) passed[i] = found[i - 1];
    if (link.is_view) passed[0] = at::Tensor();
    return passed;
  }

  void release_variables() override {
    std::lock_guard<std::mutex> lock(mutex_);
    call.reset();
  }

  // Compiled autograd traces what nobody looks at.
  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs&) const override {}
  variable_list apply_with_saved(
      const variable_list& gradients, torch::dynamo::autograd::SwapSavedVariables&) override {
    variable_list passed(num_outputs());
    passed[0] = gradients[0];
    return passed;
  }
};

// After AOTAutograd's node, which has gone from each result all the way down.
struct AfterCompiled : torch::autograd::FunctionPostHook {
  std::shared_ptr<Call> call;  // the nodes before have let go of it
  explicit AfterCompiled(const std::shared_ptr<Call>& call) : call(call) {}

  variable_list operator()(const variable_list& outputs, const variable_list& inputs) override {
    auto known = call;
    if (!torch::autograd::get_current_graph_task_keep_graph()) call.reset();
    PyObject* run = nullptr;
    if (known) known->has_visit(torch::autograd::get_current_graph_task_id(), &run);
    if (run == nullptr) return outputs;
    pybind11::gil_scoped_acquire gil;
    Ref found = called(run, "at_arguments", Ref::steal(PyTuple_Pack(1, tuple_of(inputs).get())));
    if (found.get() == Py_None) return outputs;
    variable_list gradients = tensors_of(found.get());
    return gradients.size() == outputs.size() ? gradients : outputs;
  }
};

// What has the hooks of one of a node's results: a dict of Python's; NULL: it is of another one, or not Python's.
PyObject* hooks_in(torch::autograd::FunctionPreHook& hook, uint32_t number) {
  // The class is libtorch_python's, which tells nobody what it is.
  if (std::strstr(typeid(hook).name(), "PyFunctionTensorPreHook") == nullptr) return nullptr;
  auto& known = static_cast<torch::autograd::PyFunctionTensorPreHook&>(hook);
  return known.value_idx == number ? known.dict : nullptr;
}

bool has_hooks(Node& node, uint32_t number) {
  for (const auto& hook : node.tensor_pre_hooks()) {
    PyObject* dict = hooks_in(*hook, number);
    if (dict != nullptr && PyDict_GET_SIZE(dict) != 0) return true;
  }
  return node.retains_grad_hooks().count(number) != 0;
}

// Before all hooks of a node's results. No gradient arrives where backward came from other results: eager mode would
// not come here at all.
struct QuietHooks : torch::autograd::FunctionPreHook {
  Node& node;  // which this belongs to
  PyObject* quieted;
  std::vector<uint32_t> numbers;
  QuietHooks(Node& node, PyObject* quieted) : node(node), quieted(quieted) {}

  variable_list operator()(const variable_list& gradients) override {
    for (uint32_t number : numbers) {
      if (number < gradients.size() && !gradients[number].defined()) quiet(number);
    }
    return gradients;
  }

  void compiled_args(torch::dynamo::autograd::CompiledNodeArgs&) const override {}

 private:
  void quiet(uint32_t number) const {
    for (const auto& hook : node.tensor_pre_hooks()) {
      PyObject* dict = hooks_in(*hook, number);
      if (dict == nullptr || PyDict_GET_SIZE(dict) == 0) continue;
      pybind11::gil_scoped_acquire gil;
      Ref done = Ref::steal(PyObject_CallOneArg(quieted, dict));
      if (!done) throw_error();
    }
  }
};

// Does the program learn of a gradient between the results, in this run of autograd?
bool Call::is_looked_at() const {
  auto* wanted = torch::autograd::get_current_graph_task_exec_info();
  for (const Above& one : above) {
    auto node = one.node.lock();
    if (!node) continue;
    if (has_hooks(*node, one.number)) return true;
    bool own = dynamic_cast<BetweenResults*>(node.get()) != nullptr;
    if (own && !(node->pre_hooks().empty() && node->post_hooks().empty())) return true;
    auto found = wanted == nullptr ? decltype(wanted->end())() : wanted->find(node.get());
    if (wanted == nullptr || found == wanted->end() || !found->second.captures_) continue;
    for (const auto& capture : *found->second.captures_) {
      if (static_cast<uint32_t>(capture.input_idx_) == one.number) return true;
    }
  }
  return false;
}

bool Call::has_visit(int task, PyObject** run) {
  std::lock_guard<std::mutex> lock(mutex);
  for (const Visit& one : visits) {
    if (one.task != task) continue;
    *run = one.run.get();
    return true;
  }
  return false;
}

// What computes the gradients between results in this run of autograd; NULL: they are nobody's business.
PyObject* Call::run_for(const std::shared_ptr<Call>& self, int task) {
  PyObject* known;
  if (has_visit(task, &known)) return known;
  // Derivatives of gradients come to the results as well.
  bool looked_at = is_looked_at();
  Kept run = looked_at || at::GradMode::is_enabled() ? begin(self, looked_at) : Kept();
  known = run.get();
  if (known != nullptr) torch::autograd::Engine::get_default_engine().queue_callback([self, task] { self->end(task); });
  std::lock_guard<std::mutex> lock(mutex);
  if (known == nullptr) {
    auto is_quiet = [](const Visit& one) { return one.run.get() == nullptr; };
    if (std::count_if(visits.begin(), visits.end(), is_quiet) >= static_cast<int>(kMostQuiet)) {
      visits.erase(std::find_if(visits.begin(), visits.end(), is_quiet));
    }
  }
  visits.push_back({task, std::move(run)});
  return known;
}

// The run of autograd is over: what was computed for it goes.
void Call::end(int task) {
  std::vector<Visit> over;
  std::lock_guard<std::mutex> lock(mutex);
  auto is_of_task = [&](const Visit& one) { return one.task == task; };
  auto rest = std::stable_partition(visits.begin(), visits.end(), std::not_fn(is_of_task));
  std::move(rest, visits.end(), std::back_inserter(over));
  visits.erase(rest, visits.end());
}

Kept Call::begin(const std::shared_ptr<Call>& self, bool looked_at) {
  pybind11::gil_scoped_acquire gil;
  size_t at = 0;
  bool unchanged = true;
  for_versions([&](uint32_t version) { unchanged &= versions[at++] == version; });
  variable_list alive(above.size());
  for (size_t i = 0; i < above.size(); i++) {
    auto locked = above[i].tensor.lock();
    if (!locked) continue;
    at::Tensor tensor(std::move(locked));
    auto node = above[i].node.lock();
    // What was written to since, or left autograd's graph, is another value, or has another history.
    bool same = node && tensor._version() == above[i].version && tensor.grad_fn().get() == node.get();
    if (same) alive[i] = tensor;
  }
  Ref tensors = tuple_of(alive);
  Ref found = called(layout->owner.get(), "begin",
                     Ref::steal(PyTuple_Pack(5, arguments.get(), unchanged ? Py_True : Py_False,
                                             autocast.get() == nullptr ? Py_None : autocast.get(),
                                             looked_at ? Py_True : Py_False, tensors.get())));
  if (found.get() == Py_None) return Kept();
  auto node = hooked || !compiled ? c10::intrusive_ptr<Node>() : compiled->lock();
  if (node) node->add_post_hook(std::make_unique<AfterCompiled>(self));
  hooked = true;
  return Kept(std::move(found));
}

// ---- after a call -----------------------------------------------------------------------------------------------

constexpr const char* kCapsule = "framejit.result_layout";

bool positions_of(PyObject* tuple, std::vector<Py_ssize_t>& found) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
    found.push_back(PyLong_AsSsize_t(PyTuple_GET_ITEM(tuple, i)));
    if (found.back() < 0) return false;
  }
  return true;
}

PyObject* result_layout(PyObject*, PyObject* args) {
  PyObject *owner, *above, *links;
  auto layout = std::make_shared<Layout>();
  if (!PyArg_ParseTuple(args, "OnO!O!", &owner, &layout->compiled, &PyTuple_Type, &above, &PyTuple_Type, &links)) {
    return nullptr;
  }
  layout->owner = Kept(Ref::borrow(owner));
  if (!positions_of(above, layout->above)) return nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(links); i++) {
    PyObject* near;
    int is_view;
    Link link;
    if (!PyArg_ParseTuple(PyTuple_GET_ITEM(links, i), "nO!p", &link.place, &PyTuple_Type, &near, &is_view) ||
        !positions_of(near, link.near)) {
      return nullptr;
    }
    link.is_view = is_view != 0;
    layout->links.push_back(std::move(link));
  }
  return PyCapsule_New(new std::shared_ptr<Layout>(std::move(layout)), kCapsule, [](PyObject* capsule) {
    delete static_cast<std::shared_ptr<Layout>*>(PyCapsule_GetPointer(capsule, kCapsule));
  });
}

Edge edge_of(PyObject* result) {
  if (!is_tensor(result) || !requires_grad(tensor_impl(result))) return Edge();
  auto tensor = tensor_of(result);
  return tensor.grad_fn() ? torch::autograd::impl::gradient_edge(tensor) : Edge();
}

// AOTAutograd's node, perhaps after nodes of views.
void find_compiled(Call& call, Edge edge) {
  while (edge.function && edge.function->num_outputs() == 1 && edge.function->name() != "CompiledFunctionBackward") {
    edge = Edge(edge.function->next_edge(0));
  }
  if (edge.function) call.compiled = std::make_unique<c10::weak_intrusive_ptr<Node>>(edge.function);
}

// Is there autocast in this thread, for whatever device?
bool has_autocast() {
  return !(c10::autocast_dispatch_keyset - c10::impl::tls_local_dispatch_key_set().excluded_).empty();
}

PyObject* link_results(PyObject*, PyObject* const* args, Py_ssize_t count) {
  auto* known = count == 3 && PyTuple_Check(args[1])
      ? static_cast<std::shared_ptr<Layout>*>(PyCapsule_GetPointer(args[0], kCapsule))
      : nullptr;
  if (known == nullptr) {
    if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "link_results(layout, arguments, results)");
    return nullptr;
  }
  HANDLE_TH_ERRORS
  const Layout& layout = **known;
  Ref results = Ref::steal(PySequence_Fast(args[2], "results are a sequence"));
  if (!results) return nullptr;
  auto result = [&](Py_ssize_t place) { return PySequence_Fast_GET_ITEM(results.get(), place); };
  auto call = std::make_shared<Call>();
  find_compiled(*call, edge_of(result(layout.compiled)));
  if (!call->compiled) Py_RETURN_NONE;  // this call ran as recorded
  call->layout = *known;
  call->arguments = Kept(Ref::borrow(args[1]));
  call->versions.reserve(PyTuple_GET_SIZE(args[1]));
  call->for_versions([&](uint32_t version) { call->versions.push_back(version); });
  if (has_autocast()) {
    Ref autocast = Ref::steal(PyObject_CallMethod(layout.owner.get(), "autocast_now", nullptr));
    if (!autocast) return nullptr;
    call->autocast = Kept(std::move(autocast));
  }
  for (const Link& link : layout.links) {
    edge_list edges{edge_of(result(link.place))};
    if (!edges[0].function) continue;
    for (Py_ssize_t one : link.near) edges.push_back(edge_of(result(one)));
    auto node = c10::make_intrusive<BetweenResults>(std::move(edges), call, link);
    auto tensor = tensor_of(result(link.place));
    node->add_input_metadata(tensor);
    torch::autograd::impl::set_gradient_edge(tensor, Edge(std::move(node), 0));
  }
  call->above.reserve(layout.above.size());
  for (Py_ssize_t place : layout.above) {
    Edge edge = edge_of(result(place));
    auto tensor = edge.function ? tensor_of(result(place)) : at::Tensor();
    uint32_t version = edge.function ? tensor._version() : 0;
    call->above.push_back({c10::weak_intrusive_ptr<Node>(edge.function), edge.input_nr,
                           c10::weak_intrusive_ptr<c10::TensorImpl>(tensor.getIntrusivePtr()), version});
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

// Is it AOTAutograd's, or one of those above?
bool is_of_graph(Node& node) {
  return dynamic_cast<BetweenResults*>(&node) != nullptr || std::strstr(typeid(node).name(), "PyNode") != nullptr;
}

PyObject* quiet_hooks(PyObject*, PyObject* const* args, Py_ssize_t count) {
  if (count != 3 || !PyTuple_Check(args[2])) {
    PyErr_SetString(PyExc_TypeError, "quiet_hooks(quieted, results, places)");
    return nullptr;
  }
  HANDLE_TH_ERRORS
  static PyObject* quieted = Py_NewRef(args[0]);
  Ref results = Ref::steal(PySequence_Fast(args[1], "results are a sequence"));
  if (!results) return nullptr;
  QuietHooks* last = nullptr;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args[2]); i++) {
    Py_ssize_t place = PyLong_AsSsize_t(PyTuple_GET_ITEM(args[2], i));
    if (place < 0 || place >= PySequence_Fast_GET_SIZE(results.get())) {
      PyErr_SetString(PyExc_IndexError, "there is no such result");
      return nullptr;
    }
    Edge edge = edge_of(PySequence_Fast_GET_ITEM(results.get(), place));
    if (!edge.function || !is_of_graph(*edge.function)) continue;
    if (last == nullptr || &last->node != edge.function.get()) {
      auto made = std::make_unique<QuietHooks>(*edge.function, quieted);
      last = made.get();
      edge.function->add_tensor_pre_hook(std::move(made));
    }
    last->numbers.push_back(edge.input_nr);
  }
  Py_RETURN_NONE;
  END_HANDLE_TH_ERRORS
}

PyMethodDef functions[] = {
    {"result_layout", result_layout, METH_VARARGS,
     "result_layout(owner, position, above, links): what link_results needs to know of a compiled graph."},
    {"link_results", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(link_results)), METH_FASTCALL,
     "link_results(layout, arguments, results): let the results of a call lead to each other."},
    {"quiet_hooks", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(quiet_hooks)), METH_FASTCALL,
     "quiet_hooks(quieted, results, places): call quieted(dict of hooks) before hooks of these results get None."},
    {nullptr, nullptr, 0, nullptr}};

}  // namespace

int add_result_links(PyObject* module) { return PyModule_AddFunctions(module, functions); }

}  // namespace framejit
