#include "python/unpickle/unpickler.h"

namespace taeda::python {
namespace {

constexpr int64_t kSignalPeriod = 1 << 16;

// A value of so many bytes of text or bytes.
Cost text_cost(int64_t bytes) { return {kText.memory + bytes, kText.effort}; }

}  // namespace

PyRef Unpickler::load() {
  for (int64_t count = 1;; count++) {
    const unsigned char code = reader_.opcode();
    if (code == '.') break;
    step(code);
    if (count % kSignalPeriod == 0) check_status(PyErr_CheckSignals());
  }
  if (!stack_.holds_one_value()) rules_.fail("load: the pickle does not end with one object");
  return stack_.pop();
}

void Unpickler::check_protocol() {
  const uint64_t version = reader_.number(1);
  if (version > 5) rules_.fail("load: pickle protocol {} is not supported", version);
}

// --- values ---

void Unpickler::push_long(uint64_t bytes) {
  const std::string_view raw = reader_.take(bytes);
  push_new(_PyLong_FromByteArray(reinterpret_cast<const unsigned char*>(raw.data()), raw.size(),
                                 /*little_endian=*/1, /*is_signed=*/1),
           {kNumber.memory + 2 * static_cast<int64_t>(bytes), kNumber.effort});
}

void Unpickler::push_text(PyObject* text) {
  if (!text && PyErr_ExceptionMatches(PyExc_UnicodeError)) {
    PyErr_Clear();
    rules_.fail("load: the pickle is damaged: text in another encoding than it should be");
  }
  PyRef owner = PyRef::check(text);
  push(std::move(owner), text_cost(PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text)));
}

void Unpickler::push_utf8(uint64_t bytes) {
  const std::string_view raw = reader_.take(bytes);
  push_text(PyUnicode_DecodeUTF8(raw.data(), static_cast<Py_ssize_t>(raw.size()), "surrogatepass"));
}

void Unpickler::push_bytes(std::string_view raw) {
  push_new(PyBytes_FromStringAndSize(raw.data(), static_cast<Py_ssize_t>(raw.size())),
           text_cost(static_cast<int64_t>(raw.size())));
}

void Unpickler::push_byte_array(uint64_t bytes) {
  const std::string_view raw = reader_.take(bytes);
  push_new(PyByteArray_FromStringAndSize(raw.data(), static_cast<Py_ssize_t>(raw.size())),
           text_cost(static_cast<int64_t>(bytes)));
}

// Python 2's str.
void Unpickler::push_byte_string(std::string_view raw) {
  if (std::string_view(encoding_) == "bytes") return push_bytes(raw);
  push_text(PyUnicode_Decode(raw.data(), static_cast<Py_ssize_t>(raw.size()), encoding_, nullptr));
}

// --- containers and objects ---

void Unpickler::push_tuple(std::vector<PyRef> items) {
  const Py_ssize_t size = static_cast<Py_ssize_t>(items.size());
  PyRef tuple = PyRef::check(PyTuple_New(size));
  for (Py_ssize_t i = 0; i < size; i++)
    PyTuple_SET_ITEM(tuple.get(), i, items[static_cast<size_t>(i)].release());
  push(std::move(tuple), {kTuple.memory + 8 * size, kTuple.effort});
}

void Unpickler::push_list(const std::vector<PyRef>& values) {
  push_new(PyList_New(0), kList);
  append(values);
}

void Unpickler::push_dict(const std::vector<PyRef>& values) {
  push_new(PyDict_New(), kDict);
  set_items(values);
}

void Unpickler::set_items(const std::vector<PyRef>& values) {
  if (values.size() % 2) rules_.fail("load: a dict has a key without a value");
  containers_.set_items(stack_.top(), values);
}

void Unpickler::build() {
  const PyRef state = stack_.pop();
  budget_.charge(kUser);
  const PyRef one = PyRef::check(PyTuple_Pack(1, state.get()));
  budget_.charge_arguments(one.get());
  PyRef::check(
      PyObject_CallFunctionObjArgs(rules_.build.get(), stack_.top(), state.get(), nullptr));
}

// --- names and calls ---

