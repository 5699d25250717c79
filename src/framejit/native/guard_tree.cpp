// See guard_tree.h. The evaluation: records first, then the check by value.
#include "guard_tree.h"

#include <utility>

namespace framejit {

// Calls alternate between at most this many sets of objects (say, the layers that share one compiled forward) at
// full speed.
static constexpr size_t kMaxRecords = 16;
static constexpr int kMaxPinMisses = 64;

static PyObject* value_in(const Record& record, PyObject* const* fresh, int node) {
  return record.places[node] == Place::Pinned ? record.pinned[node] : fresh[record.fresh[node]];
}

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
  int failed = -1;
  if (shapes && !shapes->evaluate(value_of, nullptr, &failed)) {
    *failure = {shapes->node_of(failed), -3 - (failed < 0 ? 0 : failed)};
    return false;
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
        for (int k = 0; k < value_count; k++) {
          const Record::Captured& captured = record.captures[k];
          PyObject* value = captured.object ? captured.object : fresh[record.fresh[captured.node]];
          if (value == nullptr) {
            while (k > 0) Py_DECREF(captures[--k]);
            return false;
          }
          captures[k] = Py_NewRef(value);
        }
        return add_numbers([&](int node) { return value_in(record, fresh, node); }, captures);
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
  return add_numbers([&](int node) { return values[static_cast<size_t>(node)].get(); }, captures);
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

static bool holds(const Word& word) { return *word.address == word.expected; }

// The first word in [word, end) that is not as expected, or `end`.
static const Word* first_difference(const Word* word, const Word* end) {
  while (end - word >= 8 && holds(word[0]) && holds(word[1]) && holds(word[2]) && holds(word[3]) && holds(word[4]) &&
         holds(word[5]) && holds(word[6]) && holds(word[7])) {
    word += 8;
  }
  while (word != end && holds(*word)) word++;
  return word;
}

// Runs no Python code and gives up no reference, so nothing changes while it runs.
GuardTree::Scan GuardTree::scan(Record& record, PyObject* const* slots, Py_ssize_t count, PyObject** fresh,
                                const ThreadKeys& thread, int* missed_pin) {
  for (const Op& op : record.ops) {
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
      case OpKind::LoadAt: {
        PyObject* held = *reinterpret_cast<PyObject**>(op.object);
        fresh[op.fresh] = held ? held : op.if_null;
        break;
      }
      case OpKind::Pin:
        if (fresh[op.fresh] != op.object || weak_referent(op.expected) != op.object) {
          *missed_pin = op.node;
          return Scan::OtherObject;
        }
        break;
      case OpKind::Words: {
        // Each word is read only after those before it have held, which is what makes its address valid.
        const Word* end = record.words.data() + op.end;
        const Word* word = record.words.data() + op.begin;
        while (true) {
          word = first_difference(word, end);
          if (word == end) break;
          Scan scan = word_differs(record, static_cast<size_t>(word - record.words.data()), thread, missed_pin);
          if (scan != Scan::Hold) return scan;
          word++;
        }
        break;
      }
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
  bool same_thread = record.thread == thread;
  for (Record::PinnedTensor& pinned : record.tensors) {
    if (same_thread && pinned.check->same_as(pinned.tensor, pinned.seen)) continue;
    if (!pinned.check->matches(pinned.tensor, thread)) return Scan::Fail;
    if (same_thread) pinned.seen.remember(tensor_impl(pinned.tensor));
  }
  return Scan::Hold;
}

GuardTree::Scan GuardTree::word_differs(Record& record, size_t index, const ThreadKeys& thread, int* missed_pin) {
  const WordInfo& info = record.word_infos[index];
  Word& word = record.words[index];
  switch (info.kind) {
    case WordKind::Structure:
      return Scan::Stale;
    case WordKind::Unsteady:
      nodes[info.node].unsteady = true;
      return Scan::Stale;
    case WordKind::Version: {
      Scan scan = repair(record, info, thread);
      if (scan != Scan::Hold) return scan;
      break;
    }
    case WordKind::Check: {
      Answer answer = check_pure(*info.check, info.object, thread);
      if (answer != Answer::Yes) return answer == Answer::No ? Scan::Fail : Scan::Stale;
      break;
    }
    case WordKind::Identity:
      *missed_pin = info.node;
      return Scan::OtherObject;
  }
  word.expected = *word.address;
  return Scan::Hold;
}

// Records made from now on can repair themselves when this dict changes. Attributes are often changed for many objects
// at a time (`model.eval()`), so one changed `__dict__` speaks for all.
void GuardTree::watch(int node) {
  nodes[node].watched = true;
  if (nodes[node].access.kind != Accessor::Dict) return;
  for (Node& other : nodes) {
    if (other.access.kind == Accessor::Dict) other.watched = true;
  }
}

static Answer check_all(const std::vector<Check>& checks, PyObject* value, const ThreadKeys& thread) {
  for (const Check& check : checks) {
    Answer answer = check_pure(check, value, thread);
    if (answer != Answer::Yes) return answer;
  }
  return Answer::Yes;
}

// What was read from a dict that has changed: is it still the same? Fail: a guard does not hold. The record is as good
// as before then, for when the change is undone.
GuardTree::Scan GuardTree::repair(Record& record, const WordInfo& info, const ThreadKeys& thread) {
  if (info.repair == 0) return watch(info.node), Scan::Stale;
  const Repair& repair = record.repairs[info.repair - 1];
  PyObject* dict = info.object;
  for (const RepairItem& item : repair.items) {
    const Node& node = nodes[item.node];
    PyObject* value;
    if (!load_pure(node.access, dict, &value)) return Scan::Stale;
    bool same = true;
    switch (item.kind) {
      case RepairItem::Absent:
        same = value == nullptr;
        if (!same && check_all(node.checks, value, thread) == Answer::No) return Scan::Fail;
        break;
      case RepairItem::Recheck: {
        Answer answer = check_all(node.checks, value, thread);
        if (answer == Answer::No) return Scan::Fail;
        same = value != nullptr && answer == Answer::Yes;
        break;
      }
      case RepairItem::SameDict: {
        const Word& version = record.words[item.word];
        same = value == item.dict && PyDict_Check(value) && *version.address == version.expected;
        break;
      }
      case RepairItem::SameWeakly:
        same = value == record.pinned[item.node] && weak_referent(item.weak) == value;
        break;
    }
    if (!same) return Scan::Stale;
  }
  for (const Check* check : repair.key_checks) {
    Answer answer = check_pure(*check, dict, thread);
    if (answer != Answer::Yes) return answer == Answer::No ? Scan::Fail : Scan::Stale;
  }
  return Scan::Hold;
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
  for (const Record::Captured& captured : record.captures) {
    if (!value_of(captured.node)) return false;
  }
  for (int k = 0; k < value_count; k++) captures[k] = Py_NewRef(value_of(record.captures[k].node));
  return add_numbers(value_of, captures);
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
