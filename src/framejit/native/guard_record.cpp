// Makes the record of a check that has just passed by value. In: the tree and its values. Out: a flat list of ops.
//
// Each node is in one of three places:
// - Pinned: while the ops before it hold, its value is known to be the very object seen now, and alive. So children are
//   reached without look-ups and raw pointers may be followed. A pin starts from an object the tree owns ("const"), or
//   from a value read anew that equals a living weak reference; and it passes on through a dict whose version is
//   unchanged (versions are never reused, and the dict owns its values), an unchanged type, a tuple. A cell, a list, a
//   slot holds a pinned object if it still shows the address seen before and that cannot be the address of another
//   object meanwhile: the object is a dict of the same version, is seen alive through a weak reference, or is a
//   constant (an int, a str, a tuple of them, code), which the record keeps alive.
// - Fresh: read again on each call, by borrowing, and checked by value.
// - Late: reading or checking it may run Python code. Done after all ops, on owned references.
// Ops are in the order of the nodes, so what makes a pointer safe is tested before the pointer is followed.
#include "guard_tree.h"

#include <limits>

namespace framejit {

namespace {

// An instance of a static type keeps its class for life, except modules.
bool class_may_change(PyObject* object) {
  return PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE) || PyModule_Check(object);
}

class Recorder {
 public:
  Recorder(GuardTree& tree, const std::vector<Ref>& values)
      : tree_(tree), values_(values), record_(std::make_shared<Record>()) {
    size_t size = tree.nodes.size();
    record_->places.resize(size, Place::Fresh);
    record_->pinned.resize(size, nullptr);
    record_->fresh.resize(size, 0);
    record_->captures.resize(static_cast<size_t>(tree.value_count), {0, nullptr});
    version_word_.resize(size, kNoWord);
    pin_.resize(size, nullptr);
  }

  std::shared_ptr<Record> run() {
    if (!DictVersions::available()) return nullptr;
    // Making weak references allocates, which may run the garbage collector and with it any code: so it comes first,
    // and what follows, which runs no Python code, verifies every value again. So do dicts that get their own values.
    make_weak_references();
    for (const Ref& value : values_) {
      if (value && PyDict_Check(value.get()) && !own_dict_values(value.get())) return nullptr;
    }
    ThreadKeys thread = ThreadKeys::read();
    thread_ = &thread;
    record_->thread = thread;
    for (int i = 0; i < static_cast<int>(tree_.nodes.size()); i++) {
      if (!place(i) || !add_checks(i)) return nullptr;
      pin_if_possible(i);
      const Node& node = tree_.nodes[i];
      // After the pin: a relation compares what is pinned, and that must be the object of this call.
      for (const Check& check : node.checks) {
        if (is_relation(check)) add_relation(i, check);
      }
      if (node.capture >= 0) record_->captures[node.capture] = {i, pinned(i) ? value(i) : nullptr};
    }
    finish_late();
    constexpr size_t kLimit = std::numeric_limits<uint16_t>::max();
    if (record_->fresh_count >= kLimit || record_->repairs.size() >= kLimit) return nullptr;
    if (record_->words.size() > std::numeric_limits<uint32_t>::max()) return nullptr;
    return record_;
  }

 private:
  static constexpr size_t kNoWord = std::numeric_limits<size_t>::max();

  PyObject* value(int node) const { return values_[node].get(); }
  bool pinned(int node) const { return record_->places[node] == Place::Pinned; }

  Op& emit(OpKind kind, int node, PyObject* object) {
    Op op{};
    op.kind = kind;
    op.node = node;
    op.object = object;
    record_->ops.push_back(op);
    return record_->ops.back();
  }

  // The eight bytes at `address` must stay what they are now.
  void emit_word(const void* address, const WordInfo& info) {
    auto* at = static_cast<const Bits*>(address);
    auto index = static_cast<uint32_t>(record_->words.size());
    record_->words.push_back({at, *at});
    record_->word_infos.push_back(info);
    auto& ops = record_->ops;
    if (ops.empty() || ops.back().kind != OpKind::Words) emit(OpKind::Words, -1, nullptr).begin = index;
    ops.back().end = index + 1;
  }

  void emit_word(const void* address, WordKind kind, int node) {
    WordInfo info;
    info.kind = kind;
    info.node = node;
    emit_word(address, info);
  }

