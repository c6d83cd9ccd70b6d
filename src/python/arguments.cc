#include "python/arguments.h"

#include <algorithm>
#include <cstring>

#include "python/fix_note.h"
#include "python/suggestion.h"
#include "python/torch_function.h"

namespace taeda::python {

const Tensor Arguments::undefined_tensor;
constinit thread_local int Arguments::torch_function_modes = 0;

// --- single objects ---

namespace {

// numpy.NAME when NumPy is loaded, else null. Borrowed from a reference that is kept for good.
PyObject* numpy_type(const char* name) {
  PyObject* numpy = PyDict_GetItemString(PyImport_GetModuleDict(), "numpy");
  if (!numpy) return nullptr;
  PyRef type = PyRef::adopt(PyObject_GetAttrString(numpy, name));
  if (!type) PyErr_Clear();
  return type && PyType_Check(type.get()) ? type.release() : nullptr;
}

bool looks_like_numpy(PyObject* object) {
  return std::strncmp(Py_TYPE(object)->tp_name, "numpy.", 6) == 0;
}

bool is_numpy(PyObject* object, const char* name, PyObject*& cache) {
  if (!looks_like_numpy(object) && !PyType_HasFeature(Py_TYPE(object), Py_TPFLAGS_HEAPTYPE))
    return false;
  if (!cache) cache = numpy_type(name);
  return cache && PyObject_TypeCheck(object, reinterpret_cast<PyTypeObject*>(cache));
}

PyObject* numpy_generic = nullptr;
PyObject* numpy_bool = nullptr;
PyObject* numpy_integer = nullptr;
PyObject* numpy_floating = nullptr;
PyObject* numpy_complex = nullptr;
PyObject* numpy_ndarray = nullptr;

bool is_numpy_integer(PyObject* object) { return is_numpy(object, "integer", numpy_integer); }
bool is_numpy_bool(PyObject* object) { return is_numpy(object, "bool_", numpy_bool); }

// A tensor of one element without dimensions, whose value may stand for a Python number.
bool is_plain_0d_tensor(PyObject* object) {
  if (!is_tensor(object)) return false;
  const Tensor& t = tensor_of(object);
  return t.dim() == 0 && !t.requires_grad() && !t.impl()->keys.has(Key::kForward);
}

int64_t int_from_long(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (overflow) raise_python(PyExc_ValueError, "Overflow when unpacking long long");
  if (value == -1 && PyErr_Occurred()) throw PythonError();
  return value;
}

Scalar scalar_from_long(PyObject* object) {
  int overflow = 0;
  const long long value = PyLong_AsLongLongAndOverflow(object, &overflow);
  if (!overflow) {
    if (value == -1 && PyErr_Occurred()) throw PythonError();
    return Scalar(static_cast<int64_t>(value));
  }
  // From 2^63 on there is uint64; larger numbers have no dtype.
  if (overflow > 0) {
    const unsigned long long large = PyLong_AsUnsignedLongLong(object);
    if (!(large == static_cast<unsigned long long>(-1) && PyErr_Occurred())) return Scalar(large);
    PyErr_Clear();
  }
  raise_python(PyExc_OverflowError, "int too big to convert");
}

// An object of a foreign type with __index__: asked for by calling it, which an array may refuse.
bool converts_to_int(PyObject* object) {
  if (!PyIndex_Check(object)) return false;
  const PyRef kept = PyRef::share(object);  // __index__ may change the list it came from
  if (PyRef::adopt(PyNumber_Index(object))) return true;
  PyErr_Clear();
  return false;
}

}  // namespace

bool is_numpy_scalar(PyObject* object) { return is_numpy(object, "generic", numpy_generic); }
bool is_numpy_array(PyObject* object) { return is_numpy(object, "ndarray", numpy_ndarray); }

bool can_be_scalar(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_Check(object) || PyComplex_Check(object)) return true;
  if (is_tensor(object)) return is_plain_0d_tensor(object);
  return is_numpy_scalar(object) && (is_numpy_bool(object) || is_numpy_integer(object) ||
                                     is_numpy(object, "floating", numpy_floating) ||
                                     is_numpy(object, "complexfloating", numpy_complex));
}

