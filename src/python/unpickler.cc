// _C._unpickle: an interpreter of the pickle opcodes that data needs, for files nobody vouches for.
//
// It makes plain values and containers itself; names, tensors and the classes that the user allows
// are the business of taeda.serialization._safe_pickle. Nothing is imported, no method of an object
// in the file is called, and there is no recursion. Two budgets bound what a file can do: `memory`,
// the bytes that the objects made may take, and `effort`, about the nanoseconds that making them
// may take. Both are charged before the fact, by what honest pickles of that size need at most; the
// costs below were measured on CPython 3.11. What could be worse than linear is charged in full:
// arguments that a file passes again and again by reference, keys that take long to hash, and keys
// made to have the same hash.
#include <pthread.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <unordered_map>
#include <vector>

#include "base/cgroup.h"
#include "python/module.h"
#include "python/objects.h"

namespace taeda::python {
namespace {

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
constexpr int kMaxKeyDepth = 20, kMaxArgumentDepth = 2;
constexpr int64_t kSignalPeriod = 1 << 16;

// Keys of one hash in one container, for the kinds of keys whose hashes a file can choose.
class HashCounts {
 public:
  explicit HashCounts(uint64_t seed) : seed_(seed) {}
  int64_t of(PyObject* container, Py_hash_t hash) const {
    if (counts_.empty()) return 0;
    const auto found = counts_.find(slot(container, hash));
    return found == counts_.end() ? 0 : found->second;
  }
  void add(PyObject* container, Py_hash_t hash) { counts_[slot(container, hash)]++; }

 private:
  static uint64_t mix(uint64_t x) {  // splitmix64
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBull;
    return x ^ (x >> 31);
  }
  uint64_t slot(PyObject* container, Py_hash_t hash) const {
    return mix(static_cast<uint64_t>(hash) ^ mix(reinterpret_cast<uintptr_t>(container) ^ seed_));
  }
  uint64_t seed_;
  std::unordered_map<uint64_t, int64_t> counts_;
};

// What numbered opcodes have stored: a vector as long as the numbers come in order.
class Memo {
 public:
  size_t size() const { return dense_.size() + sparse_.size(); }
  void put(size_t i, PyRef value) {
    if (i < dense_.size()) {
      dense_[i] = std::move(value);
    } else if (i == dense_.size()) {
      dense_.push_back(std::move(value));
      if (!sparse_.empty()) sparse_.erase(i);
    } else {
      sparse_[i] = std::move(value);
    }
  }
  PyObject* get(size_t i) const {  // borrowed; null if there is none
    if (i < dense_.size()) return dense_[i].get();
    const auto found = sparse_.find(i);
    return found == sparse_.end() ? nullptr : found->second.get();
  }

 private:
  std::vector<PyRef> dense_;
  std::unordered_map<size_t, PyRef> sparse_;
};

// The rules of taeda.serialization._safe_pickle, and the types that are made here.
struct Rules {
  explicit Rules(PyObject* rules)
      : find(attribute(rules, "find")),
        call(attribute(rules, "call")),
        make(attribute(rules, "make")),
        build(attribute(rules, "build")),
        error(attribute(rules, "error")),
        over_memory(attribute(rules, "over_memory")),
        counter(attribute(rules, "counter")) {
    const PyRef table = attribute(rules, "costs");
    PyObject *function, *cost;
    for (Py_ssize_t at = 0; PyDict_Next(table.get(), &at, &function, &cost);) {
      long long memory, effort;
      if (!PyArg_ParseTuple(cost, "LL", &memory, &effort)) throw PythonError();
      costs[function] = {memory, effort};
    }
  }
  static PyRef attribute(PyObject* object, const char* name) {
    return PyRef::check(PyObject_GetAttrString(object, name));
  }

  PyRef find, call, make, build, error, over_memory, counter;
  std::unordered_map<PyObject*, Cost> costs;  // checked functions that may be called as they are
};

class Unpickler {
 public:
  Unpickler(std::string_view data, size_t at, const Rules& rules, PyObject* persistent_load,
            Cost budget, const char* encoding)
      : data_(data),
        at_(at),
        rules_(rules),
        persistent_load_(persistent_load),
        budget_(budget),
        encoding_(encoding),
        collisions_(reinterpret_cast<uintptr_t>(this)) {}

