// Parsing of Python calls: table-driven, for METH_FASTCALL | METH_KEYWORDS functions with
// overloads.
//
// Each Python name has a static table: its overloads in order of preference, each a list of Params.
// A binding is
//
//   static Param kAddParams[] = {{"self", Kind::kTensor}, {"other", Kind::kTensorOrNumber},
//                                {"alpha", Kind::kScalar, "1", Param::kKeywordOnly},
//                                {"out", Kind::kTensor, "None", Param::kKeywordOnly |
//                                Param::kNone}};
//   static const Signature kAddSignatures[] = {{kAddParams}};
//   static const Function kAdd = {"add", "torch.add", kAddSignatures, 1, /*method=*/false};
//
//   PyObject* py_add(PyObject* self, PyObject* const* args, Py_ssize_t nargs, PyObject* kwnames) {
//     TD_PYTHON_TRY
//     Arguments a(kAdd, self, args, nargs, kwnames);
//     if (a.overridden()) return a.call_override();
//     auto&& x = a.tensor(0); auto&& y = a.tensor_or_number(1); auto&& alpha = a.scalar(2,
//     Scalar(1)); return wrap(unlocked(a, [&] { return taeda::add(x, y, alpha); }));
//     TD_PYTHON_CATCH(nullptr)
//   }
//
// The constructor chooses the first overload that accepts the types (`overload()` is its index) and
// borrows the argument objects; the getters convert. A getter's `fallback` is the value when the
// argument was not given. Nothing is allocated for positional tensors and numbers. Failures are
// Python exceptions with PyTorch's texts.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "python/common.h"
#include "python/objects.h"
#include "python/tensor_object.h"

namespace taeda::python {

enum class Kind : uint8_t {
  kTensor,
  kTensorOrNumber,  // a number becomes a 0-d tensor that promotes as a number
  kTensors,         // sequence of tensors
  kOptTensors,      // sequence of tensors and Nones
  kScalar,
  kInt,
  kInts,
  kFloat,
  kFloats,
  kBool,
  kStr,
  kWord,  // a string, as which PyTorch looks it up in Python: ValueError of anything else
  kDType,
  kDevice,
  kMemoryFormat,
  kLayout,
  kGenerator,
  kObject,
};

struct Param {
  enum Flags : uint8_t {
    kNone = 1,  // None is accepted: the "?" of the schema
    kKeywordOnly = 2,
    kOptional = 4,   // it has a default; set from the text
    kWithOut = 8,    // which does not stand for it where out= is given
    kWithNext = 16,  // ... where the parameter behind it is given
  };
  // "dim", or "dim=None" with its default as messages show it; "self/tensor" has a second name.
  const char* text;
  PyObject* interned = nullptr;  // the name, filled on first use
  Kind kind;
  uint8_t flags;
  uint8_t repeat;  // kInts, kFloats: the N of int[N]: one number stands for N; 0: only sequences
                   // (and varargs)

  constexpr Param(const char* text, Kind kind, int flags = 0, int repeat = 0)
      : text(text),
        kind(kind),
        flags(static_cast<uint8_t>(flags | (has_default(text) ? kOptional : 0))),
        repeat(static_cast<uint8_t>(repeat)) {}
  constexpr bool required() const { return !(flags & kOptional); }
  std::string_view name() const { return head().substr(0, head().find('/')); }
  std::string_view second_name() const {
    return head().substr(std::min(name().size() + 1, head().size()));
  }
  std::string_view default_text() const { return text + head().size() + 1; }  // unless required

 private:
  static constexpr bool has_default(std::string_view text) { return text.find('=') != text.npos; }
  std::string_view head() const {
    const std::string_view whole(text);
    return whole.substr(0, whole.find('='));
  }
};

struct Signature {
  Param* params;
  int count;
  int positional;               // how many may be given by position
  int required;                 // how many of those have no default
  bool needs_keywords = false;  // a keyword-only parameter has no default
  bool ends_in_ints = false;    // the last of those by position is a list of integers