Scalar to_scalar(PyObject* object) {
  if (PyFloat_CheckExact(object)) return Scalar(PyFloat_AS_DOUBLE(object));
  if (PyBool_Check(object)) return Scalar(object == Py_True);
  if (PyLong_Check(object)) return scalar_from_long(object);
  if (PyFloat_Check(object)) return Scalar(PyFloat_AS_DOUBLE(object));
  if (PyComplex_Check(object))
    return Scalar(
        std::complex<double>(PyComplex_RealAsDouble(object), PyComplex_ImagAsDouble(object)));
  if (is_tensor(object)) return tensor_of(object).item_scalar();
  if (is_numpy_bool(object)) return Scalar(PyObject_IsTrue(object) > 0);
  if (is_numpy_integer(object)) return scalar_from_long(PyRef::check(PyNumber_Index(object)).get());
  if (is_numpy(object, "complexfloating", numpy_complex)) {
    const Py_complex value = PyComplex_AsCComplex(object);
    if (value.real == -1.0 && PyErr_Occurred()) throw PythonError();
    return Scalar(std::complex<double>(value.real, value.imag));
  }
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred()) throw PythonError();
  return Scalar(value);
}

bool can_be_int(PyObject* object) {
  if (PyLong_Check(object)) return !PyBool_Check(object);
  if (is_tensor(object))
    return is_plain_0d_tensor(object) && is_integral(tensor_of(object).dtype());
  return is_numpy_integer(object) || converts_to_int(object);
}

int64_t to_int(PyObject* object) {
  if (PyLong_Check(object)) return int_from_long(object);
  if (is_tensor(object)) return tensor_of(object).item_scalar().to_int();
  if (is_numpy_bool(object)) {
    const int truth = PyObject_IsTrue(object);
    check_status(truth);
    return truth;
  }
  return int_from_long(PyRef::check(PyNumber_Index(object)).get());
}

bool can_be_float(PyObject* object) {
  if (PyFloat_Check(object) || PyLong_Check(object)) return true;
  if (is_tensor(object))
    return is_plain_0d_tensor(object) && !is_complex(tensor_of(object).dtype());
  return is_numpy_scalar(object) && !is_numpy(object, "complexfloating", numpy_complex) &&
         PyNumber_Check(object);
}

double to_float(PyObject* object) {
  if (PyFloat_Check(object)) return PyFloat_AS_DOUBLE(object);
  if (is_tensor(object)) return tensor_of(object).item_scalar().to_double();
  const double value = PyFloat_AsDouble(object);
  if (value == -1.0 && PyErr_Occurred()) throw PythonError();
  return value;
}

DimVector to_ints(PyObject* object) {
  PyRef items = PyRef::check(PySequence_Tuple(object));  // to_int may change a list
  const Py_ssize_t size = PyTuple_GET_SIZE(items.get());
  DimVector values(static_cast<size_t>(size));
  for (Py_ssize_t i = 0; i < size; i++)
    values[static_cast<size_t>(i)] = to_int(PyTuple_GET_ITEM(items.get(), i));
  return values;
}

// --- which overload ---

