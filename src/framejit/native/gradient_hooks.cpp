// What autograd does when a gradient reaches a leaf. Apart from guard_checks.cpp for the sake of its headers, which take
// ten seconds to compile.
#include "guard_checks.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/variable.h>

namespace framejit {

bool is_leaf_without_hooks(PyObject* value) {
  if (!PyObject_TypeCheck(value, tensor_class())) return false;
  auto tensor = at::Tensor(c10::intrusive_ptr<c10::TensorImpl>::reclaim_copy(tensor_impl(value)));
  auto* meta = torch::autograd::impl::get_autograd_meta(tensor);
  if (meta == nullptr) return true;
  if (!tensor.is_leaf() || !meta->hooks_.empty() || meta->post_acc_grad_hooks_) return false;
  // Distributed training registers its hooks on the node that adds to the gradient.
  auto node = meta->grad_accumulator_.lock();
  return !node || (node->pre_hooks().empty() && node->post_hooks().empty() && node->tensor_pre_hooks().empty());
}

}  // namespace framejit
