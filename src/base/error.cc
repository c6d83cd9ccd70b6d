#include "taeda/error.h"

#include <charconv>

#include "taeda/small_vector.h"

namespace taeda {
namespace detail {

std::string to_text(bool value) { return value ? "True" : "False"; }
std::string to_text(int64_t value) { return std::to_string(value); }
std::string to_text(uint64_t value) { return std::to_string(value); }

// The shortest text that reads back as the same number, as Python's repr but without a trailing
// ".0".
std::string to_text(double value) {
  char buffer[32];
  const auto result = std::to_chars(buffer, buffer + sizeof(buffer), value);
  return std::string(buffer, result.ptr);
}

std::string format_parts(std::string_view format, std::initializer_list<std::string> args) {
  std::string text;
  const std::string* next = args.begin();
  for (size_t i = 0; i < format.size(); i++) {
    if (format[i] == '{' && i + 1 < format.size() && format[i + 1] == '}' && next != args.end()) {
      text += *next++;
      i++;
    } else {
      text += format[i];
    }
  }
  return text;
}

void raise(ErrorKind kind, const std::string& message) {
  std::string text;  // what() would end at a null character of a string that is quoted
  for (const char c : message) c ? text += c : text += "\\0";
  throw Error(kind, text);
}

}  // namespace detail

std::string to_text(IntSpan values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); i++) {
    if (i) text += ", ";
    text += std::to_string(values[i]);
  }
  return text + "]";
}

}  // namespace taeda
