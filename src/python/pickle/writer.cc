#include "python/pickle/writer.h"

#include <algorithm>
#include <array>
#include <climits>

namespace taeda::python {
namespace {

std::string_view bytes_of(PyObject* bytes) {
  return {PyBytes_AS_STRING(bytes), static_cast<size_t>(PyBytes_GET_SIZE(bytes))};
}

// Latin-1 as it is, but for what ends a line or begins an escape; the rest as \uXXXX.
std::string raw_unicode_escape(PyObject* text) {
  constexpr std::string_view kEscaped("\0\n\r\x1a\\", 5);
  const int kind = PyUnicode_KIND(text);
  const void* data = PyUnicode_DATA(text);
  std::string out;
  for (Py_ssize_t i = 0; i < PyUnicode_GET_LENGTH(text); i++) {
    const Py_UCS4 c = PyUnicode_READ(kind, data, i);
    char escape[11];
    if (c > 0xFFFF)
      std::snprintf(escape, sizeof(escape), "\\U%08x", c);
    else if (c > 0xFF || kEscaped.find(static_cast<char>(c)) != kEscaped.npos)
      std::snprintf(escape, sizeof(escape), "\\u%04x", c);
    else
      std::snprintf(escape, sizeof(escape), "%c", static_cast<char>(c));
    out += c == 0 ? "\\u0000" : escape;
  }
  return out;
}

// The fewest bytes of a two's complement number, little-endian, that keep its sign.
std::string_view trimmed(std::string_view raw) {
  while (raw.size() > 1) {
    const bool negative = raw[raw.size() - 2] & 0x80;
    if (raw.back() != (negative ? '\xFF' : '\0')) break;
    raw.remove_suffix(1);
  }
  return raw;
}

}  // namespace

void PickleWriter::number(uint64_t value, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) opcode(static_cast<unsigned char>(value >> 8 * i));
}

void PickleWriter::counted(unsigned char one, unsigned char four, unsigned char eight,
                           std::string_view raw) {
  if (one && raw.size() <= 0xFF) {
    opcode(one);
    number(raw.size(), 1);
  } else if (raw.size() <= UINT32_MAX) {
    opcode(four);
    number(raw.size(), 4);
  } else if (eight) {
    opcode(eight);
    number(raw.size(), 8);
  } else {
    raise_python(
        PyExc_OverflowError,
        "serializing text or bytes larger than 4 GiB requires pickle protocol 4 or higher");
  }
  bytes_.append(raw);
}

void PickleWriter::line(unsigned char code, std::string_view text) {
  opcode(code);
  bytes_.append(text);
  opcode('\n');
}

void PickleWriter::boolean(bool value) {
  if (protocol_ >= 2) return opcode(value ? 0x88 : 0x89);  // NEWTRUE, NEWFALSE
  opcodes(value ? "I01\n" : "I00\n");
}

// LONG1, LONG4
void PickleWriter::long_integer(std::string_view raw) {
  raw = trimmed(raw);
  if (raw.size() > INT32_MAX)
    raise_python(PyExc_OverflowError, "int too large to pickle: {} bytes", raw.size());
  opcode(raw.size() <= 0xFF ? 0x8A : 0x8B);
  number(raw.size(), raw.size() <= 0xFF ? 1 : 4);
  bytes_.append(raw);
}

void PickleWriter::integer(int64_t value) {
  const bool is_short = value == static_cast<int32_t>(value);
  if (protocol_ < 2 && !is_short) return line('L', std::to_string(value) + "L");
  if (!is_binary()) return line('I', std::to_string(value));
  if (!is_short) {
    char raw[sizeof(value)];
    std::memcpy(raw, &value, sizeof(value));
    return long_integer({raw, sizeof(raw)});
  }
  const bool is_unsigned = value >= 0 && value <= 0xFFFF;
  const size_t bytes = !is_unsigned ? 4 : value <= 0xFF ? 1 : 2;
  opcode(bytes == 4 ? 'J' : bytes == 1 ? 'K' : 'M');  // BININT, BININT1, BININT2
  number(static_cast<uint64_t>(value), bytes);
}