namespace {

const char* kind_text(const Param& param) {
  switch (param.kind) {
    case Kind::kTensor:
    case Kind::kTensorOrNumber:
      return "Tensor";
    case Kind::kTensors:
    case Kind::kOptTensors:
      return "tuple of Tensors";
    case Kind::kScalar:
      return "Number";
    case Kind::kInt:
      return "int";
    case Kind::kInts:
      return "tuple of ints";
    case Kind::kFloat:
      return "float";
    case Kind::kFloats:
      return "tuple of floats";
    case Kind::kBool:
      return "bool";
    case Kind::kStr:
    case Kind::kWord:
      return "str";
    case Kind::kDType:
      return "torch.dtype";
    case Kind::kDevice:
      return "torch.device";
    case Kind::kMemoryFormat:
      return "torch.memory_format";
    case Kind::kLayout:
      return "torch.layout";
    case Kind::kGenerator:
      return "torch.Generator";
    case Kind::kObject:
      return "object";
  }
  return "object";
}

// What is neither a tensor nor made of numbers.
bool accepts_option(Kind kind, PyObject* value) {
  switch (kind) {
    case Kind::kStr:
    case Kind::kWord:
      return PyUnicode_Check(value);
    case Kind::kDType:
      return can_be_dtype(value);
    case Kind::kDevice:
      return can_be_device(value);
    case Kind::kMemoryFormat:
      return is_memory_format(value);
    case Kind::kLayout:
      return is_layout(value);
    case Kind::kGenerator:
      return is_generator(value);
    default:
      return true;
  }
}

bool is_sequence(PyObject* object) { return PyTuple_Check(object) || PyList_Check(object); }

// What programs call a parameter.
std::string_view shown_name(const Function& function, const Param& param) {
  return !function.method && param.name() == "self" ? "input" : param.name();
}

// The other names of a parameter: NumPy's, and PyTorch's own where its Python functions rename one.
bool is_alias(const Param& param, std::string_view name, PyObject* keyword) {
  const auto is = [keyword](const char* text) {
    return PyUnicode_CompareWithASCIIString(keyword, text) == 0;
  };
  if (!param.second_name().empty() && is(std::string(param.second_name()).c_str())) return true;
  if (name == "dim") return is("axis");
  if (name == "keepdim") return is("keepdims");
  if (name == "input") return is("x") || is("a") || is("x1");
  return name == "other" && is("x2");
}

}  // namespace

bool Arguments::overrides(PyObject* value) {
  if (!overrides_torch_function(value)) return false;
  overridden_ = true;
  return true;
}

// Objects that are traced take the place of anything but a tensor: a class with a
// __torch_function__ that is no Tensor's.
bool Arguments::stands_for_value(PyObject* value) { return !is_tensor(value) && overrides(value); }

bool Arguments::accepts(const Param& param, PyObject* value) {
  switch (param.kind) {
    case Kind::kTensorOrNumber:
      if (PyFloat_CheckExact(value) || PyLong_CheckExact(value)) return true;
      [[fallthrough]];
    case Kind::kTensor:
      if (!is_plain_tensor(value)) break;
      note_size(value);
      return true;
    case Kind::kScalar:
    case Kind::kFloat:
      if (PyFloat_CheckExact(value) || PyLong_CheckExact(value)) return true;
      break;
    case Kind::kInt:
      if (PyLong_CheckExact(value)) return true;
      break;
    case Kind::kBool:
      if (PyBool_Check(value)) return true;
      break;
    default:
      break;
  }
  return accepts_slowly(param, value);
}

bool Arguments::accepts_slowly(const Param& param, PyObject* value) {
  if (value == Py_None) return param.flags & Param::kNone || param.kind == Kind::kObject;
  switch (param.kind) {
    case Kind::kTensor:
    case Kind::kTensorOrNumber:
      if (is_tensor(value)) {
        note_size(value);
        overrides(value);
        return true;
      }
      if (param.kind == Kind::kTensorOrNumber && can_be_scalar(value)) return true;
      return overrides(value);
    case Kind::kTensors:
    case Kind::kOptTensors:
      return accepts_elements(param, value) || overrides(value);
    case Kind::kScalar:
    case Kind::kInt:
    case Kind::kInts:
    case Kind::kFloats:
    case Kind::kFloat:
    case Kind::kBool:
      return accepts_number(param, value) || stands_for_value(value);
    default:
      return accepts_option(param.kind, value) || stands_for_value(value);
  }
}

bool Arguments::accepts_number(const Param& param, PyObject* value) {
  switch (param.kind) {
    case Kind::kScalar:
      if (is_tensor(value)) tensor_as_number_ = true;
      return can_be_scalar(value);
    case Kind::kInt:
      return can_be_int(value);
    case Kind::kInts:
    case Kind::kFloats: {
      const auto fits = param.kind == Kind::kInts ? can_be_int : can_be_float;
      if (!is_sequence(value)) return param.repeat > 0 && fits(value);
      const Py_ssize_t size = PySequence_Fast_GET_SIZE(value);
      for (Py_ssize_t i = 0; i < size; i++) {
        if (stands_for_value(PySequence_Fast_GET_ITEM(value, i))) return true;
      }
      if (size == 0) return true;
      PyObject* first = PySequence_Fast_GET_ITEM(value, 0);
      return fits(first) || (param.kind == Kind::kFloats && PyBool_Check(first));
    }
    case Kind::kFloat:
      // One number a sample of vmap: a float where no overload takes a tensor.
      if (is_tensor(value) && tensor_of(value).impl()->keys.has(Key::kBatched))
        tensor_as_number_ = true;
      return can_be_float(value);
    default:
      return PyBool_Check(value) || is_numpy_bool(value);
  }
}

