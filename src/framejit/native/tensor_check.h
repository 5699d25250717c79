// TensorCheck: the metadata of one tensor, copied at construction, and the comparison of another tensor with it.
// In: an example tensor. Out: yes or no in about 10 ns. Uses c10 headers only: python_variable.h takes 15 s to compile.
#pragma once
#include "cpython_compat.h"

#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <exception>
#include <vector>

namespace framejit {

// The start of a Python tensor object. module.cpp verifies at import that the pointer really is there.
struct TensorObject {
  PyObject_HEAD
  c10::TensorImpl* impl;
};

inline c10::TensorImpl* tensor_impl(PyObject* tensor) { return reinterpret_cast<TensorObject*>(tensor)->impl; }

// The dispatch keys that this thread adds to and removes from those of every tensor.
struct ThreadKeys {
  uint64_t include, exclude;
  static ThreadKeys read() {
    auto keys = c10::impl::tls_local_dispatch_key_set();
    return {keys.included_.raw_repr(), keys.excluded_.raw_repr()};
  }
};

class TensorCheck {
 public:
  // May throw c10::Error, e.g. for sizes that are symbols. `free_dims`: dimensions whose size may vary.
  TensorCheck(PyObject* example, bool dynamic, const std::vector<int64_t>& free_dims)
      : type_(Py_TYPE(example)), dynamic_(dynamic) {
    auto* tensor = tensor_impl(example);
    plain_ = is_plain(tensor);
    keys_ = effective_keys(tensor, ThreadKeys::read());
    dtype_ = tensor->dtype().toScalarType();
    device_ = tensor->device();
    requires_grad_ = tensor->requires_grad();
    layout_ = tensor->layout();
    ndim_ = tensor->dim();
    check_strides_ = !dynamic && free_dims.empty() && layout_ == c10::kStrided;
    if (!dynamic) sizes_ = tensor->sizes().vec();
    for (int64_t dim : free_dims) {
      if (!dynamic && dim >= 0 && dim < ndim_) sizes_[dim] = kAnySize;
    }
    if (check_strides_) strides_ = tensor->strides().vec();
  }

  // False: reading the metadata may run Python code or throw (sparse, nested, symbolic, __torch_dispatch__).
  bool plain() const { return plain_; }

  bool matches(PyObject* value, const ThreadKeys& thread) const {
    if (Py_TYPE(value) != type_) return false;
    auto* tensor = tensor_impl(value);
    if (effective_keys(tensor, thread) != keys_) return false;
    if (!plain_) return matches_slowly(tensor);
    return tensor->dtype().toScalarType() == dtype_ && tensor->device() == device_ && matches_shape(tensor) &&
        tensor->requires_grad() == requires_grad_;
  }

 private:
  static constexpr int64_t kAnySize = -1;

  static uint64_t effective_keys(c10::TensorImpl* tensor, const ThreadKeys& thread) {
    return (tensor->key_set().raw_repr() | thread.include) & ~thread.exclude;
  }

  static bool is_plain(c10::TensorImpl* tensor) {
    constexpr c10::DispatchKeySet special(
        {c10::DispatchKey::Python, c10::DispatchKey::PythonTLSSnapshot, c10::DispatchKey::Sparse,
         c10::DispatchKey::SparseCsr, c10::DispatchKey::NestedTensor, c10::DispatchKey::FuncTorchBatched,
         c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize, c10::DispatchKey::MkldnnCPU});
    return (tensor->key_set().raw_repr() & special.raw_repr() & ~uint64_t{c10::full_backend_mask}) == 0 &&
        tensor->layout() == c10::kStrided && !tensor->has_symbolic_sizes_strides();
  }

  bool matches_shape(c10::TensorImpl* tensor) const {
    if (dynamic_) return tensor->dim() == ndim_;
    auto sizes = tensor->sizes();
    if (static_cast<int64_t>(sizes.size()) != ndim_) return false;
    for (int64_t i = 0; i < ndim_; i++) {
      if (sizes[i] != sizes_[i] && sizes_[i] != kAnySize) return false;
    }
    if (!check_strides_) return true;
    auto strides = tensor->strides();
    for (int64_t i = 0; i < ndim_; i++) {
      if (strides[i] != strides_[i]) return false;
    }
    return true;
  }

  bool matches_slowly(c10::TensorImpl* tensor) const {
    try {
      return tensor->dtype().toScalarType() == dtype_ && tensor->device() == device_ &&
          tensor->layout() == layout_ && matches_shape(tensor) && tensor->requires_grad() == requires_grad_;
    } catch (const std::exception&) {
      PyErr_Clear();
      return false;
    }
  }

  PyTypeObject* type_;  // kept alive by the check's payload
  uint64_t keys_ = 0;
  c10::ScalarType dtype_{};
  c10::Device device_{c10::DeviceType::CPU};
  c10::Layout layout_{};
  bool requires_grad_ = false, plain_ = false, dynamic_ = false, check_strides_ = false;
  int64_t ndim_ = 0;
  std::vector<int64_t> sizes_, strides_;
};

}  // namespace framejit
