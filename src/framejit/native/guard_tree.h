// GuardTree: the guards of one entry as a tree of values with checks, and the records that make a hit cheap.
// In: a call's slots. Out: pass or fail, and the captured values. Built by guards/, used by dispatch.cpp.
//
// A full check walks the tree by value. When it passes, a Record is made: a flat list of cheap operations such that,
// while all of them hold, a full check would pass with the same values. guard_record.cpp explains why that is sound.
#pragma once
#include "global_state.h"
#include "guard_checks.h"
#include "shape_program.h"

#include <memory>
#include <vector>

namespace framejit {

struct Node {
  int parent = -1;
  Access access;
  std::vector<Check> checks;
  int capture = -1;
  bool has_children = false;
  bool has_identity = false;  // is compared with another object, alone or in a Same check
  bool related = false;    // takes part in a Same or Distinct check, or its number in a shape check
  bool watched = false;    // a dict that was seen to change: records can repair themselves (see Repair)
  bool transient = false;  // a different object on nearly every call: records do not pin it
  bool unsteady = false;   // what it holds was seen to change: records read it anew on each call
  int pin_misses = 0;
};

// One comparison of a record: the eight bytes at `address` must still be `expected`. Everything that is known through
// pinned objects comes down to this: a dict's version, an object's class, a function's code, the size of a list.
using Bits = uint64_t __attribute__((may_alias));
struct Word {
  const Bits* address;
  uint64_t expected;
};

// What it means that a word differs; looked at only then.
enum class WordKind : uint8_t {
  Structure,  // something of the path to a value: the record is out of date
  Unsteady,   // the same; the next record reads the values of this node anew on each call
  Version,    // of a dict: look again at what was read from it
  Check,      // a guard, to be checked by value
  Identity,   // the object seen before is no longer there: another record may fit
};
struct WordInfo {
  WordKind kind;
  uint16_t repair = 0;  // Version: 1 + the index of its Repair, or 0
  int node = -1;
  PyObject* object = nullptr;    // Version, Check: the pinned object
  const Check* check = nullptr;  // Check
};

enum class OpKind : uint8_t { LoadSlot, Load, LoadAt, Pin, Words, FreshTensor, PinnedCheck, FreshCheck, Relation };

// One step of a record. `object` is a pinned object (see guard_record.cpp), for LoadAt the place in one that holds the
// value; `fresh` indexes the scratch array of values read anew on each call.
struct Op {
  OpKind kind;
  bool is_check = false;  // failing means the guard fails; otherwise only that the record is out of date
  uint16_t fresh = 0;
  int node = -1;
  PyObject* object = nullptr;
  union {
    Py_ssize_t number;    // LoadSlot, Load
    PyObject* expected;   // Pin
    PyObject* if_null;    // LoadAt
    const Check* check;
    struct {
      uint32_t begin, end;  // Words
    };
  };
};

// How a record survives the change of a dict (a script's globals change all the time): look up again the few items
// that were read from it.
struct RepairItem {
  enum Kind : uint8_t { Absent, Recheck, SameDict, SameWeakly } kind;
  int node;
  PyObject* weak = nullptr;  // SameWeakly: the reference to the object seen before, owned by Record::pins
  size_t word = 0;           // SameDict: the word that holds its version
  PyObject* dict = nullptr;  // SameDict: its address, compared only
};
struct Repair {
  std::vector<RepairItem> items;
  std::vector<const Check*> key_checks;
};

enum class Place : uint8_t { Pinned, Fresh, Late };

struct Record {
  std::vector<Op> ops;
  std::vector<Word> words;
  std::vector<WordInfo> word_infos;
  // Tensors that are pinned when all ops hold; checked last, in one run.
  struct PinnedTensor {
    PyObject* tensor;
    const TensorCheck* check;
    TensorSnapshot seen;  // of `tensor` when it matched, under `thread`
  };
  std::vector<PinnedTensor> tensors;
  ThreadKeys thread;
  std::vector<Repair> repairs;
  std::vector<Ref> pins;             // weak references, and constants
  DictVersions versions;             // of the dicts that words tell of
  std::vector<Place> places;         // per node
  std::vector<PyObject*> pinned;     // per node, borrowed; valid while the ops hold
  std::vector<uint16_t> fresh;       // per node, index into the scratch array
  size_t fresh_count = 0;
  // Per captured value: its node, and the pinned object or else NULL.
  struct Captured {
    int node;
    PyObject* object;
  };
  std::vector<Captured> captures;
  // What needs Python code runs after all ops, on owned references.
  struct Late {
    int node;
    bool load;
    std::vector<const Check*> checks;
  };
  std::vector<Late> late;
  std::vector<int> late_inputs;      // nodes whose values late steps read
  std::vector<int> late_index;       // per node, index into the owned values, or -1; empty without late steps
  size_t late_count = 0;
};

struct Failure {
  int node = -1;
  int check = 0;  // -1: captured value missing; -2: global state; -3 - k: shape check k (a number missing: -3)
};

class GuardTree {
 public:
  std::vector<Node> nodes;
  Ref state;
  int value_count = 0;                    // captured values of nodes
  int capture_count = 0;                  // the same and the numbers of `shapes`, which come after them
  std::unique_ptr<ShapeProgram> shapes;

  // Fills `captures` (capture_count new references) if the guards hold. Never leaves an exception.
  bool evaluate(PyObject* const* slots, Py_ssize_t count, PyObject** captures);
  // By value only, for explanations and tests.
  bool check_by_value(PyObject* const* slots, Py_ssize_t count, std::vector<Ref>* values, Failure* failure);
  size_t record_count() const { return records_.size(); }
  const Record* latest_record() const { return records_.empty() ? nullptr : records_[0].get(); }
  uint64_t full_checks = 0;

  int traverse(visitproc visit, void* arg);
  void clear();

 private:
  enum class Scan : uint8_t { Hold, Fail, OtherObject, Stale };
  Scan scan(Record& record, PyObject* const* slots, Py_ssize_t count, PyObject** fresh, const ThreadKeys& thread,
            int* missed_pin);
  Scan word_differs(Record& record, size_t index, const ThreadKeys& thread, int* missed_pin);
  Scan repair(Record& record, const WordInfo& info, const ThreadKeys& thread);
  void watch(int node);
  bool run_late(const Record& record, PyObject* const* fresh, const ThreadKeys& thread, PyObject** captures);
  void remember(const std::vector<Ref>& values, int missed_pin);
  // Whether the shape checks hold; the numbers become captures. If they do not, the captures before them are released.
  template <typename ValueOf>
  bool add_numbers(const ValueOf& value_of, PyObject** captures) const {
    if (!shapes || shapes->evaluate(value_of, captures + value_count)) return true;
    for (int k = 0; k < value_count; k++) Py_DECREF(captures[k]);
    return false;
  }

  std::vector<std::shared_ptr<Record>> records_;  // most recently used first
};

// Makes a record of a passed check; null if the world changed meanwhile or the tree is too large.
std::shared_ptr<Record> make_record(GuardTree& tree, const std::vector<Ref>& values);

// ---- the Python type (guard_type.cpp) ---------------------------------------------------------------------------

struct GuardTreeObject {
  PyObject_HEAD
  GuardTree* tree;
};
extern PyTypeObject* guard_tree_type;
int add_guard_tree(PyObject* module);

// The node list that the tree was made from (guard_export.cpp). LookupError: an object of an identity check has died.
PyObject* export_tree(const GuardTree& tree);

}  // namespace framejit