  // ---- weak references ----

  // A rough forecast of the places: weak references for nodes that would be fresh and have children or must be a certain
  // object, and for what is read from a watched dict.
  void make_weak_references() {
    std::vector<bool> certain(tree_.nodes.size(), false);
    for (size_t i = 0; i < tree_.nodes.size(); i++) {
      const Node& node = tree_.nodes[i];
      PyObject* object = value(static_cast<int>(i));
      bool from_watched = node.parent >= 0 && tree_.nodes[node.parent].watched;
      bool derived = false;
      if (node.access.kind == Accessor::Const) {
        derived = true;
      } else if (node.parent >= 0 && certain[node.parent] && !from_watched) {
        switch (node.access.kind) {
          case Accessor::Dict: case Accessor::Item: case Accessor::Type: case Accessor::TypeAttr: case Accessor::KeyAt:
          case Accessor::ValueAt:
            derived = true;
            break;
          case Accessor::Index:
            derived = value(node.parent) && PyTuple_Check(value(node.parent));
            break;
          default:
            break;
        }
      }
      certain[i] = derived;
      bool by_address = node.parent >= 0 && certain[node.parent] && node.has_identity;
      bool useful = from_watched || (!derived && (node.has_children || by_address));
      if (!object || !useful || node.transient || PyDict_Check(object) || !supports_weakrefs(object)) continue;
      Ref weak = new_guard_reference(object);
      if (!weak) {
        PyErr_Clear();
        continue;
      }
      pin_[i] = weak.get();
      record_->pins.push_back(std::move(weak));
      certain[i] = true;
    }
  }

  // A value read anew that is the object seen before becomes a pinned one.
  void pin_if_possible(int i) {
    const Node& node = tree_.nodes[i];
    if (record_->places[i] != Place::Fresh || !pin_[i] || !node.has_children) return;
    Op& op = emit(OpKind::Pin, i, value(i));
    op.fresh = record_->fresh[i];
    op.expected = pin_[i];
    set_pinned(i);
  }

  // ---- places ----

  void set_pinned(int i) {
    record_->places[i] = Place::Pinned;
    record_->pinned[i] = value(i);
  }

  Op& set_fresh(int i, OpKind kind) {
    record_->places[i] = Place::Fresh;
    record_->fresh[i] = static_cast<uint16_t>(record_->fresh_count++);
    Op& op = emit(kind, i, nullptr);
    op.fresh = record_->fresh[i];
    return op;
  }

  bool set_late(int i) {
    record_->places[i] = Place::Late;
    record_->late.push_back({i, true, {}});
    return true;
  }

  // False: the value is no longer what the check saw.
  bool place(int i) {
    const Node& node = tree_.nodes[i];
    const Access& access = node.access;
    if (access.kind == Accessor::Slot) {
      set_fresh(i, OpKind::LoadSlot).number = access.index;
      return true;
    }
    if (access.kind == Accessor::Const) return set_pinned(i), true;
    int parent = node.parent;
    if (record_->places[parent] == Place::Late) return set_late(i);
    PyObject* now;
    if (!load_pure(access, value(parent), &now)) return set_late(i);
    if (now != value(i)) return false;
    if (!pinned(parent)) {
      // New objects have no dict yet, and making one is not pure.
      if (access.kind == Accessor::Dict && tree_.nodes[parent].transient) return set_late(i);
      set_fresh(i, OpKind::Load).number = record_->fresh[parent];
      return true;
    }
    return place_below_pinned(i, parent, value(parent));
  }

