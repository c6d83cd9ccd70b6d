// What the parts of a pickle cost: the bytes that an object may take, and about the nanoseconds
// that making it may. Both are what honest pickles need at most; measured on CPython 3.11.
#pragma once

#include <cstdint>

namespace taeda::python {

struct Cost {
  int64_t memory, effort;
};
// Of an object with its place in a container, on the stack and in the memo (up to 32 bytes).
constexpr Cost kReference = {16, 10}, kNumber = {48, 20}, kText = {80, 30}, kTuple = {64, 30};
constexpr Cost kList = {80, 40}, kDict = {88, 40}, kSet = {232, 80}, kOrderedDict = {400, 250};
constexpr Cost kMemo = {16, 10}, kItem = {10, 10}, kKey = {100, 100}, kOrderedKey = {200, 200};
// Calls of Python code: to find a name, to make a storage, to make or fill a user's object.
constexpr Cost kFind = {16, 800}, kStorage = {500, 2500}, kUser = {300, 2500};
// One element of an argument that a function may copy.
constexpr Cost kCopied = {110, 60};
constexpr int64_t kCollision = 30;  // effort to compare two keys of the same hash
constexpr int64_t kExcess = 4;      // effort for a nanosecond that no honest key takes

}  // namespace taeda::python