bool Arguments::accepts_elements(const Param& param, PyObject* sequence) {
  if (!is_sequence(sequence)) return false;
  PyObject** items = PySequence_Fast_ITEMS(sequence);
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence);
  for (Py_ssize_t i = 0; i < size; i++) {
    if (items[i] == Py_None && param.kind == Kind::kOptTensors) continue;
    if (is_tensor(items[i])) note_size(items[i]);
    if (is_plain_tensor(items[i])) continue;
    if (!overrides(items[i]) && !is_tensor(items[i])) return false;
  }
  return true;
}

void Arguments::parse_slowly() {
  const auto fits = [this](int overload) {
    const Signature& signature = function_.signatures[overload];
    overload_ = overload;
    varargs_ = -1;
    tensor_as_number_ = false;
    return (!kwnames_ && fits_positionally(signature)) || match(signature, /*raise=*/false);
  };
  // An overload that takes a tensor as a tensor wins over one that takes its value for a number.
  int second_choice = -1;
  for (int i = 0; i < function_.count; i++) {
    if (!fits(i)) continue;
    if (!tensor_as_number_) return;
    if (second_choice < 0) second_choice = i;
  }
  if (second_choice >= 0 && fits(second_choice)) return;
  // A specific complaint where the number of arguments leaves one overload, else the list of all.
  const int keywords = kwnames_ ? static_cast<int>(PyTuple_GET_SIZE(kwnames_)) : 0;
  const int given = static_cast<int>(nargs_) + keywords + function_.method;
  const Signature* plausible = nullptr;
  int count = 0;
  for (int i = 0; i < function_.shown(); i++) {
    const Signature& signature = function_.signatures[i];
    if (given < signature.required || given > signature.count) continue;
    plausible = &signature;
    count++;
  }
  if (function_.shown() == 1) match(function_.signatures[0], /*raise=*/true);
  if (count == 1) match(*plausible, /*raise=*/true);
  fail_combination();
}

namespace {

// How many parameters the overload has: a method has no `out`, which is a function's last.
int parameter_count(const Function& function, const Signature& signature) {
  const int count = signature.count;
  const bool out = function.method && count > 0 && signature.params[count - 1].name() == "out";
  return count - out;
}

// The parameter of that name, its index; -1 where there is none. Those from `likely` on come first:
// most calls give keywords in the order of the parameters.
int find_keyword(const Function& function, const Signature& signature, PyObject* keyword,
                 int likely = 0) {
  const int first = function.method;
  for (int i = std::max(first, likely); i + 1 < signature.count; i++)
    if (signature.params[i].interned == keyword) return i;
  const int count = parameter_count(function, signature);
  for (int i = first; i < count; i++) {
    Param& param = signature.params[i];
    if (!param.interned)
      param.interned = interned(std::string(shown_name(function, param)).c_str());
    if (param.interned == keyword) return i;
  }
  for (int i = first; i < count; i++) {
    const std::string name(shown_name(function, signature.params[i]));
    if (PyUnicode_CompareWithASCIIString(keyword, name.c_str()) == 0 ||
        is_alias(signature.params[i], name, keyword))
      return i;
  }
  return -1;
}

// The names of the parameters of all overloads.
std::vector<std::string_view> keywords_of(const Function& function) {
  std::vector<std::string_view> known;
  for (int s = 0; s < function.shown(); s++) {
    const Signature& signature = function.signatures[s];
    for (int i = function.method; i < parameter_count(function, signature); i++)
      known.emplace_back(shown_name(function, signature.params[i]));
  }
  return known;
}

// ". Did you mean 'dim'?" for a keyword that no overload has.
std::string keyword_suggestion(const Function& function, PyObject* keyword) {
  return did_you_mean(utf8(keyword), keywords_of(function));
}

[[noreturn]] void fail_unexpected(const Function& function, PyObject* keyword) {
  set_error_with_fix(
      PyExc_TypeError,
      taeda::format("{}() got an unexpected keyword argument '{}'{}\nFix: {}", function.name,
                    utf8(keyword), keyword_suggestion(function, keyword),
                    keywords_text(keywords_of(function))));
  throw PythonError();
}

// "No overload takes 'dims'. Did you mean 'dim'?" for the keywords that none has.
std::string unknown_keywords_text(const Function& function, PyObject* names) {
  std::string text;
  for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
    PyObject* keyword = PyTuple_GET_ITEM(names, k);
    const auto has = [&](const Signature& s) { return find_keyword(function, s, keyword) >= 0; };
    if (std::any_of(function.signatures, function.signatures + function.count, has)) continue;
    const std::string meant = keyword_suggestion(function, keyword);
    text += taeda::format("{}No overload takes '{}'{}", text.empty() ? "" : "\n", utf8(keyword),
                          meant.empty() ? "." : meant);
  }
  return text;
}