  bool place_below_pinned(int i, int parent, PyObject* object) {
    auto read_anew = [&] {
      set_fresh(i, OpKind::Load).object = object;
      return true;
    };
    if (object == nullptr) return set_pinned(i), true;
    const Access& access = tree_.nodes[i].access;
    switch (access.kind) {
      case Accessor::Dict:
        if (value(i) == nullptr) return read_anew();
        if (!PyType_Check(object)) {
          PyObject** slot = instance_dict_slot(object);
          if (slot == nullptr || *slot != value(i)) return read_anew();
          emit_word(slot, WordKind::Structure, i);
        }
        add_version(i);
        return set_pinned(i), true;
      case Accessor::Item:
        if (!PyDict_Check(object)) return set_pinned(i), true;
        ensure_dict_version(parent);
        if (tree_.nodes[parent].watched && !make_repairable(i, parent)) return read_anew();
        return set_pinned(i), true;
      case Accessor::KeyAt:
      case Accessor::ValueAt:
        if (!PyDict_Check(object)) return set_pinned(i), true;
        if (tree_.nodes[parent].watched) return read_anew();
        ensure_dict_version(parent);
        return set_pinned(i), true;
      case Accessor::Index:
        if (!PyList_Check(object)) return set_pinned(i), true;
        return pin_list_item(i, parent, object) || read_anew();
      case Accessor::Proxied:
        return set_pinned(i), true;
      case Accessor::Type:
        if (class_may_change(object)) emit_word(&object->ob_type, WordKind::Structure, i);
        return set_pinned(i), true;
      case Accessor::TypeAttr:
        if (!PyType_Check(object)) return set_pinned(i), true;
        return ensure_type_version(parent, object) ? (set_pinned(i), true) : read_anew();
      case Accessor::Attr: {
        // These fields are set once and for all.
        Field field = access.field;
        if (field == Field::Closure || field == Field::Globals || field == Field::Self || field == Field::Func) {
          return set_pinned(i), true;
        }
        return place_attribute(i, object) || read_anew();
      }
      case Accessor::Cell:
        if (!PyCell_Check(object)) return set_pinned(i), true;
        return place_at(i, &reinterpret_cast<PyCellObject*>(object)->ob_ref, nullptr);
      default:
        return read_anew();
    }
  }

  // ---- places of single values ----

  // May the record keep it alive? Not a generator or a bound method, say: they keep others, and their end is seen.
  static bool is_constant(PyObject* object) {
    if (PyCode_Check(object)) return true;
    if (!is_unchanging(object)) return false;
    if (PyCFunction_Check(object)) return !PyCFunction_GET_SELF(object) || PyModule_Check(PyCFunction_GET_SELF(object));
    return !PyObject_IS_GC(object) || PyTuple_Check(object) || PyFunction_Check(object);
  }

  // Pins what is at an address if its identity can be told. False, and nothing is emitted: it cannot.
  bool pin_at(int i, PyObject** address) {
    PyObject* object = value(i);
    Node& node = tree_.nodes[i];
    if (object == nullptr || node.unsteady) return false;
    bool constant = is_constant(object);
    if (!constant && !PyDict_Check(object) && !pin_[i]) return false;
    emit_word(address, constant || PyDict_Check(object) ? WordKind::Unsteady : WordKind::Identity, i);
    if (constant) {
      record_->pins.push_back(Ref::borrow(object));
    } else if (PyDict_Check(object)) {
      emit_word(&object->ob_type, WordKind::Unsteady, i);  // something smaller may be at this address now
      add_version(i);
    } else {
      emit_word(weak_referent_address(pin_[i]), WordKind::Identity, i);
    }
    return set_pinned(i), true;
  }

  bool pin_list_item(int i, int parent, PyObject* list) {
    if (tree_.nodes[parent].unsteady || tree_.nodes[i].unsteady || value(i) == nullptr) return false;
    if (!is_constant(value(i)) && !PyDict_Check(value(i)) && !pin_[i]) return false;
    auto* object = reinterpret_cast<PyListObject*>(list);
    if (version_word_[parent] == kNoWord) {  // the items stay where they are, and as many
      version_word_[parent] = record_->words.size();
      emit_word(&object->ob_base.ob_size, WordKind::Unsteady, parent);
      emit_word(&object->ob_item, WordKind::Unsteady, parent);
    }
    return pin_at(i, &object->ob_item[tree_.nodes[i].access.index]);
  }

  // What is at an address of a pinned object; `if_null`: what an empty place means.
  bool place_at(int i, PyObject** address, PyObject* if_null) {
    if (pin_at(i, address)) return true;
    Op& op = set_fresh(i, OpKind::LoadAt);
    op.object = reinterpret_cast<PyObject*>(address);
    op.if_null = if_null;
    return true;
  }