PyRef Unpickler::text_of(std::string_view raw) const {
  PyObject* text = PyUnicode_DecodeUTF8(raw.data(), static_cast<Py_ssize_t>(raw.size()), nullptr);
  if (text) return PyRef::adopt(text);
  PyErr_Clear();
  rules_.fail("load: a name in the pickle is not text");
}

void Unpickler::push_global(PyObject* module, PyObject* name) {
  budget_.charge(kFind);
  push_new(PyObject_CallFunctionObjArgs(rules_.find.get(), module, name, nullptr), kReference);
}

void Unpickler::find_from_lines() {
  const std::string_view module = reader_.short_line(), name = reader_.short_line();
  push_global(text_of(module).get(), text_of(name).get());
}

void Unpickler::find_from_stack() {
  const PyRef name = stack_.pop(), module = stack_.pop();
  if (!PyUnicode_CheckExact(name.get()) || !PyUnicode_CheckExact(module.get()))
    rules_.fail("load: a name in the pickle is not text");
  push_global(module.get(), name.get());
}

// REDUCE, and NEWOBJ where `make` is the rule for what is no checked function.
void Unpickler::call(const PyRef& rule) {
  const PyRef args = stack_.pop(), function = stack_.pop();
  if (!PyTuple_CheckExact(args.get()))
    rules_.fail("load: a function in the pickle is called without a tuple");
  budget_.charge_arguments(args.get());
  if (PyRef made = containers_.call(function.get(), args.get())) return push(std::move(made));
  const auto known = rules_.costs.find(function.get());
  budget_.charge(known == rules_.costs.end() ? kUser : known->second);
  PyObject* result =
      known == rules_.costs.end()
          ? PyObject_CallFunctionObjArgs(rule.get(), function.get(), args.get(), nullptr)
          : PyObject_Call(function.get(), args.get(), nullptr);
  if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) fail_arguments();
  push_new(result, kReference);
}

void Unpickler::fail_arguments() const {
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  const PyRef owners[] = {PyRef::adopt(type), PyRef::adopt(value), PyRef::adopt(trace)};
  const PyRef text = PyRef::check(PyObject_Str(value));
  rules_.fail("load: wrong arguments in the pickle: {}", utf8(text.get()));
}

// NEWOBJ_EX
void Unpickler::call_with_keywords() {
  const PyRef keywords = stack_.pop(), args = stack_.pop(), type = stack_.pop();
  const PyRef all = PyRef::check(PyTuple_Pack(2, args.get(), keywords.get()));
  budget_.charge(kUser);
  budget_.charge_arguments(all.get());
  push_new(PyObject_CallFunctionObjArgs(rules_.make.get(), type.get(), args.get(), keywords.get(),
                                        nullptr),
           kReference);
}

void Unpickler::load_persistent(PyRef id) {
  budget_.charge(kStorage);
  budget_.charge_arguments(id.get());
  push_new(PyObject_CallOneArg(persistent_load_, id.get()), kReference);
}

// --- the memo ---

void Unpickler::memoize(size_t i) {
  budget_.charge(kMemo);
  memo_.put(i, PyRef::share(stack_.top()));
}

void Unpickler::recall(size_t i) {
  PyObject* value = memo_.get(i);
  if (!value) rules_.fail("load: the pickle refers to a value that it has not stored");
  push(PyRef::share(value));
}