  template <int N>
  constexpr Signature(Param (&params)[N]) : params(params), count(N), positional(0), required(0) {
    for (int i = 0; i < N; i++) {
      if (params[i].flags & Param::kKeywordOnly) {
        if (params[i].required()) needs_keywords = true;
        continue;
      }
      positional = i + 1;
      ends_in_ints = params[i].kind == Kind::kInts;
      if (params[i].required()) required = i + 1;
    }
  }
  constexpr Signature()
      : params(nullptr), count(0), positional(0), required(0) {}  // takes no arguments
};

struct Function {
  const char* name;       // "add"
  const char* qualified;  // "torch.add", "Tensor.add", "nn.functional.relu": what
                          // __torch_function__ receives
  const Signature* signatures;
  int count;
  bool method;  // `self` is params[0] of every signature, given by the call; else params[0] "self"
                // is called "input"
  int hidden = 0;  // so many overloads at the end are not told of in messages
  int shown() const { return count - hidden; }
};

// Lists converted from Python, usable where an IntSpan or a Span<const double> is expected.
struct IntList {
  DimVector values;
  operator IntSpan() const { return values; }
};
struct FloatList {
  std::vector<double> values;
  operator Span<const double>() const { return values; }
};

// The same or None. It is a class of its own since an optional span takes whatever converts to a
// span for one that is there.
template <class List, class Values>
class OptList {
 public:
  OptList() = default;
  OptList(List list) : list_(std::move(list)) {}
  operator std::optional<Values>() const {
    return list_ ? std::optional<Values>(Values(*list_)) : std::nullopt;
  }

 private:
  std::optional<List> list_;
};
using OptIntList = OptList<IntList, IntSpan>;
using OptFloatList = OptList<FloatList, Span<const double>>;

// A tensor that is borrowed from a Python object or made from a number.
class TensorArgument {
 public:
  explicit TensorArgument(const Tensor& borrowed) : borrowed_(&borrowed) {}
  explicit TensorArgument(const Scalar& number) : borrowed_(nullptr), made_(number) {}
  operator const Tensor&() const { return borrowed_ ? *borrowed_ : made_; }
  const Tensor& get() const { return *this; }

 private:
  const Tensor* borrowed_;
  Tensor made_;
};

// Conversions of single objects, for hand-written bindings. The `can_be_` forms look at types only.
bool can_be_scalar(PyObject* object);
Scalar to_scalar(PyObject* object);
bool can_be_int(PyObject* object);
int64_t to_int(PyObject* object);
bool can_be_float(PyObject* object);
double to_float(PyObject* object);
// A NumPy scalar (numpy.generic); never imports NumPy.
bool is_numpy_scalar(PyObject* object);
bool is_numpy_array(PyObject* object);
DimVector to_ints(PyObject* object);

class Arguments {
 public:
  static constexpr int kMaxParams = 24;

  Arguments(const Function& function, PyObject* self, PyObject* const* args, Py_ssize_t nargs,
            PyObject* kwnames)
      : function_(function), self_(self), args_(args), nargs_(nargs), kwnames_(kwnames) {
    if (torch_function_modes != 0) [[unlikely]]
      overridden_ = true;
    parse();
  }
  Arguments(const Arguments&) = delete;
  Arguments& operator=(const Arguments&) = delete;

  int overload() const { return overload_; }
  // Whether a mode or an argument's __torch_function__ must handle this call.
  bool overridden() const { return overridden_; }
  PyObject* call_override();

  // The argument's object (borrowed); null when it was not given.
  PyObject* object(int i) const { return values_[i]; }
  bool given(int i) const { return values_[i] != nullptr; }
  // Given, and not None.
  bool present(int i) const { return values_[i] && values_[i] != Py_None; }
  // A new reference to argument i: what in-place and out= calls return.
  PyObject* return_argument(int i) const { return new_ref(values_[i]); }

  const Tensor& tensor(int i) const { return tensor_of(values_[i]); }
  // Tensor?: undefined for None.
  const Tensor& opt_tensor(int i) const {
    return present(i) ? tensor_of(values_[i]) : undefined_tensor;
  }
  TensorArgument tensor_or_number(int i) const {
    if (is_tensor(values_[i])) return TensorArgument(tensor_of(values_[i]));
    return TensorArgument(to_scalar(values_[i]));
  }
  // Tensor[] and Tensor?[]
  TensorList tensors(int i) const;