  PyRef load() {
    for (int64_t count = 1;; count++) {
      const unsigned char code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      step(code);
      if (count % kSignalPeriod == 0) check_status(PyErr_CheckSignals());
    }
    if (stack_.size() != 1 || !marks_.empty())
      fail("load: the pickle does not end with one object");
    return pop();
  }
  size_t position() const { return at_; }

 private:
  template <class... Args>
  [[noreturn]] void fail(std::string_view message, const Args&... args) const {
    raise_python(rules_.error.get(), message, args...);
  }

  // --- reading ---

  std::string_view take(uint64_t count) {
    if (count > data_.size() - at_) fail("load: the pickle is truncated");
    const std::string_view part = data_.substr(at_, count);
    at_ += count;
    return part;
  }
  uint64_t number(size_t bytes) {
    uint64_t value = 0;
    const std::string_view raw = take(bytes);
    for (size_t i = bytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(raw[i]);
    return value;
  }
  std::string_view line() {
    const size_t end = data_.substr(at_, 4096).find('\n');
    if (end == std::string_view::npos) fail("load: a name in the pickle has no end");
    const std::string_view text = data_.substr(at_, end);
    at_ += end + 1;
    return text;
  }

  // --- budgets ---

  void charge(Cost cost, int64_t times = 1) {
    budget_.memory -= cost.memory * times;
    budget_.effort -= cost.effort * times;
    if (budget_.memory < 0) {
      PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(rules_.over_memory.get())),
                      rules_.over_memory.get());
      throw PythonError();
    }
    if (budget_.effort < 0) fail("load: reading the file would take longer than its size allows");
  }

  // For what a function may copy of its arguments, which may be there only once in the file.
  void charge_arguments(PyObject* value, int depth = 0) {
    if (PyTuple_Check(value)) {
      const Py_ssize_t size = PyTuple_GET_SIZE(value);
      charge(kCopied, size);
      if (depth > kMaxArgumentDepth) return;
      for (Py_ssize_t i = 0; i < size; i++) charge_arguments(PyTuple_GET_ITEM(value, i), depth + 1);
    } else if (PyUnicode_Check(value)) {
      charge_bytes(PyUnicode_GET_LENGTH(value) * PyUnicode_KIND(value));
    } else if (PyBytes_Check(value)) {
      charge_bytes(PyBytes_GET_SIZE(value));
    } else if (PyByteArray_Check(value)) {
      charge_bytes(PyByteArray_GET_SIZE(value));
    } else if (PyList_Check(value)) {
      charge(kCopied, PyList_GET_SIZE(value));
    } else if (PyDict_Check(value)) {
      charge(kCopied, PyDict_GET_SIZE(value));
    } else if (PyAnySet_Check(value)) {
      charge(kCopied, PySet_GET_SIZE(value));
    } else if (PyLong_Check(value)) {
      charge_bytes(long_bytes(value));
    }
  }
  void charge_bytes(int64_t count) { charge({4 * count, count / 8}); }

  // The bytes of an integer: 7 stands for all that have a hash of their own.
  static int64_t long_bytes(PyObject* value) {
    int overflow;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow) return static_cast<int64_t>(_PyLong_NumBits(value) / 8);
    constexpr int64_t kShort = int64_t{1} << 56;
    return number > -kShort && number < kShort ? 7 : 8;
  }

  // --- the stack ---