[[noreturn]] void fail_number(const Function& function, const Signature& signature, int given) {
  const int most = signature.positional, least = signature.required;
  if (least == most)
    raise_python(PyExc_TypeError, "{}() takes {} positional argument{} but {} were given",
                 function.name, most, most == 1 ? "" : "s", given);
  raise_python(PyExc_TypeError, "{}() takes from {} to {} positional arguments but {} were given",
               function.name, least, most, given);
}

// Whether a parameter without a value makes the call fail: it has no default, or none beside out=,
// the last parameter, or beside the next one.
bool is_missing(const Signature& signature, PyObject* const* values, const Param& param) {
  return param.required() || (param.flags & Param::kWithOut && values[signature.count - 1]) ||
         (param.flags & Param::kWithNext && values[&param - signature.params + 1]);
}

// `unexpected`: a keyword that the function lacks, or null; the missing argument may have been
// meant.
[[noreturn]] void fail_missing(const Function& function, const Signature& signature,
                               PyObject* const* values, PyObject* unexpected) {
  std::string missing;
  int count = 0;
  for (int i = 0; i < signature.count; i++) {
    if (values[i] || !is_missing(signature, values, signature.params[i])) continue;
    missing +=
        taeda::format("{}\"{}\"", count++ ? ", " : "", shown_name(function, signature.params[i]));
  }
  std::string fix;
  if (unexpected)
    fix = taeda::format("\nFix: '{}' is no keyword of {}(){}", utf8(unexpected), function.name,
                        keyword_suggestion(function, unexpected));
  set_error_with_fix(PyExc_TypeError,
                     taeda::format("{}() missing {} required positional arguments: {}{}",
                                   function.name, count, missing, fix));
  throw PythonError();
}

// `index` is the argument's among those of the call.
[[noreturn]] void fail_type(const Function& function, const Param& param, int index,
                            bool by_position, PyObject* value) {
  const bool optional = param.kind == Kind::kOptTensors;
  if ((param.kind == Kind::kTensors || optional) && is_sequence(value)) {
    for (Py_ssize_t j = 0; j < PySequence_Fast_GET_SIZE(value); j++) {
      PyObject* item = PySequence_Fast_GET_ITEM(value, j);
      if (is_tensor(item) || (item == Py_None && optional)) continue;
      raise_python(PyExc_TypeError,
                   "{}(): expected Tensor as element {} in argument {}, but got {}", function.name,
                   static_cast<int64_t>(j), index, type_name(item));
    }
  }
  if (param.kind == Kind::kWord)
    raise_python(PyExc_ValueError, "{} is not a valid value for {}",
                 utf8(PyRef::check(PyObject_Str(value)).get()), param.name());
  const std::string position = by_position ? taeda::format(" (position {})", index + 1) : "";
  const std::string text =
      taeda::format("{}(): argument '{}'{} must be {}, not {}", function.name,
                    shown_name(function, param), position, kind_text(param), type_name(value));
  const bool numbers = PyNumber_Check(value) || is_sequence(value);
  const bool fits = numbers && param.kind == Kind::kTensor;
  const char* fix =
      fits ? "\nFix: torch.as_tensor makes a Tensor of numbers, lists and arrays" : "";
  set_error_with_fix(PyExc_TypeError, text + fix);
  throw PythonError();
}

}  // namespace

