// The opcodes of protocol 0, whose values are lines of text.
#include <charconv>

#include "python/unpickle/unpickler.h"

namespace taeda::python {
namespace {

// A value from text; ValueError, of what is none, becomes the file's fault.
PyRef parsed(PyObject* value, const UnpickleRules& rules) {
  if (value || !PyErr_ExceptionMatches(PyExc_ValueError)) return PyRef::check(value);
  PyErr_Clear();
  rules.fail("load: the pickle is damaged: a line is not the value that it should be");
}

}  // namespace

// PUT and GET.
size_t Unpickler::number_line() {
  const std::string_view digits = reader_.short_line();
  uint32_t number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size())
    rules_.fail("load: the pickle is damaged: a place in the memo is not a number");
  return number;
}

// Reading decimals takes quadratic time (and Python refuses more than 4,300, unless it is told
// otherwise).
void Unpickler::push_digits(std::string_view digits) {
  const int64_t count = static_cast<int64_t>(digits.size());
  budget_.charge({count, count * (count / 256)});
  const std::string text(digits);
  char* end = nullptr;
  PyRef value = parsed(PyLong_FromString(text.c_str(), &end, 10), rules_);
  if (end != text.data() + text.size()) rules_.fail("load: a number in the pickle is damaged");
  push(std::move(value), kNumber);
}

void Unpickler::push_integer_line() {
  const std::string_view digits = reader_.line();
  if (digits == "00") return push(PyRef::share(Py_False));
  if (digits == "01") return push(PyRef::share(Py_True));
  push_digits(digits);
}

void Unpickler::push_long_line() {
  std::string_view digits = reader_.line();
  if (digits.ends_with('L')) digits.remove_suffix(1);
  push_digits(digits);
}

void Unpickler::push_float_line() {
  const std::string text(reader_.short_line());
  char* end = nullptr;
  const double value = PyOS_string_to_double(text.c_str(), &end, nullptr);
  if (PyErr_Occurred()) parsed(nullptr, rules_);
  if (end != text.data() + text.size()) rules_.fail("load: a number in the pickle is damaged");
  push_new(PyFloat_FromDouble(value), kNumber);
}

void Unpickler::push_escaped_line() {
  const std::string_view raw = reader_.line();
  push_text(
      PyUnicode_DecodeRawUnicodeEscape(raw.data(), static_cast<Py_ssize_t>(raw.size()), nullptr));
}

// Python 2's str: a literal in quotes.
void Unpickler::push_quoted_line() {
  std::string_view raw = reader_.line();
  if (raw.size() < 2 || raw.front() != raw.back() || (raw.front() != '\'' && raw.front() != '"'))
    rules_.fail("load: the pickle is damaged: a string without quotes");
  raw = raw.substr(1, raw.size() - 2);
  const PyRef bytes = parsed(
      PyBytes_DecodeEscape(raw.data(), static_cast<Py_ssize_t>(raw.size()), nullptr, 0, nullptr),
      rules_);
  push_byte_string(
      {PyBytes_AS_STRING(bytes.get()), static_cast<size_t>(PyBytes_GET_SIZE(bytes.get()))});
}

}  // namespace taeda::python
