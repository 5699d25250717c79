// TensorCheck: the metadata of one tensor, copied at construction, and the comparison of another tensor with it.
// In: an example tensor. Out: yes or no in about 10 ns. Uses c10 headers only: python_variable.h takes 15 s to compile.
#pragma once
#include "cpython_compat.h"

#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

#include <algorithm>
#include <cstring>
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
  bool operator==(const ThreadKeys& other) const = default;
};

// Whether a tensor requires grad, without two calls into other libraries. module.cpp verifies where the pointer is.
struct TensorFields : c10::TensorImpl {
  static c10::AutogradMetaInterface* autograd_meta(c10::TensorImpl* tensor) {
    auto* behind = reinterpret_cast<c10::AutogradMetaInterface**>(&(tensor->*&TensorFields::extra_meta_));
    return behind[-1];
  }

  // Does nobody but the tensor itself say what its sizes, strides, device and layout are?
  static bool speaks_for_itself(c10::TensorImpl* tensor) {
    auto* fields = static_cast<TensorFields*>(tensor);
    return !fields->matches_policy(SizesStridesPolicy::CustomStrides) && !fields->device_policy_ &&
        !fields->layout_policy_;
  }
};

inline bool requires_grad(c10::TensorImpl* tensor) {
  c10::AutogradMetaInterface* meta = TensorFields::autograd_meta(tensor);
  return meta != nullptr && meta->requires_grad();
}

typedef uint64_t WordPair __attribute__((vector_size(16)));

// Where a tensor keeps its metadata, in words of eight bytes:
// sizes and strides | storage offset | number of elements | dtype, device, flags || dispatch keys
struct MetadataLayout : c10::TensorImpl {
  using Word = const uint64_t __attribute__((may_alias));
  static constexpr size_t kOffset = sizeof(c10::impl::SizesAndStrides) / 8, kTotal = kOffset + 3;
  static_assert(kOffset == 11, "the sizes and strides of this torch are laid out in another way");

  static Word* start(c10::TensorImpl* tensor) {
    return reinterpret_cast<Word*>(&(tensor->*&MetadataLayout::sizes_and_strides_));
  }
  // False: it is another layout after all.
  static bool known(c10::TensorImpl* tensor) {
    Word* now = start(tensor);
    return static_cast<const void*>(&(tensor->*&MetadataLayout::key_set_)) == now + kTotal &&
        static_cast<const void*>(&(tensor->*&MetadataLayout::storage_offset_)) == now + kOffset;
  }
  static WordPair pair(const void* words, size_t index) {
    WordPair value;
    memcpy(&value, static_cast<const char*>(words) + 8 * index, sizeof value);
    return value;
  }
};

// The metadata of one plain tensor of at most two dimensions: 64 bytes that tell whether anything was changed.
class TensorSnapshot {
 public:
  bool equal(c10::TensorImpl* tensor) const {
    const auto* now = MetadataLayout::start(tensor);
    WordPair differences = (MetadataLayout::pair(now, 0) ^ dim_and_size_) | (MetadataLayout::pair(now, 1) ^ sizes_) |
        (MetadataLayout::pair(now, 6) ^ strides_) | (MetadataLayout::pair(now, MetadataLayout::kTotal - 1) ^ kind_);
    return (differences[0] | differences[1]) == 0;
  }

  // Tensors of another kind never equal what was remembered.
  void remember(c10::TensorImpl* tensor) {
    if (!MetadataLayout::known(tensor) || tensor->dim() > 2) return;
    const auto* now = MetadataLayout::start(tensor);
    dim_and_size_ = MetadataLayout::pair(now, 0);
    sizes_ = MetadataLayout::pair(now, 1);
    strides_ = MetadataLayout::pair(now, 6);
    kind_ = MetadataLayout::pair(now, MetadataLayout::kTotal - 1);
  }

 private:
  WordPair dim_and_size_ = {~uint64_t{0}, 0}, sizes_{}, strides_{}, kind_{};
};