  size_t fence() const { return marks_.empty() ? 0 : marks_.back(); }
  void push(PyRef value, Cost cost = kReference) {
    charge(cost);
    stack_.push_back(std::move(value));
  }
  // A new reference from an API call.
  void push_new(PyObject* value, Cost cost) { push(PyRef::check(value), cost); }
  PyObject* top() const {  // borrowed
    if (stack_.size() == fence()) fail("load: the pickle takes a value where there is none");
    return stack_.back().get();
  }
  PyRef pop() {
    top();
    PyRef value = std::move(stack_.back());
    stack_.pop_back();
    return value;
  }
  void pop_mark() {
    if (marks_.empty()) fail("load: the pickle has no mark where one is needed");
    marks_.pop_back();
  }
  // The values above the topmost mark, which goes; those below stay.
  std::vector<PyRef> pop_to_mark() {
    const size_t begin = fence();
    pop_mark();
    return pop_many(stack_.size() - begin);
  }
  std::vector<PyRef> pop_many(size_t count) {
    if (stack_.size() - fence() < count) fail("load: the pickle takes a value where there is none");
    const auto begin = stack_.end() - static_cast<std::ptrdiff_t>(count);
    std::vector<PyRef> values(std::make_move_iterator(begin),
                              std::make_move_iterator(stack_.end()));
    stack_.erase(begin, stack_.end());
    return values;
  }

  // --- values ---

  void push_long(uint64_t bytes) {
    const std::string_view raw = take(bytes);
    push_new(_PyLong_FromByteArray(reinterpret_cast<const unsigned char*>(raw.data()), raw.size(),
                                   /*little_endian=*/1, /*is_signed=*/1),
             {kNumber.memory + 2 * static_cast<int64_t>(bytes), kNumber.effort});
  }
  void push_float() {
    uint64_t bits = 0;
    for (const char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
    double value;
    std::memcpy(&value, &bits, sizeof(value));
    push_new(PyFloat_FromDouble(value), kNumber);
  }
  void push_text(PyObject* text) {
    if (!text && PyErr_ExceptionMatches(PyExc_UnicodeError)) {
      PyErr_Clear();
      fail("load: the pickle is damaged: text in another encoding than it should be");
    }
    PyRef owner = PyRef::check(text);
    const int64_t bytes = PyUnicode_GET_LENGTH(text) * PyUnicode_KIND(text);
    push(std::move(owner), {kText.memory + bytes, kText.effort});
  }
  void push_utf8(uint64_t bytes) {
    const std::string_view raw = take(bytes);
    push_text(
        PyUnicode_DecodeUTF8(raw.data(), static_cast<Py_ssize_t>(raw.size()), "surrogatepass"));
  }
  void push_bytes(uint64_t bytes) {
    const std::string_view raw = take(bytes);
    push_new(PyBytes_FromStringAndSize(raw.data(), static_cast<Py_ssize_t>(raw.size())),
             {kText.memory + static_cast<int64_t>(bytes), kText.effort});
  }
  void push_byte_array(uint64_t bytes) {
    const std::string_view raw = take(bytes);
    push_new(PyByteArray_FromStringAndSize(raw.data(), static_cast<Py_ssize_t>(raw.size())),
             {kText.memory + static_cast<int64_t>(bytes), kText.effort});
  }
  // Python 2's str.
  void push_byte_string(uint64_t bytes) {
    if (std::string_view(encoding_) == "bytes") return push_bytes(bytes);
    const std::string_view raw = take(bytes);
    push_text(
        PyUnicode_Decode(raw.data(), static_cast<Py_ssize_t>(raw.size()), encoding_, nullptr));
  }

  // --- containers ---

  void push_tuple(std::vector<PyRef> items) {
    const Py_ssize_t size = static_cast<Py_ssize_t>(items.size());
    PyRef tuple = PyRef::check(PyTuple_New(size));
    for (Py_ssize_t i = 0; i < size; i++)
      PyTuple_SET_ITEM(tuple.get(), i, items[static_cast<size_t>(i)].release());
    push(std::move(tuple), {kTuple.memory + 8 * size, kTuple.effort});
  }
  void append(const std::vector<PyRef>& values) {
    PyObject* target = top();
    const bool is_list = PyList_CheckExact(target);
    if (!is_list && Py_TYPE(target) != &PySet_Type)
      fail("load: values are appended to a {}", type_name(target));
    for (const PyRef& value : values) {
      if (is_list) {
        charge(kItem);
        check_status(PyList_Append(target, value.get()));
      } else {
        add_key(target, value.get(), kKey);
        check_status(PySet_Add(target, value.get()));
      }
    }
  }
  void set_items(const std::vector<PyRef>& values) {
    if (values.size() % 2) fail("load: a dict has a key without a value");
    PyObject* target = top();
    if (!PyDict_CheckExact(target) && !PyODict_CheckExact(target) && !is_counter(target))
      fail("load: items are set on a {}", type_name(target));
    for (size_t i = 0; i < values.size(); i += 2)
      set_item(target, values[i].get(), values[i + 1].get());
  }
  void set_item(PyObject* target, PyObject* key, PyObject* value) {
    const bool ordered = PyODict_CheckExact(target);
    add_key(target, key, ordered ? kOrderedKey : kKey);
    check_status(ordered ? PyODict_SetItem(target, key, value)
                         : PyDict_SetItem(target, key, value));
  }
  bool is_counter(PyObject* value) const {
    return reinterpret_cast<PyObject*>(Py_TYPE(value)) == rules_.counter.get();
  }

  // --- keys ---

  // The effort to hash a key or to compare it with another. Keys are plain values or tuples of
  // them.
  int64_t key_effort(PyObject* key, int depth = 0) {
    int64_t effort = 20;
    if (PyUnicode_CheckExact(key)) {
      effort += PyUnicode_GET_LENGTH(key) * PyUnicode_KIND(key) / 8;
    } else if (PyBytes_CheckExact(key)) {
      effort += PyBytes_GET_SIZE(key) / 8;
    } else if (PyLong_CheckExact(key)) {
      effort += long_bytes(key) / 2;
    } else if (PyTuple_CheckExact(key) || Py_TYPE(key) == size_type) {
      if (depth == kMaxKeyDepth) fail("load: a key of a dict or set is nested too deeply");
      for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(key); i++) {
        effort += key_effort(PyTuple_GET_ITEM(key, i), depth + 1);
        charge({0, 5});  // for looking at it: shared parts of it may be there many times
      }
    } else if (!PyFloat_CheckExact(key) && !PyBool_Check(key) && key != Py_None &&
               !PyComplex_CheckExact(key) && !is_dtype(key) && !is_device(key)) {
      fail("load: a dict or set has a key of type {}", type_name(key));
    }
    return effort;
  }
  // Text and bytes have hashes that a file cannot choose, short integers different ones.
  static bool has_chosen_hash(PyObject* key) {
    return PyTuple_Check(key) || PyFloat_CheckExact(key) || PyComplex_CheckExact(key) ||
           (PyLong_CheckExact(key) && long_bytes(key) > 7);
  }
  void add_key(PyObject* container, PyObject* key, Cost cost) {
    const int64_t effort = key_effort(key);
    charge({cost.memory, cost.effort + effort});
    if (PyUnicode_CheckExact(key) || PyBytes_CheckExact(key)) return;
    const Py_hash_t hash = PyObject_Hash(key);
    if (hash == -1) throw PythonError();
    charge({0, (kCollision + effort) * collisions_.of(container, hash)});
    if (has_chosen_hash(key)) collisions_.add(container, hash);
  }