  // A field of a function, or a slot of an instance. False, and nothing is emitted: it is something else.
  bool place_attribute(int i, PyObject* object) {
    const Access& access = tree_.nodes[i].access;
    if (PyFunction_Check(object)) {
      auto* function = reinterpret_cast<PyFunctionObject*>(object);
      switch (access.field) {
        case Field::Defaults: return place_at(i, &function->func_defaults, Py_None);
        case Field::KwDefaults: return place_at(i, &function->func_kwdefaults, Py_None);
        case Field::Code: return place_at(i, &function->func_code, nullptr);
        case Field::Name: return place_at(i, &function->func_name, nullptr);
        case Field::QualName: return place_at(i, &function->func_qualname, nullptr);
        default: return false;
      }
    }
    PyObject* if_null;
    PyObject** address = member_address(access.key.get(), object, &if_null);
    auto* type = Py_TYPE(object);
    if (address == nullptr || type_version(type) == 0) return false;
    // Where the slot is depends on the class.
    emit_word(&object->ob_type, WordKind::Structure, i);
    emit_word(type_version_address(type), WordKind::Structure, i);
    return place_at(i, address, if_null);
  }

  // ---- versions ----

  void add_version(int node) {
    PyObject* dict = value(node);
    version_word_[node] = record_->words.size();
    WordInfo info;
    info.kind = WordKind::Version;
    info.node = node;
    info.object = dict;
    if (tree_.nodes[node].watched) {
      record_->repairs.emplace_back();
      info.repair = static_cast<uint16_t>(record_->repairs.size());
    }
    emit_word(record_->versions.address(dict), info);
  }

  void ensure_dict_version(int node) {
    if (version_word_[node] == kNoWord) add_version(node);
  }

  bool ensure_type_version(int node, PyObject* type) {
    if (version_word_[node] != kNoWord) return true;
    auto* object = reinterpret_cast<PyTypeObject*>(type);
    if (type_version(object) == 0) return false;
    version_word_[node] = record_->words.size();
    emit_word(type_version_address(object), WordKind::Structure, node);
    return true;
  }

  Repair& repair_of(int node) { return record_->repairs[record_->word_infos[version_word_[node]].repair - 1]; }

  // Lets item `i` of a watched dict be found again after the dict has changed. False: it cannot be recognised.
  bool make_repairable(int i, int parent) {
    const Node& node = tree_.nodes[i];
    RepairItem item{};
    item.node = i;
    if (value(i) == nullptr) {
      item.kind = RepairItem::Absent;
    } else if (is_recheckable(node, value(i))) {
      item.kind = RepairItem::Recheck;
    } else if (PyDict_Check(value(i))) {
      ensure_dict_version(i);
      item.kind = RepairItem::SameDict;
      item.word = version_word_[i];
      item.dict = value(i);
    } else if (pin_[i]) {
      item.kind = RepairItem::SameWeakly;
      item.weak = pin_[i];
    } else {
      return false;
    }
    repair_of(parent).items.push_back(item);
    return true;
  }

  // A leaf of which nothing is kept but the fact that its checks passed, once and for all for this object.
  bool is_recheckable(const Node& node, PyObject* object) {
    if (node.has_children || node.related || node.capture >= 0) return false;
    for (const Check& check : node.checks) {
      if (needs_op(check, object) || check_pure(check, object, *thread_) != Answer::Yes) return false;
    }
    return true;
  }

  // ---- checks ----

  // Must this check on a pinned object be repeated on each call?
  static bool needs_op(const Check& check, PyObject* object) {
    switch (check.kind) {
      case CheckKind::Type: return class_may_change(object);
      case CheckKind::Id:
      case CheckKind::Absent:
      case CheckKind::Present: return false;
      case CheckKind::Equals: return !is_unchanging(object);
      case CheckKind::Len:
      case CheckKind::Bool:
        return !(PyTuple_Check(object) || PyUnicode_Check(object) || is_unchanging(object));
      default: return true;
    }
  }

  void add_late_check(int i, const Check& check) {
    auto& late = record_->late;
    if (late.empty() || late.back().node != i) late.push_back({i, false, {}});
    late.back().checks.push_back(&check);
  }

  bool add_checks(int i) {
    for (const Check& check : tree_.nodes[i].checks) {
      if (is_relation(check)) continue;
      if (record_->places[i] == Place::Late) {
        add_late_check(i, check);
      } else if (pinned(i)) {
        if (!add_pinned_check(i, check)) return false;
      } else {
        add_fresh_check(i, check);
      }
    }
    return true;
  }

