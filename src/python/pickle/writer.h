// The bytes of a pickle as it grows: values that refer to no others, in the opcodes of a protocol
// from 0 to 5. Frames (protocol 4) are left out; readers do without them.
#pragma once

#include "python/common.h"

namespace taeda::python {

class PickleWriter {
 public:
  explicit PickleWriter(int protocol) : protocol_(protocol) {}

  int protocol() const { return protocol_; }
  bool is_binary() const { return protocol_ > 0; }
  const std::string& bytes() const { return bytes_; }

  void opcode(unsigned char code) { bytes_.push_back(static_cast<char>(code)); }
  void opcodes(std::string_view codes) { bytes_.append(codes); }

  void boolean(bool value);
  void integer(int64_t value);
  void integer(PyObject* value);
  void real(double value);
  void text(PyObject* value);
  void ascii(std::string_view value);
  void byte_string(PyObject* value);  // from protocol 3 on
  void byte_array(PyObject* value);   // from protocol 5 on
  void empty_tuple() { opcodes(is_binary() ? ")" : "(t"); }
  // Names of at most protocol 3.
  void global(std::string_view module, std::string_view name);

  // Stores the value on top of the stack as the i-th, the number of those stored before.
  void put(size_t i);
  void get(size_t i);

 private:
  void number(uint64_t value, size_t bytes);  // little-endian
  // An opcode by how much its length takes: one byte, four, or eight; null codes are not there.
  void counted(unsigned char one, unsigned char four, unsigned char eight, std::string_view raw);
  void line(unsigned char code, std::string_view text);
  void long_integer(std::string_view raw);

  const int protocol_;
  std::string bytes_;
};

}  // namespace taeda::python