  // --- names and calls ---

  void push_global(PyObject* module, PyObject* name) {
    charge(kFind);
    push_new(PyObject_CallFunctionObjArgs(rules_.find.get(), module, name, nullptr), kReference);
  }
  void find_from_lines() {
    const std::string_view module = line(), name = line();
    push_global(text_of(module).get(), text_of(name).get());
  }
  PyRef text_of(std::string_view raw) const {
    PyObject* text = PyUnicode_DecodeUTF8(raw.data(), static_cast<Py_ssize_t>(raw.size()), nullptr);
    if (text) return PyRef::adopt(text);
    PyErr_Clear();
    fail("load: a name in the pickle is not text");
  }
  void find_from_stack() {
    const PyRef name = pop(), module = pop();
    if (!PyUnicode_CheckExact(name.get()) || !PyUnicode_CheckExact(module.get()))
      fail("load: a name in the pickle is not text");
    push_global(module.get(), name.get());
  }

  // REDUCE, and NEWOBJ where `make` is the rule for what is no checked function.
  void call(const PyRef& rule) {
    const PyRef args = pop(), function = pop();
    if (!PyTuple_CheckExact(args.get()))
      fail("load: a function in the pickle is called without a tuple");
    charge_arguments(args.get());
    if (PyRef made = make_container(function.get(), args.get())) return push(std::move(made));
    const auto known = rules_.costs.find(function.get());
    charge(known == rules_.costs.end() ? kUser : known->second);
    PyObject* result =
        known == rules_.costs.end()
            ? PyObject_CallFunctionObjArgs(rule.get(), function.get(), args.get(), nullptr)
            : PyObject_Call(function.get(), args.get(), nullptr);
    if (!result && PyErr_ExceptionMatches(PyExc_TypeError)) fail_arguments();
    push_new(result, kReference);
  }
  [[noreturn]] void fail_arguments() const {
    PyObject *type, *value, *trace;
    PyErr_Fetch(&type, &value, &trace);
    const PyRef owners[] = {PyRef::adopt(type), PyRef::adopt(value), PyRef::adopt(trace)};
    const PyRef text = PyRef::check(PyObject_Str(value));
    fail("load: wrong arguments in the pickle: {}", utf8(text.get()));
  }

