// Calls that are also run as plain Python. In: a call of a compiled object. Out: its result; the auditor compares.
#pragma once
#include "dispatch.h"

namespace framejit {

// How many auditors there are, of all threads together. 0: a call pays for reading this and no more.
extern int audits;

// Is this call of the thread one of the sample? Counts it. Ask only where `audits` is not 0.
bool audit_is_due();

// In its scope, nothing else is audited in this thread.
class AuditingScope {
 public:
  explicit AuditingScope(ThreadState& thread) : thread_(thread), previous_(std::exchange(thread.auditing, true)) {}
  ~AuditingScope() { thread_.auditing = previous_; }
  AuditingScope(const AuditingScope&) = delete;
  AuditingScope& operator=(const AuditingScope&) = delete;

 private:
  ThreadState& thread_;
  bool previous_;
};

// Makes the compiled call with `run(data, fell_back)`, and the plain ones that the auditor wants. `kwargs` may be None:
// `args` are the slots of a frame of `function` then.
PyObject* audited(PyObject* compiled, PyObject* function, PyObject* args, PyObject* kwargs, bool* fell_back,
                  PyObject* (*run)(void*, bool*), void* data);

int add_audit(PyObject* module);

}  // namespace framejit
