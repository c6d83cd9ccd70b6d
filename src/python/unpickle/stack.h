// What an interpreter of pickles has in hand: the stack with its marks, and the memo.
#pragma once

#include <vector>

#include "python/unpickle/rules.h"

namespace taeda::python {

// What numbered opcodes have stored: a vector as long as the numbers come in order.
class PickleMemo {
 public:
  size_t size() const { return dense_.size() + sparse_.size(); }
  void put(size_t i, PyRef value) {
    if (i < dense_.size()) {
      dense_[i] = std::move(value);
    } else if (i == dense_.size()) {
      dense_.push_back(std::move(value));
      if (!sparse_.empty()) sparse_.erase(i);
    } else {
      sparse_[i] = std::move(value);
    }
  }
  PyObject* get(size_t i) const {  // borrowed; null if there is none
    if (i < dense_.size()) return dense_[i].get();
    const auto found = sparse_.find(i);
    return found == sparse_.end() ? nullptr : found->second.get();
  }

 private:
  std::vector<PyRef> dense_;
  std::unordered_map<size_t, PyRef> sparse_;
};

// Values below the topmost mark cannot be taken.
class PickleStack {
 public:
  explicit PickleStack(const UnpickleRules& rules) : rules_(rules) {}

  bool holds_one_value() const { return values_.size() == 1 && marks_.empty(); }
  void push(PyRef value) { values_.push_back(std::move(value)); }
  PyObject* top() const {  // borrowed
    if (values_.size() == fence()) fail_empty();
    return values_.back().get();
  }
  PyRef pop() {
    top();
    PyRef value = std::move(values_.back());
    values_.pop_back();
    return value;
  }
  std::vector<PyRef> pop_many(size_t count) {
    if (values_.size() - fence() < count) fail_empty();
    const auto begin = values_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<PyRef> taken(std::make_move_iterator(begin),
                             std::make_move_iterator(values_.end()));
    values_.erase(begin, values_.end());
    return taken;
  }
  void mark() { marks_.push_back(values_.size()); }
  // The values above the topmost mark, which goes; those below stay.
  std::vector<PyRef> pop_to_mark() {
    const size_t begin = fence();
    pop_mark();
    return pop_many(values_.size() - begin);
  }
  void pop_value_or_mark() {
    if (values_.size() > fence())
      pop();
    else
      pop_mark();
  }

 private:
  size_t fence() const { return marks_.empty() ? 0 : marks_.back(); }
  void pop_mark() {
    if (marks_.empty()) rules_.fail("load: the pickle has no mark where one is needed");
    marks_.pop_back();
  }
  [[noreturn]] void fail_empty() const {
    rules_.fail("load: the pickle takes a value where there is none");
  }

  const UnpickleRules& rules_;
  std::vector<PyRef> values_;
  std::vector<size_t> marks_;
};

}  // namespace taeda::python
