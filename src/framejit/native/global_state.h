// GlobalState: what a captured program depends on besides its inputs (grad mode, autocast, modes, default dtype, ...).
// In: nothing, it is read at construction. Out: matches(), the difference in words, and the Python type `GlobalState`.
#pragma once
#include "ref.h"

#include <string>
#include <vector>

namespace framejit {

struct GlobalFlags {
  bool grad, inference, forward_grad, autocast_cache;
  bool deterministic, deterministic_warn_only, skip_next_torch_function;
  int8_t torch_function_state, default_dtype, autocast_dtype_cpu, autocast_dtype_cuda;
  bool autocast_cpu, autocast_cuda;
  int64_t torch_dispatch_modes;
  uint64_t keys_included, keys_excluded;
  uint64_t saved_tensor_hooks_refused;  // a hash of why they are, 0 where they are not
  bool attributes_replaced;             // has a watched class something else than what it had?
  static GlobalFlags read();
  bool operator==(const GlobalFlags& other) const;
};

struct GlobalStateObject {
  PyObject_HEAD
  GlobalFlags flags;
  int64_t autocast_level;        // in how many blocks of torch.autocast it was made
  bool autocast_level_required;  // does what is captured depend on that? Most does on what is set alone
  std::vector<Ref>* function_modes;
  PyObject *pack, *unpack;  // the innermost saved-tensor hooks, or null
};

extern PyTypeObject* global_state_type;

// Does the state of this thread equal the snapshot? Runs no Python code unless the mode stacks differ in identity.
bool global_state_matches(const GlobalStateObject* state);
int add_global_state(PyObject* module);

}  // namespace framejit
