// An interpreter of the pickle opcodes that data needs, for files nobody vouches for.
//
// It makes plain values and containers itself; names, tensors and the classes that the user allows
// are the business of the rules. Nothing is imported, no method of an object in the file is called,
// and there is no recursion.
#pragma once

#include "python/unpickle/containers.h"
#include "python/unpickle/reader.h"
#include "python/unpickle/stack.h"

namespace taeda::python {

class Unpickler {
 public:
  // `persistent_load` and `encoding` (of Python 2's strings) are borrowed.
  Unpickler(PickleReader reader, const UnpickleRules& rules, PyObject* persistent_load, Cost budget,
            const char* encoding)
      : reader_(reader),
        rules_(rules),
        persistent_load_(persistent_load),
        encoding_(encoding),
        budget_(budget, rules),
        containers_(budget_, rules),
        stack_(rules) {}
  Unpickler(const Unpickler&) = delete;
  Unpickler& operator=(const Unpickler&) = delete;

  PyRef load();
  size_t position() const { return reader_.position(); }

 private:
  void step(unsigned char code);
  void check_protocol();

  void push(PyRef value, Cost cost = kReference) {
    budget_.charge(cost);
    stack_.push(std::move(value));
  }
  // A new reference from an API call.
  void push_new(PyObject* value, Cost cost) { push(PyRef::check(value), cost); }
  void push_long(uint64_t bytes);
  void push_text(PyObject* text);
  void push_utf8(uint64_t bytes);
  void push_bytes(std::string_view raw);
  void push_byte_array(uint64_t bytes);
  void push_byte_string(std::string_view raw);
  void push_tuple(std::vector<PyRef> items);
  void push_list(const std::vector<PyRef>& values);
  void push_dict(const std::vector<PyRef>& values);

  // Protocol 0: values as lines of text (text_opcodes.cc).
  void push_digits(std::string_view digits);
  void push_integer_line();
  void push_long_line();
  void push_float_line();
  void push_escaped_line();
  void push_quoted_line();
  size_t number_line();

  void append(const std::vector<PyRef>& values) { containers_.append(stack_.top(), values); }
  void set_items(const std::vector<PyRef>& values);
  void build();

  PyRef text_of(std::string_view raw) const;
  void push_global(PyObject* module, PyObject* name);
  void find_from_lines();
  void find_from_stack();
  void call(const PyRef& rule);
  [[noreturn]] void fail_arguments() const;
  void call_with_keywords();
  void load_persistent(PyRef id);

  void memoize(size_t i);
  void recall(size_t i);

  PickleReader reader_;
  const UnpickleRules& rules_;
  PyObject* persistent_load_;
  const char* encoding_;
  UnpickleBudget budget_;
  UnpickledContainers containers_;
  PickleStack stack_;
  PickleMemo memo_;
};

}  // namespace taeda::python
