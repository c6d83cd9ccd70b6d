// The bytes of a pickle, read from front to back; what is missing is an error.
#pragma once

#include "python/unpickle/rules.h"

namespace taeda::python {

class PickleReader {
 public:
  PickleReader(std::string_view data, size_t at, const UnpickleRules& rules)
      : data_(data), at_(at), rules_(rules) {}

  size_t position() const { return at_; }
  std::string_view take(uint64_t count) {
    if (count > data_.size() - at_) rules_.fail("load: the pickle is truncated");
    const std::string_view part = data_.substr(at_, count);
    at_ += count;
    return part;
  }
  unsigned char opcode() { return static_cast<unsigned char>(take(1)[0]); }
  // An unsigned number, little-endian.
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    const std::string_view raw = take(bytes);
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  }
  // A double, big-endian.
  double real() {
    uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    return value;
  }
  // Up to the end of a line, of names and numbers: those are short.
  std::string_view short_line() { return line(4096); }
  std::string_view line(size_t limit = std::string_view::npos) {
    const size_t end = data_.substr(at_, limit).find('\n');
    if (end == std::string_view::npos) rules_.fail("load: a line in the pickle has no end");
    const std::string_view text = data_.substr(at_, end);
    at_ += end + 1;
    return text;
  }

 private:
  std::string_view data_;
  size_t at_;
  const UnpickleRules& rules_;
};

}  // namespace taeda::python
