#include "device/sim/races.h"

#include <algorithm>
#include <iterator>

namespace taeda::sim {
namespace {

bool ordered(const Operation& before, const Operation& after, const Clock& clock) {
  return before.stream == after.stream || before.tick <= clock[before.stream];
}

std::string described(const Operation& operation) {
  return operation.name + " (" + operation.where + ")";
}

}  // namespace

uint64_t Clock::advance(size_t stream) {
  if (stream >= ticks_.size()) ticks_.resize(stream + 1);
  return ++ticks_[stream];
}

void Clock::join(const Clock& other) {
  if (other.ticks_.size() > ticks_.size()) ticks_.resize(other.ticks_.size());
  for (size_t i = 0; i < other.ticks_.size(); i++) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
}

RaceDetector::Cells::iterator RaceDetector::split(uintptr_t at) {
  auto next = cells_.lower_bound(at);
  if (next == cells_.begin()) return next;
  const auto cell = std::prev(next);
  if (cell->second.end <= at) return next;
  next = cells_.emplace_hint(next, at, cell->second);
  cell->second.end = at;
  return next;
}

const Operation* RaceDetector::conflict(const Cell& cell, bool writes, const Operation& operation,
                                        const Clock& clock) {
  if (cell.write && !ordered(*cell.write, operation, clock)) return cell.write.get();
  if (!writes) return nullptr;
  for (const OperationRef& read : cell.reads)
    if (!ordered(*read, operation, clock)) return read.get();
  return nullptr;
}

std::string RaceDetector::touch(uintptr_t begin, uintptr_t end, bool writes,
                                const OperationRef& operation, const Clock& clock) {
  if (begin >= end) return {};
  auto first = split(begin);
  const auto last = split(end);
  // Splitting at `end` may have moved what begins at `begin`.
  first = cells_.lower_bound(begin);
  for (auto cell = first; cell != last; ++cell) {
    const Operation* const other = conflict(cell->second, writes, *operation, clock);
    if (!other) continue;
    const bool other_writes = cell->second.write.get() == other;
    return "race: " + described(*operation) + (writes ? " writes" : " reads") + " what " +
           described(*other) + (other_writes ? " writes" : " reads") + ", and no event orders them";
  }
  if (writes) {
    cells_.erase(first, last);
    cells_.emplace(begin, Cell{end, operation, {}});
    return {};
  }
  uintptr_t at = begin;  // up to here the range has cells
  const auto read_gap = [&](uintptr_t to) {
    if (at < to) cells_.emplace(at, Cell{to, nullptr, {operation}});
  };
  for (auto cell = first; cell != last; ++cell) {
    read_gap(cell->first);
    at = cell->second.end;
    // Who comes after this read comes after those that it comes after.
    std::erase_if(cell->second.reads,
                  [&](const OperationRef& read) { return ordered(*read, *operation, clock); });
    cell->second.reads.push_back(operation);
  }
  read_gap(end);
  return {};
}

void RaceDetector::forget(uintptr_t begin, uintptr_t end) {
  split(begin);
  const auto last = split(end);
  cells_.erase(cells_.lower_bound(begin), last);
}

}  // namespace taeda::sim