// The words of a tensor's sizes, strides, dtype and device: while they are those of a tensor that was found to match,
// so does this one. The storage offset in between does not count. Absent for more than five dimensions, whose sizes are
// not in place.
class MetadataWords {
 public:
  bool equal(c10::TensorImpl* tensor) const {
    const auto* now = MetadataLayout::start(tensor);
    WordPair differences = differing(now, 0) | differing(now, 2) | differing(now, 4) | differing(now, 6) |
        differing(now, 8) | differing(now, 12);
    return known_ && (differences[0] | differences[1] | (now[10] ^ words_[10])) == 0;
  }

  void remember(c10::TensorImpl* tensor) {
    const auto* now = MetadataLayout::start(tensor);
    known_ = tensor->dim() <= C10_SIZES_AND_STRIDES_MAX_INLINE_SIZE && MetadataLayout::known(tensor);
    if (known_) std::copy(now, now + MetadataLayout::kTotal, words_);
  }

 private:
  // The differences in two words, in one instruction of the machine.
  WordPair differing(const void* now, size_t index) const {
    return MetadataLayout::pair(now, index) ^ MetadataLayout::pair(words_, index);
  }

  uint64_t words_[MetadataLayout::kTotal];
  bool known_ = false;
};

class TensorCheck {
 public:
  // May throw c10::Error, e.g. for sizes that are symbols. `free_dims`: dimensions whose size may vary;
  // `free_strides`: those whose stride may (null: all, if any size may).
  TensorCheck(PyObject* example, bool dynamic, const std::vector<int64_t>& free_dims,
              const std::vector<int64_t>* free_strides = nullptr)
      : type_(Py_TYPE(example)), dynamic_(dynamic) {
    auto* tensor = tensor_impl(example);
    plain_ = is_plain(tensor);
    keys_ = effective_keys(tensor, ThreadKeys::read());
    dtype_ = tensor->dtype().toScalarType();
    device_ = tensor->device();
    requires_grad_ = tensor->requires_grad();
    layout_ = tensor->layout();
    ndim_ = tensor->dim();
    check_strides_ = !dynamic && (free_dims.empty() || free_strides) && layout_ == c10::kStrided;
    if (!dynamic) sizes_ = tensor->sizes().vec();
    for (int64_t dim : free_dims) {
      if (!dynamic && dim >= 0 && dim < ndim_) sizes_[dim] = kAnySize;
    }
    if (check_strides_) strides_ = tensor->strides().vec();
    for (int64_t dim : free_strides ? *free_strides : std::vector<int64_t>()) {
      if (check_strides_ && dim >= 0 && dim < ndim_) strides_[dim] = kAnyStride;
    }
  }

  // From what `metadata` returned; sets a Python exception when that is malformed.
  TensorCheck(PyTypeObject* type, PyObject* metadata) : type_(type) {
    unsigned long long keys;
    int dtype, device_type, device_index, layout, grad, plain, dynamic, check_strides;
    long long ndim;
    PyObject *sizes, *strides;
    if (!PyTuple_Check(metadata) ||
        !PyArg_ParseTuple(metadata, "KiiiippppLO!O!:metadata", &keys, &dtype, &device_type, &device_index, &layout,
                          &grad, &plain, &dynamic, &check_strides, &ndim, &PyTuple_Type, &sizes, &PyTuple_Type,
                          &strides)) {
      if (!PyErr_Occurred()) PyErr_SetString(PyExc_TypeError, "the metadata of a tensor must be a tuple");
      return;
    }
    keys_ = keys;
    dtype_ = static_cast<c10::ScalarType>(dtype);
    try {
      device_ = c10::Device(static_cast<c10::DeviceType>(device_type), static_cast<c10::DeviceIndex>(device_index));
    } catch (const std::exception&) {
      PyErr_SetString(PyExc_ValueError, "the metadata of a tensor names no device");
    }
    layout_ = static_cast<c10::Layout>(layout);
    requires_grad_ = grad;
    plain_ = plain;
    dynamic_ = dynamic;
    check_strides_ = check_strides;
    ndim_ = ndim;
    sizes_ = numbers(sizes);
    strides_ = numbers(strides);
    bool whole = (dynamic_ || static_cast<int64_t>(sizes_.size()) == ndim_) &&
        (!check_strides_ || static_cast<int64_t>(strides_.size()) == ndim_);
    if (!whole && !PyErr_Occurred()) PyErr_SetString(PyExc_ValueError, "the metadata of a tensor is incomplete");
  }