bool Arguments::match(const Signature& signature, bool raise) {
  const int shift = function_.method;
  const int nargs = static_cast<int>(nargs_) + shift;
  varargs_ = -1;
  int by_position = nargs;
  const auto stands = [this](PyObject* value) { return stands_for_value(value); };
  if (takes_varargs(signature) && nargs_ > 0 &&
      (std::any_of(args_, args_ + nargs_, stands) || can_be_int(args_[0])) &&
      (nargs_ > 1 || signature.params[shift].repeat == 0)) {
    varargs_ = shift;
    by_position = shift + 1;
  } else if (nargs > signature.positional) {
    if (!raise) return false;
    fail_number(function_, signature, nargs);
  }
  for (int i = 0; i < signature.count; i++)
    values_[i] = i >= by_position ? nullptr : i < shift ? self_ : args_[i - shift];

  PyObject* unexpected = nullptr;
  PyObject* repeated = nullptr;
  const Py_ssize_t keywords = kwnames_ ? PyTuple_GET_SIZE(kwnames_) : 0;
  int found = by_position - 1;
  for (Py_ssize_t k = 0; k < keywords; k++) {
    PyObject* keyword = PyTuple_GET_ITEM(kwnames_, k);
    found = find_keyword(function_, signature, keyword, found + 1);
    if (found >= 0 && !values_[found]) {
      values_[found] = args_[nargs_ + k];
    } else {
      PyObject*& mistake = found < 0 ? unexpected : repeated;
      if (!mistake) mistake = keyword;
    }
  }

  for (int i = 0; i < signature.count; i++) {
    const Param& param = signature.params[i];
    if (values_[i] ? i == varargs_ || accepts(param, values_[i])
                   : !is_missing(signature, values_, param))
      continue;
    if (!raise) return false;
    if (!values_[i]) fail_missing(function_, signature, values_, unexpected);
    fail_type(function_, param, i - shift, i < by_position, values_[i]);
  }
  if (!unexpected && !repeated) return true;
  if (!raise) return false;
  if (unexpected) fail_unexpected(function_, unexpected);
  raise_python(PyExc_TypeError, "{}() got multiple values for argument '{}'", function_.name,
               utf8(repeated));
}

std::string Arguments::given_text() const {
  std::string text;
  for (Py_ssize_t i = 0; i < nargs_; i++) text += std::string(i ? ", " : "") + type_name(args_[i]);
  const Py_ssize_t keywords = kwnames_ ? PyTuple_GET_SIZE(kwnames_) : 0;
  for (Py_ssize_t k = 0; k < keywords; k++) {
    if (!text.empty()) text += ", ";
    text += std::string(utf8(PyTuple_GET_ITEM(kwnames_, k))) + "=" + type_name(args_[nargs_ + k]);
  }
  return text;
}

void Arguments::fail_combination() {
  std::string expected;
  const std::string unknown = unknown_keywords_text(function_, kwnames_);
  for (int s = 0; s < function_.shown(); s++) {
    const Signature& signature = function_.signatures[s];
    std::string text;
    bool keyword_only = false;
    for (int i = function_.method; i < parameter_count(function_, signature); i++) {
      const Param& param = signature.params[i];
      if (!text.empty()) text += ", ";
      if (param.flags & Param::kKeywordOnly && !std::exchange(keyword_only, true)) text += "*, ";
      text += taeda::format("{} {}", kind_text(param), shown_name(function_, param));
      if (!param.required()) text += taeda::format(" = {}", param.default_text());
    }
    expected += function_.shown() == 1 ? "(" + text + ")" : "\n * (" + text + ")";
  }
  raise_python(PyExc_TypeError,
               "{}() received an invalid combination of arguments - got ({}), but expected {}{}{}",
               function_.name, given_text(), function_.shown() == 1 ? "" : "one of:",
               function_.shown() == 1 ? expected : expected + "\n", unknown);
}