  void push_frozen_set(const std::vector<PyRef>& values) {
    PyRef set = PyRef::check(PyFrozenSet_New(nullptr));
    charge(kSet);
    for (const PyRef& value : values) {
      add_key(set.get(), value.get(), kKey);
      check_status(PySet_Add(set.get(), value.get()));
    }
    push(std::move(set));
  }
  // A call of a container's type; null for any other function.
  PyRef make_container(PyObject* type, PyObject* args) {
    if (type == reinterpret_cast<PyObject*>(&PySet_Type))
      return make_set(PyRef::check(PySet_New(nullptr)), args);
    if (type == reinterpret_cast<PyObject*>(&PyFrozenSet_Type))
      return make_set(PyRef::check(PyFrozenSet_New(nullptr)), args);
    if (type == reinterpret_cast<PyObject*>(&PyODict_Type)) return make_ordered_dict(args);
    if (type == rules_.counter.get()) return make_counter(args);
    return PyRef();
  }
  // The only argument, null if there is none.
  PyObject* optional_argument(PyObject* args, const char* type) const {
    if (PyTuple_GET_SIZE(args) > 1) fail("load: {} was given several arguments", type);
    return PyTuple_GET_SIZE(args) ? PyTuple_GET_ITEM(args, 0) : nullptr;
  }
  PyRef make_set(PyRef set, PyObject* args) {
    charge(kSet);
    PyObject* values = optional_argument(args, "set");
    if (!values) return set;
    if (!PyList_CheckExact(values) && !PyTuple_CheckExact(values) && !PyAnySet_CheckExact(values))
      fail("load: set was given something else than a list");
    const PyRef items = PyRef::check(PySequence_List(values));
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(items.get()); i++) {
      add_key(set.get(), PyList_GET_ITEM(items.get(), i), kKey);
      check_status(PySet_Add(set.get(), PyList_GET_ITEM(items.get(), i)));
    }
    return set;
  }
  PyRef make_ordered_dict(PyObject* args) {
    charge(kOrderedDict);
    PyRef dict = PyRef::check(PyODict_New());
    PyObject* pairs = optional_argument(args, "OrderedDict");
    if (!pairs) return dict;
    if (!PyList_CheckExact(pairs) && !PyTuple_CheckExact(pairs))
      fail("load: OrderedDict was given something else than pairs");
    for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(pairs); i++) {
      PyObject* pair = PySequence_Fast_GET_ITEM(pairs, i);
      if ((!PyList_CheckExact(pair) && !PyTuple_CheckExact(pair)) ||
          PySequence_Fast_GET_SIZE(pair) != 2)
        fail("load: OrderedDict was given something else than pairs");
      set_item(dict.get(), PySequence_Fast_GET_ITEM(pair, 0), PySequence_Fast_GET_ITEM(pair, 1));
    }
    return dict;
  }
  PyRef make_counter(PyObject* args) {
    charge(kUser);
    PyRef counter = PyRef::check(PyObject_CallNoArgs(rules_.counter.get()));
    PyObject* values = optional_argument(args, "Counter");
    if (!values) return counter;
    if (!PyDict_CheckExact(values)) fail("load: Counter was given something else than a dict");
    PyObject *key, *count;
    for (Py_ssize_t at = 0; PyDict_Next(values, &at, &key, &count);)
      set_item(counter.get(), key, count);
    return counter;
  }

  void build() {
    const PyRef state = pop();
    charge(kUser);
    const PyRef one = PyRef::check(PyTuple_Pack(1, state.get()));
    charge_arguments(one.get());
    PyRef::check(PyObject_CallFunctionObjArgs(rules_.build.get(), top(), state.get(), nullptr));
  }
  void load_persistent() {
    const PyRef id = pop();
    charge(kStorage);
    charge_arguments(id.get());
    push_new(PyObject_CallOneArg(persistent_load_, id.get()), kReference);
  }

  void memoize(size_t i) {
    charge(kMemo);
    memo_.put(i, PyRef::share(top()));
  }
  void recall(size_t i) {
    PyObject* value = memo_.get(i);
    if (!value) fail("load: the pickle refers to a value that it has not stored");
    push(PyRef::share(value));
  }
  void check_protocol() {
    const uint64_t version = number(1);
    if (version < 2 || version > 5) fail("load: pickle protocol {} is not supported", version);
  }
  void pop_value_or_mark() {
    if (stack_.size() > fence())
      pop();
    else
      pop_mark();
  }

  void step(unsigned char code);

  std::string_view data_;
  size_t at_;
  const Rules& rules_;
  PyObject* persistent_load_;
  Cost budget_;
  const char* encoding_;
  std::vector<PyRef> stack_;
  std::vector<size_t> marks_;
  Memo memo_;
  HashCounts collisions_;
};