  void add_relation(int i, const Check& check) {
    if (record_->places[i] == Place::Late) return add_late_check(i, check);
    bool all_pinned = pinned(i);
    for (int node : check.nodes) {
      if (record_->places[node] == Place::Late) return add_late_check(i, check);
      all_pinned = all_pinned && pinned(node);
    }
    if (all_pinned) return;
    Op& op = emit(OpKind::Relation, i, nullptr);
    op.is_check = true;
    op.check = &check;
  }

  void add_fresh_check(int i, const Check& check) {
    if (check_pure(check, value(i), *thread_) == Answer::Unknown) return add_late_check(i, check);
    Op& op = emit(check.kind == CheckKind::Tensor ? OpKind::FreshTensor : OpKind::FreshCheck, i, nullptr);
    op.fresh = record_->fresh[i];
    op.is_check = true;
    op.check = &check;
  }

  bool add_pinned_check(int i, const Check& check) {
    PyObject* object = value(i);
    if (object == nullptr || !needs_op(check, object)) return true;
    Answer now = check_pure(check, object, *thread_);
    if (now == Answer::Unknown) return add_late_check(i, check), true;
    if (now == Answer::No) return false;
    if (check.kind == CheckKind::Keys) {
      ensure_dict_version(i);
      if (tree_.nodes[i].watched) repair_of(i).key_checks.push_back(&check);
      return true;
    }
    if (check.kind == CheckKind::Tensor) {
      record_->tensors.push_back({object, check.tensor.get(), {}});
      record_->tensors.back().seen.remember(tensor_impl(object));
      return true;
    }
    if (const void* address = deciding_word(check, object)) {
      WordInfo info;
      info.kind = WordKind::Check;
      info.node = i;
      info.object = object;
      info.check = &check;
      emit_word(address, info);
      return true;
    }
    Op& op = emit(OpKind::PinnedCheck, i, object);
    op.is_check = true;
    op.check = &check;
    return true;
  }

  // The eight bytes that decide a check of a pinned object, if there are such.
  static const void* deciding_word(const Check& check, PyObject* object) {
    switch (check.kind) {
      case CheckKind::Type: return &object->ob_type;
      case CheckKind::Function: return &reinterpret_cast<PyFunctionObject*>(object)->func_code;
      case CheckKind::Len:
      case CheckKind::Bool:
        if (PyDict_Check(object)) return &reinterpret_cast<PyDictObject*>(object)->ma_used;
        if (PyList_Check(object)) return &reinterpret_cast<PyVarObject*>(object)->ob_size;
        if (PyAnySet_Check(object)) return &reinterpret_cast<PySetObject*>(object)->used;
        return nullptr;
      default: return nullptr;
    }
  }

  // ---- late steps ----

  // Gives each value that late steps touch a place among the owned values.
  void finish_late() {
    if (record_->late.empty()) return;
    record_->late_index.resize(tree_.nodes.size(), -1);
    auto need = [&](int node) {
      if (record_->late_index[node] >= 0) return;
      record_->late_index[node] = static_cast<int>(record_->late_count++);
      if (record_->places[node] != Place::Late) record_->late_inputs.push_back(node);
    };
    for (const auto& step : record_->late) {
      need(step.node);
      if (step.load) need(tree_.nodes[step.node].parent);
      for (const Check* check : step.checks) {
        for (int node : check->nodes) need(node);
      }
    }
    for (const auto& captured : record_->captures) need(captured.node);
    if (tree_.shapes) {
      for (int node : tree_.shapes->nodes()) need(node);
    }
  }

  GuardTree& tree_;
  const std::vector<Ref>& values_;
  std::shared_ptr<Record> record_;
  const ThreadKeys* thread_ = nullptr;
  std::vector<size_t> version_word_;  // per node: the word that tests its version
  std::vector<PyObject*> pin_;        // per node: its weak reference, owned by the record
};

}  // namespace

std::shared_ptr<Record> make_record(GuardTree& tree, const std::vector<Ref>& values) {
  return Recorder(tree, values).run();
}

}  // namespace framejit