// The names behind the cases are those of the pickletools module.
void Unpickler::step(unsigned char code) {
  switch (code) {
    case 0x80:  // PROTO
      return check_protocol();
    case 0x95:  // FRAME
      reader_.take(8);
      return;
    case '(':  // MARK
      budget_.charge(kReference);
      return stack_.mark();
    case '0':  // POP
      return stack_.pop_value_or_mark();
    case '1':  // POP_MARK
      stack_.pop_to_mark();
      return;
    case '2':  // DUP
      return push(PyRef::share(stack_.top()));
    case 'N':
      return push(PyRef::share(Py_None));
    case 0x88:  // NEWTRUE
      return push(PyRef::share(Py_True));
    case 0x89:  // NEWFALSE
      return push(PyRef::share(Py_False));
    case 'J':  // BININT
      return push_new(PyLong_FromLong(static_cast<int32_t>(reader_.number(4))), kNumber);
    case 'K':  // BININT1
      return push_new(PyLong_FromLong(static_cast<long>(reader_.number(1))), kReference);
    case 'M':  // BININT2
      return push_new(PyLong_FromLong(static_cast<long>(reader_.number(2))), kNumber);
    case 0x8A:  // LONG1
      return push_long(reader_.number(1));
    case 0x8B:  // LONG4
      return push_long(reader_.number(4));
    case 'I':
      return push_integer_line();
    case 'L':
      return push_long_line();
    case 'F':
      return push_float_line();
    case 'V':
      return push_escaped_line();
    case 'S':
      return push_quoted_line();
    case 'G':  // BINFLOAT
      return push_new(PyFloat_FromDouble(reader_.real()), kNumber);
    case 'X':  // BINUNICODE
      return push_utf8(reader_.number(4));
    case 0x8C:  // SHORT_BINUNICODE
      return push_utf8(reader_.number(1));
    case 0x8D:  // BINUNICODE8
      return push_utf8(reader_.number(8));
    case 'T':  // BINSTRING
      return push_byte_string(reader_.take(reader_.number(4)));
    case 'U':  // SHORT_BINSTRING
      return push_byte_string(reader_.take(reader_.number(1)));
    case 'B':  // BINBYTES
      return push_bytes(reader_.take(reader_.number(4)));
    case 'C':  // SHORT_BINBYTES
      return push_bytes(reader_.take(reader_.number(1)));
    case 0x8E:  // BINBYTES8
      return push_bytes(reader_.take(reader_.number(8)));
    case 0x96:  // BYTEARRAY8
      return push_byte_array(reader_.number(8));
    case 'l':
      return push_list(stack_.pop_to_mark());
    case 'd':
      return push_dict(stack_.pop_to_mark());
    case ']':  // EMPTY_LIST
      return push_new(PyList_New(0), kList);
    case '}':  // EMPTY_DICT
      return push_new(PyDict_New(), kDict);
    case 0x8F:  // EMPTY_SET
      return push_new(PySet_New(nullptr), kSet);
    case ')':  // EMPTY_TUPLE
      return push_new(PyTuple_New(0), kReference);
    case 0x85:  // TUPLE1
    case 0x86:  // TUPLE2
    case 0x87:  // TUPLE3
      return push_tuple(stack_.pop_many(code - 0x84u));
    case 't':  // TUPLE
      return push_tuple(stack_.pop_to_mark());
    case 'a':  // APPEND
      return append(stack_.pop_many(1));
    case 'e':   // APPENDS
    case 0x90:  // ADDITEMS
      return append(stack_.pop_to_mark());
    case 0x91:  // FROZENSET
      return push(containers_.frozen_set(stack_.pop_to_mark()));
    case 's':  // SETITEM
      return set_items(stack_.pop_many(2));
    case 'u':  // SETITEMS
      return set_items(stack_.pop_to_mark());
    case 'c':  // GLOBAL
      return find_from_lines();
    case 0x93:  // STACK_GLOBAL
      return find_from_stack();
    case 'R':  // REDUCE
      return call(rules_.call);
    case 0x81:  // NEWOBJ
      return call(rules_.make);
    case 0x92:  // NEWOBJ_EX
      return call_with_keywords();
    case 'b':  // BUILD
      return build();
    case 'Q':  // BINPERSID
      return load_persistent(stack_.pop());
    case 'P':  // PERSID
      return load_persistent(text_of(reader_.short_line()));
    case 'p':
      return memoize(number_line());
    case 'g':
      return recall(number_line());
    case 'q':  // BINPUT
      return memoize(reader_.number(1));
    case 'r':  // LONG_BINPUT
      return memoize(reader_.number(4));
    case 0x94:  // MEMOIZE
      return memoize(memo_.size());
    case 'h':  // BINGET
      return recall(reader_.number(1));
    case 'j':  // LONG_BINGET
      return recall(reader_.number(4));
    default:
      rules_.fail("load: unsupported opcode {}", static_cast<int64_t>(code));
  }
}
}  // namespace taeda::python
