// What autograd does when a gradient reaches a leaf. Apart from guard_checks.cpp for the sake of its headers, which take
// ten seconds to compile.
#include "guard_checks.h"

#include <cstring>
#include <typeinfo>

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace framejit {

namespace {

// The class is libtorch_python's, which this module is not linked to.
template <typename Hook>
bool is_of_class(const Hook& hook, const char* name) {
  return std::strstr(typeid(hook).name(), name) != nullptr;
}

// Are these what `register_hook` and `register_post_accumulate_grad_hook` keep in Python's dicts?
bool python_knows(const torch::autograd::AutogradMeta& meta) {
  for (const auto& hook : meta.hooks_) {
    if (!is_of_class(*hook, "PyFunctionTensorPreHook")) return false;
  }
  const auto& last = meta.post_acc_grad_hooks_;
  return meta.hooks_.size() <= 1 && (!last || is_of_class(*last, "PyFunctionTensorPostAccGradHooks"));
}

}  // namespace

bool is_plain_leaf(PyObject* value, bool may_have_hooks) {
  if (!PyObject_TypeCheck(value, tensor_class())) return false;
  auto tensor = at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(tensor_impl(value)));
  auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (meta == nullptr) return true;
  if (!tensor.is_leaf()) return false;
  bool has_hooks = !meta->hooks_.empty() || meta->post_acc_grad_hooks_;
  if (has_hooks && !(may_have_hooks && python_knows(*meta))) return false;
  // Distributed training registers its hooks on the node that adds to the gradient.
  auto node = meta->grad_accumulator_.lock();
  return !node || (node->pre_hooks().empty() && node->post_hooks().empty());
}

}  // namespace framejit