  // Everything that is compared besides the class: (keys, dtype, device type, device index, layout, requires_grad,
  // plain, dynamic, check_strides, ndim, sizes with -1 for any, strides).
  PyObject* metadata() const {
    return Py_BuildValue("(KiiiiiiiiLNN)", static_cast<unsigned long long>(keys_), static_cast<int>(dtype_),
                         static_cast<int>(device_.type()), static_cast<int>(device_.index()), static_cast<int>(layout_),
                         int{requires_grad_}, int{plain_}, int{dynamic_}, int{check_strides_},
                         static_cast<long long>(ndim_), tuple_of(sizes_), tuple_of(strides_));
  }

  // False: reading the metadata may run Python code or throw (sparse, nested, symbolic, sizes that a class tells).
  bool plain() const { return plain_; }

  // Whether a tensor that matched is unchanged since `seen` was taken, under the same keys of the thread.
  bool same_as(PyObject* value, const TensorSnapshot& seen) const {
    c10::TensorImpl* tensor = tensor_impl(value);
    return Py_TYPE(value) == type_ && seen.equal(tensor) && framejit::requires_grad(tensor) == requires_grad_;
  }

  bool matches(PyObject* value, const ThreadKeys& thread) const {
    if (Py_TYPE(value) != type_) return false;
    auto* tensor = tensor_impl(value);
    if (effective_keys(tensor, thread) != keys_) return false;
    if (words_.equal(tensor)) return framejit::requires_grad(tensor) == requires_grad_;
    if (!plain_) return matches_slowly(tensor);
    if (!is_plain(tensor)) return false;
    if (tensor->dtype().toScalarType() != dtype_ || tensor->device() != device_ || !matches_shape(tensor)) return false;
    words_.remember(tensor);
    return tensor->requires_grad() == requires_grad_;
  }

 private:
  static constexpr int64_t kAnySize = -1;
  static constexpr int64_t kAnyStride = INT64_MIN;

  static PyObject* tuple_of(const std::vector<int64_t>& values) {
    PyObject* tuple = PyTuple_New(static_cast<Py_ssize_t>(values.size()));
    for (size_t i = 0; tuple && i < values.size(); i++) {
      PyTuple_SET_ITEM(tuple, static_cast<Py_ssize_t>(i), PyLong_FromLongLong(values[i]));
    }
    return tuple;
  }

  static std::vector<int64_t> numbers(PyObject* tuple) {
    std::vector<int64_t> values;
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(tuple); i++) {
      values.push_back(PyLong_AsLongLong(PyTuple_GET_ITEM(tuple, i)));
    }
    return values;
  }

  static uint64_t effective_keys(c10::TensorImpl* tensor, const ThreadKeys& thread) {
    return (tensor->key_set().raw_repr() | thread.include) & ~thread.exclude;
  }

  static bool is_plain(c10::TensorImpl* tensor) {
    constexpr c10::DispatchKeySet special(
        {c10::DispatchKey::Sparse, c10::DispatchKey::SparseCsr, c10::DispatchKey::NestedTensor,
         c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper, c10::DispatchKey::Functionalize,
         c10::DispatchKey::MkldnnCPU});
    return (tensor->key_set().raw_repr() & special.raw_repr() & ~uint64_t{c10::full_backend_mask}) == 0 &&
        TensorFields::speaks_for_itself(tensor) && tensor->layout() == c10::kStrided &&
        !tensor->has_symbolic_sizes_strides();
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
      if (strides[i] != strides_[i] && strides_[i] != kAnyStride) return false;
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
  mutable MetadataWords words_;  // of the last tensor that matched; only for plain ones
  std::vector<int64_t> sizes_, strides_;
};

}  // namespace framejit