  Scalar scalar(int i) const { return to_scalar(values_[i]); }
  Scalar scalar(int i, const Scalar& fallback) const {
    return given(i) ? to_scalar(values_[i]) : fallback;
  }
  OptScalar opt_scalar(int i, const OptScalar& fallback = {}) const {
    return given(i) ? present(i) ? OptScalar(to_scalar(values_[i])) : OptScalar() : fallback;
  }
  int64_t integer(int i) const { return to_int(values_[i]); }
  int64_t integer(int i, int64_t fallback) const {
    return given(i) ? to_int(values_[i]) : fallback;
  }
  OptInt opt_integer(int i, OptInt fallback = {}) const {
    return given(i) ? present(i) ? OptInt(to_int(values_[i])) : OptInt() : fallback;
  }
  IntList ints(int i, IntSpan fallback = {}) const {  // None stands for an empty default
    return present(i) ? to_int_list(i) : IntList{fallback};
  }
  OptIntList opt_ints(int i, OptInts fallback = {}) const {
    if (present(i)) return to_int_list(i);
    return !given(i) && fallback ? OptIntList(IntList{*fallback}) : OptIntList();
  }
  double real(int i) const { return to_float(values_[i]); }
  double real(int i, double fallback) const { return given(i) ? to_float(values_[i]) : fallback; }
  OptDouble opt_real(int i, OptDouble fallback = {}) const {
    return given(i) ? present(i) ? OptDouble(to_float(values_[i])) : OptDouble() : fallback;
  }
  FloatList reals(int i) const { return to_float_list(i); }
  OptFloatList opt_reals(int i) const { return present(i) ? to_float_list(i) : OptFloatList(); }
  bool boolean(int i) const { return to_bool(values_[i]); }
  bool boolean(int i, bool fallback) const { return given(i) ? to_bool(values_[i]) : fallback; }
  OptBool opt_boolean(int i, OptBool fallback = {}) const {
    return given(i) ? present(i) ? OptBool(to_bool(values_[i])) : OptBool() : fallback;
  }
  std::string_view text(int i) const { return utf8(values_[i]); }
  std::string_view text(int i, std::string_view fallback) const {
    return given(i) ? utf8(values_[i]) : fallback;
  }
  std::optional<std::string_view> opt_text(int i,
                                           std::optional<std::string_view> fallback = {}) const {
    if (!given(i)) return fallback;
    return present(i) ? std::optional(utf8(values_[i])) : std::nullopt;
  }
  DType dtype(int i) const { return to_dtype(values_[i]); }
  DType dtype(int i, DType fallback) const { return present(i) ? to_dtype(values_[i]) : fallback; }
  OptDType opt_dtype(int i) const {
    return present(i) ? OptDType(to_dtype(values_[i])) : OptDType();
  }
  Device device(int i) const { return to_device(values_[i]); }
  OptDevice opt_device(int i) const {
    return present(i) ? OptDevice(to_device(values_[i])) : OptDevice();
  }
  MemoryFormat memory_format(int i) const {
    return reinterpret_cast<MemoryFormatObject*>(values_[i])->value;
  }
  MemoryFormat memory_format(int i, MemoryFormat fallback) const {
    return present(i) ? memory_format(i) : fallback;
  }
  OptMemoryFormat opt_memory_format(int i, OptMemoryFormat fallback = {}) const {
    return given(i) ? present(i) ? OptMemoryFormat(memory_format(i)) : OptMemoryFormat() : fallback;
  }
  Generator* generator(int i) const {
    return present(i) ? reinterpret_cast<GeneratorObject*>(values_[i])->generator : nullptr;
  }

  // TypeError when all of the first `count` arguments are numbers.
  void require_a_tensor(int count) {
    for (int i = 0; i < count; i++)
      if (is_tensor(values_[i])) return;
    fail_combination();
  }

  // Whether a tensor is large enough for releasing the GIL to pay.
  bool large() const { return large_; }

  // > 0 while a TorchFunctionMode is active on this thread.
  static constinit thread_local int torch_function_modes __attribute__((tls_model("initial-exec")));