void PickleWriter::integer(PyObject* value) {
  int overflow;
  const long long small = PyLong_AsLongLongAndOverflow(value, &overflow);
  if (!overflow) return integer(static_cast<int64_t>(small));
  if (protocol_ < 2) {
    const PyRef digits = PyRef::check(PyObject_Repr(value));
    return line('L', std::string(utf8(digits.get())) + "L");
  }
  // int's own methods: a subclass may have others, and the C functions differ between versions.
  PyObject* const type = reinterpret_cast<PyObject*>(&PyLong_Type);
  const PyRef bits = PyRef::check(PyObject_CallMethod(type, "bit_length", "O", value));
  const Py_ssize_t size = PyLong_AsSsize_t(bits.get()) / 8 + 1;
  const PyRef method = PyRef::check(PyObject_GetAttrString(type, "to_bytes"));
  const PyRef args = PyRef::check(Py_BuildValue("(Ons)", value, size, "little"));
  const PyRef keywords = PyRef::check(Py_BuildValue("{s:O}", "signed", Py_True));
  const PyRef raw = PyRef::check(PyObject_Call(method.get(), args.get(), keywords.get()));
  long_integer(std::string(PyBytes_AS_STRING(raw.get()), static_cast<size_t>(size)));
}

void PickleWriter::real(double value) {
  if (!is_binary()) {
    char* const digits = PyOS_double_to_string(value, 'r', 0, Py_DTSF_ADD_DOT_0, nullptr);
    if (!digits) throw PythonError();
    line('F', digits);
    return PyMem_Free(digits);
  }
  char raw[sizeof(value)];
  std::memcpy(raw, &value, sizeof(value));
  std::reverse(raw, raw + sizeof(raw));  // big-endian
  opcode('G');
  bytes_.append(raw, sizeof(raw));
}

void PickleWriter::text(PyObject* value) {
  if (!is_binary()) return line('V', raw_unicode_escape(value));
  Py_ssize_t size;
  const unsigned char one = protocol_ >= 4 ? 0x8C : 0, eight = protocol_ >= 4 ? 0x8D : 0;
  if (const char* raw = PyUnicode_AsUTF8AndSize(value, &size))
    return counted(one, 'X', eight, {raw, static_cast<size_t>(size)});
  PyErr_Clear();  // halves of surrogate pairs
  const PyRef raw = PyRef::check(PyUnicode_AsEncodedString(value, "utf-8", "surrogatepass"));
  counted(one, 'X', eight, bytes_of(raw.get()));
}

void PickleWriter::ascii(std::string_view value) {
  if (!is_binary()) return line('V', value);
  counted(protocol_ >= 4 ? 0x8C : 0, 'X', 0, value);
}

void PickleWriter::byte_string(PyObject* value) {
  counted('C', 'B', protocol_ >= 4 ? 0x8E : 0, bytes_of(value));
}

void PickleWriter::byte_array(PyObject* value) {
  const size_t size = static_cast<size_t>(PyByteArray_GET_SIZE(value));
  opcode(0x96);  // BYTEARRAY8
  number(size, 8);
  bytes_.append(PyByteArray_AS_STRING(value), size);
}

void PickleWriter::global(std::string_view module, std::string_view name) {
  line('c', module);
  bytes_.append(name);
  opcode('\n');
}

void PickleWriter::put(size_t i) {
  if (protocol_ >= 4) return opcode(0x94);  // MEMOIZE
  if (!is_binary()) return line('p', std::to_string(i));
  opcode(i <= 0xFF ? 'q' : 'r');
  number(i, i <= 0xFF ? 1 : 4);
}

void PickleWriter::get(size_t i) {
  if (!is_binary()) return line('g', std::to_string(i));
  opcode(i <= 0xFF ? 'h' : 'j');
  number(i, i <= 0xFF ? 1 : 4);
}

}  // namespace taeda::python
