// See guard_tree.h. The evaluation: records first, then the check by value.
#include "guard_tree.h"

#include <utility>

namespace framejit {

// Calls alternate between at most this many sets of objects (say, the layers that share one compiled forward) at
// full speed.
static constexpr size_t kMaxRecords = 16;
static constexpr int kMaxPinMisses = 64;

bool GuardTree::check_by_value(PyObject* const* slots, Py_ssize_t count, std::vector<Ref>* values, Failure* failure) {
  ThreadKeys thread = ThreadKeys::read();
  values->clear();
  values->resize(nodes.size());
  auto value_of = [&](int node) { return (*values)[node].get(); };
  for (size_t i = 0; i < nodes.size(); i++) {
    Node& node = nodes[i];
    Ref& value = (*values)[i];
    if (node.access.kind == Accessor::Slot) {
      Py_ssize_t index = node.access.index;
      value = Ref::borrow(index >= 0 && index < count ? slots[index] : nullptr);
    } else {
      value = load_full(node.access, node.parent < 0 ? nullptr : value_of(node.parent));
    }
    for (size_t k = 0; k < node.checks.size(); k++) {
      const Check& check = node.checks[k];
      bool passed = is_relation(check) ? check_relation(check, value.get(), value_of)
                                       : check_full(check, value.get(), thread);
      if (!passed) {
        *failure = {static_cast<int>(i), static_cast<int>(k)};
        return false;
      }
    }
    if (node.capture >= 0 && !value) {
      *failure = {static_cast<int>(i), -1};
      return false;
    }
  }
  return true;
}

bool GuardTree::evaluate(PyObject* const* slots, Py_ssize_t count, PyObject** captures) {
  if (state && !global_state_matches(reinterpret_cast<GlobalStateObject*>(state.get()))) return false;
  if (capture_count < 0) return false;  // cleared by the garbage collector
  ThreadKeys thread = ThreadKeys::read();
  int missed_pin = -1;
  constexpr size_t kOnStack = 64;
  PyObject* on_stack[kOnStack];
  std::vector<PyObject*> on_heap;
  for (size_t i = 0; i < records_.size();) {
    Record& record = *records_[i];
    PyObject** fresh = on_stack;
    if (record.fresh_count > kOnStack) {
      on_heap.resize(record.fresh_count);
      fresh = on_heap.data();
    }
    switch (scan(record, slots, count, fresh, thread, &missed_pin)) {
      case Scan::Hold: {
        if (i) std::swap(records_[0], records_[i]);
        if (!record.late.empty()) {
          std::shared_ptr<Record> keep = records_[0];  // Python code may come back here and replace the records
          return run_late(record, fresh, thread, captures);
        }
        for (int k = 0; k < capture_count; k++) {
          int node = record.captures[k];
          PyObject* value = record.places[node] == Place::Pinned ? record.pinned[node] : fresh[record.fresh[node]];
          if (value == nullptr) {
            while (k > 0) Py_DECREF(captures[--k]);
            return false;
          }
          captures[k] = Py_NewRef(value);
        }
        return true;
      }
      case Scan::Fail:
        return false;  // up to here all values were those of a full check, so that would fail too
      case Scan::OtherObject:
        i++;
        break;
      case Scan::Stale:
        records_.erase(records_.begin() + static_cast<Py_ssize_t>(i));
        break;
    }
  }
  std::vector<Ref> values;
  Failure failure;
  full_checks++;
  if (!check_by_value(slots, count, &values, &failure)) return false;
  for (size_t i = 0; i < nodes.size(); i++) {
    if (nodes[i].capture >= 0) captures[nodes[i].capture] = Py_NewRef(values[i].get());
  }
  remember(values, missed_pin);
  return true;
}

void GuardTree::remember(const std::vector<Ref>& values, int missed_pin) {
  if (missed_pin >= 0 && ++nodes[missed_pin].pin_misses > kMaxPinMisses) {
    nodes[missed_pin].transient = true;
    records_.clear();
  }
  std::shared_ptr<Record> record = make_record(*this, values);
  if (!record) return;
  if (records_.size() >= kMaxRecords) records_.pop_back();
  records_.insert(records_.begin(), std::move(record));
}

static PyObject* value_in(const Record& record, PyObject* const* fresh, int node) {
  return record.places[node] == Place::Pinned ? record.pinned[node] : fresh[record.fresh[node]];
}

// Runs no Python code and gives up no reference, so nothing changes while it runs.
GuardTree::Scan GuardTree::scan(Record& record, PyObject* const* slots, Py_ssize_t count, PyObject** fresh,
                                const ThreadKeys& thread, int* missed_pin) {
  for (Op& op : record.ops) {
    bool holds = true;
    switch (op.kind) {
      case OpKind::LoadSlot:
        fresh[op.fresh] = op.number >= 0 && op.number < count ? slots[op.number] : nullptr;
        break;
      case OpKind::Load: {
        PyObject* parent = op.object ? op.object : fresh[op.number];
        holds = load_pure(nodes[op.node].access, parent, &fresh[op.fresh]);
        break;
      }
      case OpKind::Pin:
        if (fresh[op.fresh] != op.object || weak_referent(op.expected) != op.object) {
          *missed_pin = op.node;
          return Scan::OtherObject;
        }
        break;
      case OpKind::InstanceDict: {
        PyObject* dict = existing_instance_dict(op.object);
        holds = dict && (dict_version(dict) == op.version || repair(record, op, dict, thread));
        break;
      }
      case OpKind::DictVersion:
        holds = dict_version(op.object) == op.version || repair(record, op, op.object, thread);
        break;
      case OpKind::TypeVersion:
        holds = type_version(reinterpret_cast<PyTypeObject*>(op.object)) == op.version;
        break;
      case OpKind::TypeIs:
        holds = reinterpret_cast<PyObject*>(Py_TYPE(op.object)) == op.expected;
        break;
      case OpKind::DictLen:
        holds = PyDict_GET_SIZE(op.object) == op.number;
        break;
      case OpKind::FunctionCode:
        holds = PyFunction_GET_CODE(op.object) == op.expected;
        break;
      case OpKind::PinnedTensor:
        holds = op.check->tensor->matches(op.object, thread);
        break;
      case OpKind::FreshTensor:
        holds = fresh[op.fresh] && op.check->tensor->matches(fresh[op.fresh], thread);
        break;
      case OpKind::PinnedCheck:
      case OpKind::FreshCheck: {
        Answer answer = check_pure(*op.check, op.kind == OpKind::PinnedCheck ? op.object : fresh[op.fresh], thread);
        if (answer == Answer::Unknown) return Scan::Stale;
        holds = answer == Answer::Yes;
        break;
      }
      case OpKind::Relation:
        holds = check_relation(*op.check, value_in(record, fresh, op.node),
                               [&](int node) { return value_in(record, fresh, node); });
        break;
    }
    if (!holds) return op.is_check ? Scan::Fail : Scan::Stale;
  }
  return Scan::Hold;
}

bool GuardTree::repair(Record& record, Op& op, PyObject* dict, const ThreadKeys& thread) {
  if (op.fresh == 0) {
    nodes[op.node].watched = true;  // the next record of this tree can repair itself
    return false;
  }
  if (dict != record.pinned[op.node]) return false;  // replaced: other ops follow the old address
  const Repair& repair = record.repairs[op.fresh - 1];
  for (const RepairItem& item : repair.items) {
    const Node& node = nodes[item.node];
    PyObject* value;
    if (!load_pure(node.access, dict, &value)) return false;
    switch (item.kind) {
      case RepairItem::Absent:
        if (value != nullptr) return false;
        break;
      case RepairItem::Recheck:
        if (value == nullptr) return false;
        for (const Check& check : node.checks) {
          if (check_pure(check, value, thread) != Answer::Yes) return false;
        }
        break;
      case RepairItem::SameDict:
        if (value != item.dict || !PyDict_Check(value) || dict_version(value) != record.ops[item.op].version) {
          return false;
        }
        break;
      case RepairItem::SameWeakly:
        if (value != record.pinned[item.node] || weak_referent(item.weak) != value) return false;
        break;
    }
  }
  for (const Check* check : repair.key_checks) {
    if (check_pure(*check, dict, thread) != Answer::Yes) return false;
  }
  op.version = dict_version(dict);
  return true;
}

bool GuardTree::run_late(const Record& record, PyObject* const* fresh, const ThreadKeys& thread, PyObject** captures) {
  std::vector<Ref> values(record.late_count);
  // Own everything needed before the first line of Python code runs: it may change or free any of it.
  for (int node : record.late_inputs) values[record.late_index[node]] = Ref::borrow(value_in(record, fresh, node));
  auto value_of = [&](int node) { return values[record.late_index[node]].get(); };
  for (const Record::Late& step : record.late) {
    if (step.load) {
      const Node& node = nodes[step.node];
      values[record.late_index[step.node]] = load_full(node.access, value_of(node.parent));
    }
    PyObject* value = value_of(step.node);
    for (const Check* check : step.checks) {
      if (!(is_relation(*check) ? check_relation(*check, value, value_of) : check_full(*check, value, thread))) {
        return false;
      }
    }
  }
  for (int node : record.captures) {
    if (!value_of(node)) return false;
  }
  for (int k = 0; k < capture_count; k++) captures[k] = Py_NewRef(value_of(record.captures[k]));
  return true;
}

int GuardTree::traverse(visitproc visit, void* arg) {
  Py_VISIT(state.get());
  for (const Node& node : nodes) {
    Py_VISIT(node.access.key.get());
    for (const Check& check : node.checks) Py_VISIT(check.payload.get());
  }
  for (const auto& record : records_) {
    if (record.use_count() > 1) continue;  // being run: its references are not only ours
    for (const Ref& pin : record->pins) Py_VISIT(pin.get());
  }
  return 0;
}

void GuardTree::clear() {
  capture_count = -1;
  auto old_records = std::move(records_);
  records_.clear();
  auto old_nodes = std::move(nodes);
  nodes.clear();
  Ref old_state = std::move(state);
}

}  // namespace framejit
