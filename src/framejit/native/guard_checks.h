// Single checks and accessors of a guard tree, without the tree.
// In: one value (or NULL for "not there"). Out: pass / fail / "cannot tell without running Python code".
// Every operation exists twice: pure (runs no Python code, allocates nothing, borrows) and full.
#pragma once
#include "ref.h"
#include "tensor_check.h"

#include <memory>
#include <vector>

namespace framejit {

// A weak reference that only guards hold; weakref.getweakrefs() tells it from the program's own.
Ref new_guard_reference(PyObject* object);
int add_guard_reference(PyObject* module);
// Adds CHECKS, the names of all checks.
int add_check_names(PyObject* module);

enum class Answer : uint8_t { No, Yes, Unknown };  // Unknown: needs Python code

inline Answer answer(bool condition) { return condition ? Answer::Yes : Answer::No; }

enum class Accessor : uint8_t { Slot, Const, Cell, Dict, Item, Index, Type, TypeAttr, Attr, Call, KeyAt, ValueAt, Proxied };

// C-level attributes that are plain fields, read without the attribute protocol.
enum class Field : uint8_t { None, Closure, Defaults, KwDefaults, Code, Globals, Self, Func, Name, QualName, Mro, Bases };

struct Access {
  Accessor kind;
  Ref key;
  Py_hash_t hash = 0;        // of `key`, for Item
  bool string_key = false;   // `key` is an exact str
  bool weak = false;         // for Item: `key` is a weak reference to it
  Py_ssize_t index = 0;      // for Slot, Index, KeyAt, ValueAt
  Field field = Field::None; // for Attr
};

enum class CheckKind : uint8_t {
  Type, Id, Equals, Len, Keys, Absent, Present, Function, Tensor, Same, Distinct, Apart, Bool, Leaf
};

struct Check {
  CheckKind kind;
  Ref payload;               // the type, value, tuple of keys, code, callable, example's type; Id: a weak reference
  bool weak = false;         // Id: `payload` is a weak reference
  Py_ssize_t number = 0;     // Len, Bool, Leaf
  std::vector<int> nodes;    // Same, Distinct, Apart
  std::unique_ptr<TensorCheck> tensor;
};

// Parses what the guard planner wrote; -1 with an exception if it is malformed.
int parse_access(PyObject* name, PyObject* key, bool is_root, Access* access);
int parse_check(PyObject* spec, int node_index, Check* check);
// The names that the two above know.
const char* accessor_name(Accessor kind);
const char* check_name(CheckKind kind);

// The value below `parent`, borrowed. *value may become NULL. False: cannot be read purely.
bool load_pure(const Access& access, PyObject* parent, PyObject** value);
// Where an instance holds the value of a slot, or of another field that holds an object; NULL if `name` is none.
// *if_null: what an empty place means.
PyObject** member_address(PyObject* name, PyObject* parent, PyObject** if_null);
// An attribute as C code finds it: no method of the program's is called for it, `__getattribute__` and `__getattr__`
// included. Only modules are asked, whose classes import on demand. NULL with an exception if there is none.
Ref c_attribute(PyObject* object, PyObject* name);
// The same as `load_pure` as a new reference, with Python code where necessary; NULL (no exception) if there is none.
Ref load_full(const Access& access, PyObject* parent);

// Checks of one value alone, i.e. all kinds but Same, Distinct and Apart.
Answer check_pure(const Check& check, PyObject* value, const ThreadKeys& thread);
bool check_full(const Check& check, PyObject* value, const ThreadKeys& thread);

// torch.Tensor; NULL with an exception if it cannot be had. Once it was had, it can.
PyTypeObject* tensor_class();
// Is this a tensor whose gradient autograd computes and then only stores or adds up, apart from what Python's hooks do
// if it may have some? See gradient_hooks.cpp.
bool is_plain_leaf(PyObject* value, bool may_have_hooks);

// Whether no object is there twice.
bool all_differ(std::vector<PyObject*>& objects);

// `value_of(node)` gives the value of another node.
template <typename ValueOf>
bool check_relation(const Check& check, PyObject* value, const ValueOf& value_of) {
  if (value == nullptr) return false;
  if (check.kind == CheckKind::Apart) {
    std::vector<PyObject*> objects{value};
    for (int node : check.nodes) objects.push_back(value_of(node));
    return all_differ(objects);
  }
  bool distinct = check.kind == CheckKind::Distinct;
  for (int node : check.nodes) {
    if ((value_of(node) == value) == distinct) return false;
  }
  return true;
}

inline bool is_relation(const Check& check) {
  return check.kind == CheckKind::Same || check.kind == CheckKind::Distinct || check.kind == CheckKind::Apart;
}

// True if the result of an Equals check on this very object can never change.
bool is_unchanging(PyObject* value);

// The order of an OrderedDict is not that of its dict, and changes without a new dict version.
inline bool has_own_order(PyObject* dict) { return PyODict_Check(dict); }

}  // namespace framejit
