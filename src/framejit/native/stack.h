// How much of the thread's C stack is left: what recursion through C code may use, where CPython counts Python calls only.
#pragma once
#include <pthread.h>

#include <cstddef>
#include <cstdint>

namespace framejit {

struct CStack {
  uintptr_t low;  // it grows down to here
  size_t size;    // 0: nobody knows
};

inline CStack find_c_stack() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return {0, 0};
  void* low = nullptr;
  size_t size = 0;
  if (pthread_attr_getstack(&attributes, &low, &size) != 0) size = 0;
  pthread_attr_destroy(&attributes);
  return {reinterpret_cast<uintptr_t>(low), size};
}

enum class StackLeft { enough, less_than_half, nearly_none };

// The calling thread's. Where it runs on a stack that is not the thread's own there is enough.
inline StackLeft stack_left() {
  constexpr size_t kReserve = 256 * 1024;
  static thread_local const CStack stack = find_c_stack();
  size_t left = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - stack.low;
  if (left >= stack.size / 2) return StackLeft::enough;
  size_t reserve = stack.size / 8 < kReserve ? stack.size / 8 : kReserve;
  return left < reserve ? StackLeft::nearly_none : StackLeft::less_than_half;
}

}  // namespace framejit