// --- lists ---

TensorList Arguments::tensors(int i) const {
  TensorList list;
  if (!present(i)) return list;
  PyObject* sequence = values_[i];
  const Py_ssize_t size = PySequence_Fast_GET_SIZE(sequence);
  list.reserve(static_cast<size_t>(size));
  for (Py_ssize_t j = 0; j < size; j++) {
    PyObject* item = PySequence_Fast_GET_ITEM(sequence, j);
    if (item == Py_None)
      list.emplace_back();
    else if (is_tensor(item))
      list.push_back(tensor_of(item));
    else  // Python code of another argument has changed the list since it was looked at
      raise_python(PyExc_TypeError,
                   "{}(): expected Tensor as element {} in argument {}, but got {}", function_.name,
                   static_cast<int64_t>(j), i - function_.method, type_name(item));
  }
  return list;
}

IntList Arguments::to_int_list(int i) const {
  PyObject* value = values_[i];
  const Param& param = function_.signatures[overload_].params[i];
  PyObject* const* items = &value;
  Py_ssize_t size = 1;
  PyRef copy;
  if (i == varargs_) {
    items = args_;
    size = nargs_;
  } else if (is_sequence(value)) {
    size = PySequence_Fast_GET_SIZE(value);
    const auto runs_python = [](PyObject* item) { return !PyLong_CheckExact(item); };
    items = PySequence_Fast_ITEMS(value);
    if (PyList_Check(value) && std::any_of(items, items + size, runs_python)) {
      copy = PyRef::check(PyList_AsTuple(value));  // __index__ may change the list
      items = PySequence_Fast_ITEMS(copy.get());
    }
  } else {
    return {DimVector(param.repeat, to_int(value))};
  }
  DimVector values(static_cast<size_t>(size));
  for (Py_ssize_t j = 0; j < size; j++) {
    PyObject* item = items[j];
    if (PyLong_CheckExact(item)) {
      int overflow = 0;
      values[static_cast<size_t>(j)] = PyLong_AsLongLongAndOverflow(item, &overflow);
      if (!overflow) continue;
      raise_python(PyExc_TypeError,
                   "{}(): argument '{}' failed to unpack the object at pos {} with error "
                   "\"Overflow when unpacking "
                   "long long\"",
                   function_.name, shown_name(function_, param), static_cast<int64_t>(j + 1));
    }
    if (!can_be_int(item) && !PyBool_Check(item)) {
      raise_python(PyExc_TypeError,
                   "{}(): argument '{}' failed to unpack the object at pos {} with error \"type "
                   "must be tuple of "
                   "ints,but got {}\"",
                   function_.name, shown_name(function_, param), static_cast<int64_t>(j + 1),
                   type_name(item));
    }
    values[static_cast<size_t>(j)] = to_int(item);
  }
  return {std::move(values)};
}

FloatList Arguments::to_float_list(int i) const {
  PyObject* value = values_[i];
  FloatList list;
  if (!value || value == Py_None) return list;
  const Param& param = function_.signatures[overload_].params[i];
  if (!is_sequence(value)) {
    list.values.assign(param.repeat, to_float(value));
    return list;
  }
  for (Py_ssize_t j = 0; j < PySequence_Fast_GET_SIZE(value); j++) {
    PyObject* item = PySequence_Fast_GET_ITEM(value, j);
    const PyRef kept = PyRef::share(item);  // __float__ may change the list
    if (!can_be_float(item)) {
      raise_python(PyExc_TypeError,
                   "{}(): argument '{}' failed to unpack the object at pos {} with error \"type "
                   "must be tuple of "
                   "floats,but got {}\"",
                   function_.name, shown_name(function_, param), static_cast<int64_t>(j + 1),
                   type_name(item));
    }
    list.values.push_back(to_float(item));
  }
  return list;
}

}  // namespace taeda::python