// The names behind the cases are those of the pickletools module.
void Unpickler::step(unsigned char code) {
  switch (code) {
    case 0x80:  // PROTO
      return check_protocol();
    case 0x95:  // FRAME
      take(8);
      return;
    case '(':  // MARK
      charge(kReference);
      return marks_.push_back(stack_.size());
    case '0':  // POP
      return pop_value_or_mark();
    case '1':  // POP_MARK
      pop_to_mark();
      return;
    case '2':  // DUP
      return push(PyRef::share(top()));
    case 'N':
      return push(PyRef::share(Py_None));
    case 0x88:  // NEWTRUE
      return push(PyRef::share(Py_True));
    case 0x89:  // NEWFALSE
      return push(PyRef::share(Py_False));
    case 'J':  // BININT
      return push_new(PyLong_FromLong(static_cast<int32_t>(number(4))), kNumber);
    case 'K':  // BININT1
      return push_new(PyLong_FromLong(static_cast<long>(number(1))), kReference);
    case 'M':  // BININT2
      return push_new(PyLong_FromLong(static_cast<long>(number(2))), kNumber);
    case 0x8A:  // LONG1
      return push_long(number(1));
    case 0x8B:  // LONG4
      return push_long(number(4));
    case 'G':  // BINFLOAT
      return push_float();
    case 'X':  // BINUNICODE
      return push_utf8(number(4));
    case 0x8C:  // SHORT_BINUNICODE
      return push_utf8(number(1));
    case 0x8D:  // BINUNICODE8
      return push_utf8(number(8));
    case 'T':  // BINSTRING
      return push_byte_string(number(4));
    case 'U':  // SHORT_BINSTRING
      return push_byte_string(number(1));
    case 'B':  // BINBYTES
      return push_bytes(number(4));
    case 'C':  // SHORT_BINBYTES
      return push_bytes(number(1));
    case 0x8E:  // BINBYTES8
      return push_bytes(number(8));
    case 0x96:  // BYTEARRAY8
      return push_byte_array(number(8));
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
      return push_tuple(pop_many(code - 0x84u));
    case 't':  // TUPLE
      return push_tuple(pop_to_mark());
    case 'a':  // APPEND
      return append(pop_many(1));
    case 'e':   // APPENDS
    case 0x90:  // ADDITEMS
      return append(pop_to_mark());
    case 0x91:  // FROZENSET
      return push_frozen_set(pop_to_mark());
    case 's':  // SETITEM
      return set_items(pop_many(2));
    case 'u':  // SETITEMS
      return set_items(pop_to_mark());
    case 'c':  // GLOBAL
      return find_from_lines();
    case 0x93:  // STACK_GLOBAL
      return find_from_stack();
    case 'R':  // REDUCE
      return call(rules_.call);
    case 0x81:  // NEWOBJ
      return call(rules_.make);
    case 'b':  // BUILD
      return build();
    case 'Q':  // BINPERSID
      return load_persistent();
    case 'q':  // BINPUT
      return memoize(number(1));
    case 'r':  // LONG_BINPUT
      return memoize(number(4));
    case 0x94:  // MEMOIZE
      return memoize(memo_.size());
    case 'h':  // BINGET
      return recall(number(1));
    case 'j':  // LONG_BINGET
      return recall(number(4));
    default:
      fail("load: unsupported opcode {}", static_cast<int64_t>(code));
  }
}

