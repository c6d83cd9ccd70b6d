// The records of one thread while it is profiled, the last ones where there are too many. Only that
// thread writes.
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "ops/modes.h"
#include "profile/clock.h"
#include "taeda/profile.h"

namespace taeda::profile {

// What ran: a form of an entry of the operator table, a registered operator, or a named block, told
// apart by the lowest three bits.
class Subject {
 public:
  Subject() = default;
  Subject(const OperatorRecord& record, Operator::Form form)
      : bits_(reinterpret_cast<uintptr_t>(&record) | static_cast<uintptr_t>(form)) {}
  explicit Subject(const Operator& op) : bits_(reinterpret_cast<uintptr_t>(&op) | kOperator) {}
  static Subject block(size_t index) {
    Subject subject;
    subject.bits_ = index << 3 | kBlock;
    return subject;
  }
  bool is_block() const { return tag() == kBlock; }
  size_t block_index() const { return bits_ >> 3; }
  const Operator& op() const {
    const uintptr_t address = bits_ & ~uintptr_t{7};
    if (tag() == kOperator) return *reinterpret_cast<const Operator*>(address);
    return reinterpret_cast<const OperatorRecord*>(address)->form(
        static_cast<Operator::Form>(tag()));
  }

 private:
  static constexpr uintptr_t kOperator = 3, kBlock = 4;
  uintptr_t tag() const { return bits_ & 7; }
  uintptr_t bits_ = 0;
};
static_assert(alignof(OperatorRecord) >= 8 && alignof(Operator) >= 8);
static_assert(static_cast<int>(Operator::Form::kOut) < 3);

// What is recorded besides times, where it is asked for.
struct Details {
  std::vector<DimVector> shapes;
  std::string frame;
  int64_t bytes_before = 0, bytes_after = 0;
};

class Ring {
 public:
  Ring(size_t capacity, bool detailed) : capacity_(capacity), detailed_(detailed) {}

  // A new record, over the oldest where the ring is full.
  uint64_t begin(Subject subject) {
    Slot& slot = next();
    slot.subject = subject;
    slot.start = slot.end = ticks();
    return count_++;
  }
  // The details of the record that begins next.
  Details& next_details() {
    const size_t i = count_ % capacity_;
    if (details_.size() <= i) details_.resize(i + 1);
    return details_[i] = {};
  }
  // Those of a record; null where it has been overwritten.
  Details* details(uint64_t number) { return kept(number) ? &details_[index(number)] : nullptr; }

  void end(uint64_t number) {
    if (kept(number)) [[likely]]
      slots_[index(number)].end = ticks();
  }
  uint64_t begin_block(std::string_view name) {
    names_.emplace_back(name);
    return begin(Subject::block(names_.size() - 1));
  }

  void move_to(Profile& profile, const Timeline& timeline) {
    const uint64_t most = std::min<uint64_t>(count_, capacity_);
    profile.dropped += count_ - most;
    profile.records.reserve(profile.records.size() + most);
    for (uint64_t number = count_ - most; number < count_; number++)
      profile.records.push_back(take(index(number), timeline));
  }

 private:
  struct Slot {
    Subject subject;
    int64_t start = 0, end = 0;
  };

  Slot& next() {
    if (count_ < capacity_) [[likely]]
      return slots_.emplace_back();
    return slots_[count_ % capacity_];
  }
  bool kept(uint64_t number) const { return number < count_ && count_ - number <= capacity_; }
  size_t index(uint64_t number) const { return count_ <= capacity_ ? number : number % capacity_; }
  ProfileRecord take(size_t i, const Timeline& timeline) {
    const Slot& slot = slots_[i];
    ProfileRecord record;
    if (slot.subject.is_block())
      record.block = names_[slot.subject.block_index()];
    else
      record.op = &slot.subject.op();
    record.start_ns = timeline.ns(slot.start);
    record.end_ns = timeline.ns(slot.end);
    record.thread = thread_;
    if (!detailed_) return record;
    record.shapes = std::move(details_[i].shapes);
    record.frame = std::move(details_[i].frame);
    record.bytes_before = details_[i].bytes_before;
    record.bytes_after = details_[i].bytes_after;
    return record;
  }

  const size_t capacity_;
  const bool detailed_;
  std::vector<Slot> slots_;  // grows up to the capacity
  std::vector<Details> details_;
  std::vector<std::string> names_;  // of blocks
  uint64_t count_ = 0;
  const uint64_t thread_ = static_cast<uint64_t>(syscall(SYS_gettid));
};

}  // namespace taeda::profile