 private:
  enum class Match : uint8_t { kNo, kYes };

  void parse() {
    const Signature& first = function_.signatures[0];
    if (!kwnames_ && fits_positionally(first) && (!tensor_as_number_ || function_.count == 1))
        [[likely]]
      return;
    parse_slowly();
  }
  // All arguments by position, none beyond the signature's: the hot path.
  bool fits_positionally(const Signature& signature) {
    const int shift = function_.method;
    const int given = static_cast<int>(nargs_) + shift;
    if (given < signature.required || signature.needs_keywords) return false;
    if (nargs_ == 0) return fits_without_arguments(signature);
    if (shift) {
      values_[0] = self_;
      if (is_plain_tensor(self_)) [[likely]]
        note_size(self_);
      else if (!accepts(signature.params[0], self_))
        return false;
    }
    int matched = given;
    if (takes_varargs(signature) && are_exact_ints() &&
        (nargs_ > 1 || signature.params[shift].repeat == 0)) {
      values_[shift] = args_[0];
      varargs_ = shift;
      matched = shift + 1;
    } else {
      if (given > signature.positional) return false;
      for (int i = shift; i < given; i++) {
        PyObject* value = args_[i - shift];
        const Param& param = signature.params[i];
        if (is_plain_tensor(value) && param.kind <= Kind::kTensorOrNumber)
          note_size(value);
        else if (!accepts(param, value))
          return false;
        values_[i] = value;
      }
    }
    for (int i = matched; i < signature.count; i++) values_[i] = nullptr;
    return true;
  }
  // x.item(): there is nothing to look at but self.
  [[gnu::noinline]] bool fits_without_arguments(const Signature& signature) {
    int i = 0;
    if (function_.method) {
      values_[i++] = self_;
      if (is_plain_tensor(self_)) [[likely]]
        note_size(self_);
      else if (!accepts(signature.params[0], self_))
        return false;
    }
    for (; i < signature.count; i++) values_[i] = nullptr;
    return true;
  }
  // Whether x.view(2, 3) may be written for x.view((2, 3)): the only positional parameter is an
  // integer list.
  bool takes_varargs(const Signature& signature) const {
    const int shift = function_.method;
    return signature.ends_in_ints && signature.positional - shift == 1;
  }
  bool are_exact_ints() const {
    for (Py_ssize_t i = 0; i < nargs_; i++)
      if (!PyLong_CheckExact(args_[i])) return false;
    return true;
  }
  // Of a tensor among the arguments, whichever parameter takes it in the end.
  void note_size(PyObject* tensor) { large_ |= tensor_of(tensor).numel() >= kLargeElements; }
  bool accepts(const Param& param, PyObject* value);
  bool accepts_slowly(const Param& param, PyObject* value);
  bool accepts_number(const Param& param, PyObject* value);
  bool overrides(PyObject* value);
  bool stands_for_value(PyObject* value);
  bool accepts_elements(const Param& param, PyObject* sequence);
  void parse_slowly();
  bool match(const Signature& signature, bool raise);
  [[noreturn]] void fail_combination();
  std::string given_text() const;
  IntList to_int_list(int i) const;
  FloatList to_float_list(int i) const;
  static bool to_bool(PyObject* object) {
    return object == Py_True ? true : object == Py_False ? false : PyObject_IsTrue(object) > 0;
  }

  static const Tensor undefined_tensor;

  const Function& function_;
  PyObject* self_;
  PyObject* const* args_;
  Py_ssize_t nargs_;
  PyObject* kwnames_;
  int overload_ = 0;
  int varargs_ = -1;  // the parameter that takes all positional arguments as one list: x.view(2, 3)
  bool overridden_ = false;
  bool tensor_as_number_ = false;  // the overload takes a 0-d tensor's value for a number
  bool large_ = false;
  PyObject* values_[kMaxParams];
};

// Runs `call` and returns its result, without the GIL when the arguments are large.
template <class F>
auto unlocked(const Arguments& arguments, F&& call) {
  return unlocked_if(arguments.large(), call);
}

}  // namespace taeda::python