// No collections of cycles until the end of the scope: what is being made is no garbage, and
// looking at it again and again would take most of the time. The GIL guards the counter.
class CollectorPause {
 public:
  CollectorPause() {
    static const int registered = pthread_atfork(nullptr, nullptr, resume_in_child);
    (void)registered;
    if (active_++ == 0) was_enabled_ = PyGC_Disable() != 0;
  }
  ~CollectorPause() {
    if (--active_ == 0 && was_enabled_) PyGC_Enable();
  }
  CollectorPause(const CollectorPause&) = delete;
  CollectorPause& operator=(const CollectorPause&) = delete;

 private:
  // The threads that paused it are not there.
  static void resume_in_child() {
    if (std::exchange(active_, 0) > 0 && was_enabled_) PyGC_Enable();
  }
  static inline int active_ = 0;
  static inline bool was_enabled_ = false;
};

// _unpickle(data, position, rules, persistent_load, memory, effort, encoding) -> (object, its end)
PyObject* unpickle(PyObject*, PyObject* args) {
  TD_PYTHON_TRY
  PyObject *data, *rules, *persistent_load;
  Py_ssize_t position;
  long long memory, effort;
  const char* encoding;
  if (!PyArg_ParseTuple(args, "SnOOLLs:_unpickle", &data, &position, &rules, &persistent_load,
                        &memory, &effort, &encoding))
    return nullptr;
  if (position < 0 || position > PyBytes_GET_SIZE(data))
    raise_python(PyExc_ValueError, "_unpickle: position {} outside the data", position);
  const Rules table(rules);
  const std::string_view text(PyBytes_AS_STRING(data), static_cast<size_t>(PyBytes_GET_SIZE(data)));
  Unpickler reader(text, static_cast<size_t>(position), table, persistent_load, {memory, effort},
                   encoding);
  const CollectorPause pause;
  const PyRef result = reader.load();
  return Py_BuildValue("On", result.get(), static_cast<Py_ssize_t>(reader.position()));
  TD_PYTHON_CATCH(nullptr)
}

// The least of what the machine, the cgroup and the process's own limit leave, in bytes.
int64_t available_memory() {
  int64_t least = CgroupMemory(own_cgroups(), "/sys/fs/cgroup").available(0);
  std::ifstream machine("/proc/meminfo");
  int64_t kilobytes;
  for (std::string name, unit; machine >> name >> kilobytes && std::getline(machine, unit);)
    if (name == "MemAvailable:") least = std::min(least, kilobytes << 10);
  rlimit limit;
  int64_t pages;
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      std::ifstream("/proc/self/statm") >> pages)
    least = std::min(least, static_cast<int64_t>(limit.rlim_cur) - pages * getpagesize());
  return std::max<int64_t>(least, 0);
}
PyObject* get_available_memory(PyObject*, PyObject*) {
  TD_PYTHON_TRY
  return PyLong_FromLongLong(available_memory());
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_available_memory", get_available_memory, METH_NOARGS, nullptr},
    {"_unpickle", unpickle, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_unpickler(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
