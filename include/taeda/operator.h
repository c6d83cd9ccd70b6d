// Operators as data: what every operator of the table, and every one that a program registers, says
// of itself at run time, and how to call it without knowing its C++ signature.
//
//   const Operator* add = find_operator("aten::add", "Tensor");
//   assert(add->schema().arguments[2].name == "alpha");
//   Stack stack = {ones({2}), ones({2}), 2};       // the arguments, in the schema's order
//   add->call(stack);                              // now the results
//   assert(stack[0].tensor()[0].item<float>() == 3);
//
// The operators of the table lie in the library's constant data; an Operator object is made when
// one is first asked for, and lives as long as the process, as do those that a program registers.
// Everything here may be called from any thread.
#pragma once

#include <complex>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "taeda/keys.h"
#include "taeda/tensor.h"

namespace taeda {

// One argument or result of any type that a schema can name. A Scalar argument holds what it was
// given: bool, int, float or complex. An undefined tensor is None. Tensors are handles: a Value
// keeps what it holds alive, but for generators. Copying a Value copies its list or text; moving
// does not.
//
//   const Value three = 3, none = Value(), list = IntSpan({1, 2});
//   assert(three.integer() == 3 && three.real() == 3.0 && none.is_none());
//   assert(std::string(list.type_name()) == "int[]" && list.ints().size() == 2);
//   EXPECT_THROW(list.tensor(), Error);
class Value {
 public:
  using Ints = std::vector<int64_t>;
  using Floats = std::vector<double>;
  using Bools = std::vector<bool>;
  // Generators are borrowed for the time of the call.
  using Data = std::variant<std::monostate, Tensor, TensorList, bool, int64_t, double,
                            std::complex<double>, std::string, Ints, Floats, Bools, DType, Layout,
                            Device, MemoryFormat, Generator*>;

  Value() = default;  // None
  Value(Tensor tensor) {
    if (tensor.defined()) data_ = std::move(tensor);
  }
  Value(TensorList tensors) : data_(std::move(tensors)) {}
  // RuntimeError for integers from 2^63 on, which an int of a schema cannot be.
  Value(const Scalar& number);
  template <class T>
    requires std::is_arithmetic_v<T> Value(T value) {
      if constexpr (std::is_same_v<T, bool>)
        data_ = value;
      else if constexpr (std::is_integral_v<T>)
        data_ = static_cast<int64_t>(value);
      else
        data_ = static_cast<double>(value);
    }
  Value(std::string text) : data_(std::move(text)) {}
  Value(std::string_view text) : data_(std::string(text)) {}
  Value(const char* text) : data_(std::string(text)) {}
  Value(IntSpan values) : data_(values.vec()) {}
  Value(Ints values) : data_(std::move(values)) {}
  Value(Floats values) : data_(std::move(values)) {}
  Value(Bools values) : data_(std::move(values)) {}
  Value(DType value) : data_(value) {}
  Value(Layout value) : data_(value) {}
  Value(Device value) : data_(value) {}
  Value(MemoryFormat value) : data_(value) {}
  Value(Generator* value) {
    if (value) data_ = value;
  }

  // What it holds: exactly one of Data's alternatives. holds<int64_t>() is false of `true`
  // and of 1.0; only the functions below convert.
  bool is_none() const { return holds<std::monostate>(); }
  bool is_tensor() const { return holds<Tensor>(); }
  bool is_tensors() const { return holds<TensorList>(); }
  bool is_number() const;  // what scalar() can give
  template <class T>
  bool holds() const {
    return std::holds_alternative<T>(data_);
  }

  // Each gives the value as that type. TypeError naming both types where it is none. References are
  // valid until the Value changes. A number never becomes a smaller kind: real() of 3 is 3.0, but
  // integer() of 3.0 is an error, as for Python's int parameters.
  //
  //   assert(Value(true).integer() == 1 && Value(3).real() == 3.0);
  //   EXPECT_THROW(Value(3.0).integer(), Error);
  const Tensor& tensor() const;  // undefined for None
  const TensorList& tensors() const { return get<TensorList>("Tensor[]"); }
  TensorList& tensors() { return const_cast<TensorList&>(std::as_const(*this).tensors()); }
  Scalar scalar() const;
  bool boolean() const;
  int64_t integer() const;  // also from bool
  double real() const;      // also from bool and int
  const std::string& text() const { return get<std::string>("str"); }
  const Ints& ints() const { return get<Ints>("int[]"); }
  const Floats& floats() const { return get<Floats>("float[]"); }
  DType dtype() const { return get<DType>("ScalarType"); }
  Device device() const { return get<Device>("Device"); }
  MemoryFormat memory_format() const { return get<MemoryFormat>("MemoryFormat"); }
  Generator* generator() const { return is_none() ? nullptr : get<Generator*>("Generator"); }

  const Data& data() const { return data_; }
  // The type that it holds, as schemas name it: "Tensor", "int[]", "NoneType".
  const char* type_name() const;

 private:
  template <class T>
  const T& get(const char* wanted) const {
    if (const T* value = std::get_if<T>(&data_)) return *value;
    fail_type(wanted);
  }
  [[noreturn]] void fail_type(const char* wanted) const;

  Data data_;
};

// The arguments of a call, all of them, in the schema's order; after the call its results. Where
// the call throws, what the stack holds is not specified.
using Stack = std::vector<Value>;

// The types of the schema language without their brackets and question marks: Tensor, Scalar, int
// (also SymInt), float, bool, str, ScalarType, Layout, Device, MemoryFormat, Generator. SymInt is
// read as int and written as int: sizes are always known here.
enum class ValueType : uint8_t {
  kTensor,
  kScalar,
  kInt,
  kFloat,
  kBool,
  kString,
  kDType,
  kLayout,
  kDevice,
  kMemoryFormat,
  kGenerator,
};

// A type of the schema language: "Tensor?[]" is a list of optional tensors.
//
//   const SchemaType type = parse_schema("my::f(int[2]? x=None) -> ()").arguments[0].type;
//   assert(type.list && type.optional && type.size == 2 && type.text() == "int[2]?");
struct SchemaType {
  ValueType base = ValueType::kTensor;
  bool list = false;
  bool optional = false;           // T?, T[]?
  bool optional_elements = false;  // T?[]
  int64_t size = 0;                // the N of T[N]: one value stands for N equal ones

  bool is_tensor() const { return base == ValueType::kTensor && !list; }
  bool is_tensors() const { return base == ValueType::kTensor && list; }
  // "Tensor?[]", "int[2]"
  std::string text() const;
};

// What `(a!)` or `(a -> *)` behind a type says: tensors with the same letter may share memory. An
// argument that is written counts as changed after the call: its version goes up, and backward
// raises if it had saved the old values.
//
//   const Schema schema = find_operator("aten::add_", "Tensor")->schema();
//   assert(schema.arguments[0].alias.written && schema.is_mutable());
struct SchemaAlias {
  std::string set;       // "a"; empty where there is none
  bool written = false;  // "!": the operator changes its elements
  bool wildcard = false;
};

// An argument or a result. Of a result only name, type and alias mean anything. The default is a
// Value ready for the stack; default_text is what the schema's text() shows.
struct SchemaArgument {
  std::string name;  // of a result: empty where it has none
  SchemaType type;
  SchemaAlias alias;
  bool keyword_only = false;
  bool has_default = false;
  Value default_value;
  std::string default_text;  // as it was written
};

// The signature of an operator in PyTorch's schema language,
// "namespace::name.overload(Type name=default, *, Type keyword_only) -> Type". A type is one of
// ValueType with `[]` for a list, `[2]` for a list that one number may stand for, and `?` for None;
// behind it `(a)` says that the result is a view of the argument with the same letter and `(a!)`
// that the operator writes it. Arguments behind `*` are given by name only.
//
//   const Schema& s = find_operator("aten::sum", "dim_IntList")->schema();
//   assert(s.arguments[1].type.list && s.arguments[1].type.optional);
//   assert(s.find("keepdim") == 2 && !s.arguments[2].default_value.boolean());
struct Schema {
  std::string name;      // "aten::add"
  std::string overload;  // "Tensor"; empty for the one without a name
  std::vector<SchemaArgument> arguments, results;

  // Whether an argument is written; the index of one by its name, in `arguments` and on the stack;
  // the whole as text, which parse_schema() reads.
  bool is_mutable() const;
  int find(std::string_view argument) const;  // -1 where there is none
  std::string text() const;
};

// Reads "ns::name.overload(Tensor(a!) self, *, int[2] n=1) -> Tensor(a!)"; RuntimeError that shows
// the text and says where it is wrong. White space does not count, a name appears once, and a
// result in brackets, `-> (Tensor, Tensor)` or `-> ()`, is several or none.
//
//   EXPECT_THROW(parse_schema("my::scale(Tensor x, Number by) -> Tensor"), Error);
//
//   const Schema schema = parse_schema("my::scale(Tensor x, float by=2.0) -> Tensor");
//   assert(schema.find("by") == 1 && schema.arguments[1].default_value.real() == 2);
Schema parse_schema(std::string_view text);

struct OperatorRecord;
class Operator;

// The handler of one key for one operator, or of one generic key for all: takes the arguments from
// the stack and leaves the results there, mostly by calling redispatch() without its key. `keys`
// are those of the call that are left; the highest is the handler's own, but for composites, which
// see the device's. Results of a device's or composite kernel are compared with the schema:
// RuntimeError for another number of them or other types.
using BoxedKernel = std::function<void(const Operator& op, KeySet keys, Stack& stack)>;
using BoxedHandler = void (*)(const Operator& op, KeySet keys, Stack& stack);

// What a kernel is registered for: one key, or what stands for several. A call passes keys without
// a kernel by. At the device it takes that device's kernel, else kCompositeExplicit's, else
// kComposite's; where there is none, NotImplementedError names operator and device.
//
// kMeta gives shapes without data; an operator without it, and without a composite kernel, cannot
// be called on meta tensors. kAutograd wraps the others: it records a node, as apply_function does,
// and goes on by redispatch().
//
// Most operators need one of three: kComposite for what is written in terms of other operators, and
// then has their gradient, meta and device kernels; kCompositeExplicit beside kAutograd for one
// with a gradient of its own; kCPU and kMeta for one with a kernel of its own.
enum class KernelKind : uint8_t {
  kCPU,
  kMeta,
  kCUDA,
  kPython,
  kFunctionalize,
  kAutograd,
  kTrace,
  kAutocast,
  kBatched,
  kProfile,
  kComposite,          // all devices, and differentiable because what it calls is
  kCompositeExplicit,  // all devices; the gradient is registered apart
};

// An operator at run time: of the table, or registered by a program. Objects are not copied;
// compare pointers. A pointer stays valid when the Library that defined the operator is gone; calls
// then find no kernel.
//
// A call through a stack looks at every value's type and makes Values of the results. An operator
// that is known when the program is compiled is better called by its C++ function (ops.h).
class Operator {
 public:
  const Schema& schema() const { return schema_; }
  std::string_view name() const { return schema_.name; }
  std::string_view overload() const { return schema_.overload; }
  // "aten::add.Tensor"
  std::string qualified_name() const;

  // Runs the operator as a program's own call does: through modes, autocast and autograd. The stack
  // holds every argument (fill_defaults adds those left out at the end); RuntimeError for another
  // number of them, and naming the argument, its type and the one given where these do not agree.
  // As in Python a number may stand for a tensor, a wider number or a list of fixed length.
  //
  //   const Operator& mul = *find_operator("aten::mul", "Tensor");
  //   Stack stack = {ones({2}).requires_grad_(), full({2}, 3.0)};
  //   mul.call(stack);
  //   assert(stack.size() == 1 && stack[0].tensor().requires_grad());
  //   Stack wrong = {ones({2})};
  //   EXPECT_THROW(mul.call(wrong), Error);
  void call(Stack& stack) const;
  // Goes on with the handler of the highest of `keys`: what a kernel calls when it has done its
  // part, with its own key taken out.
  void redispatch(KeySet keys, Stack& stack) const;
  // The keys of a call with these arguments on this thread: the union over all tensors, with the
  // thread's modes; kCPU where no tensor has a device. Composites keep only the keys that see them
  // as a whole.
  KeySet keys_of(const Stack& stack) const;
  // Adds the defaults of the arguments that are not there yet; RuntimeError for one without.
  //
  //   const Operator& add = *find_operator("aten::add", "Tensor");
  //   Stack stack = {ones({2}), ones({2})};
  //   add.fill_defaults(stack);
  //   assert(stack.size() == 3 && stack[2].integer() == 1);
  void fill_defaults(Stack& stack) const;

  // Whether calls go through a table of handlers; composites run as functions over others.
  bool is_dispatched() const;
  // Whether the operator answers calls of this kind with something of its own.
  bool has_kernel_for(KernelKind kind) const;
  // The constant record; null for an operator that a program has registered.
  const OperatorRecord* record() const { return record_; }

  // How a record's operator is called: as it stands, in place, with out=. Each form is an Operator
  // of its own, found by PyTorch's name; with out= the last arguments are the tensors to write.
  //
  //   const Operator& out = *find_operator("aten::add", "out");
  //   assert(out.form() == Operator::Form::kOut && out.schema().is_mutable());
  //   assert(find_operator("aten::add_", "Tensor")->form() == Operator::Form::kInplace);
  enum class Form : uint8_t { kPlain, kInplace, kOut };
  Form form() const { return form_; }

  ~Operator();
  Operator(const Operator&) = delete;
  Operator& operator=(const Operator&) = delete;

 private:
  friend class OperatorRegistry;
  friend struct OperatorRecord;
  struct Kernels;
  Operator(Schema schema, const OperatorRecord* record, Form form);
  void check(const Stack& stack) const;
  void call_kernel(KeySet keys, Stack& stack) const;
  void run_native(KeySet keys, Stack& stack) const;

  Schema schema_;
  const OperatorRecord* record_;
  Form form_;
  std::unique_ptr<Kernels> kernels_;  // what programs registered; overloads
};

// The operator of that name ("aten::add") and overload ("Tensor", "" or "default"); null where
// there is none. PyTorch's overloads for which one entry of the table stands are Operators. Costs
// a search by name, so keep the pointer. The first search for an operator also parses its schema.
//
//   assert(find_operator("aten::add", "Scalar") != find_operator("aten::add", "Tensor"));
//   assert(find_operator("aten::no_such_operator") == nullptr);
const Operator* find_operator(std::string_view name, std::string_view overload = "");
// The overloads of a name, the table's in alphabetical order; empty where there is none. Those for
// which an entry stands are listed behind it.
std::vector<const Operator*> find_overloads(std::string_view name);
// Every operator: makes all that were not asked for yet, so it costs milliseconds the first time.
std::vector<const Operator*> all_operators();

// --- registering operators at run time ---

// A group of registrations that ends with the object: operators that it defined are taken back, and
// kernels that it gave to others are removed. As torch.library.Library. Objects on different
// threads may register at once; one object serves one thread at a time. Calls under way when it
// ends finish with the kernels that they have begun.
//
//   Library library("mylib");
//   library.define("scale(Tensor x, float factor) -> Tensor");
//   Tensor (*scale)(const Tensor&, double) = [](const Tensor& x, double f) { return x * f; };
//   library.implement("scale", KernelKind::kCompositeExplicit, scale);
//   Stack stack = {ones({2}), 3.0};
//   find_operator("mylib::scale")->call(stack);
//   assert(stack[0].tensor().sum().item<float>() == 6);
class Library {
 public:
  explicit Library(std::string name_space);
  ~Library();
  Library(Library&&) noexcept;
  Library& operator=(Library&&) = delete;

  // Adds an operator, which has no kernels yet. The namespace is the library's and may be left out
  // of the schema. RuntimeError for a schema that cannot be read, for another namespace, for the
  // table's own, and for an operator that is there already. Returns "ns::name.overload".
  std::string define(std::string_view schema);
  // A kernel of an operator of any library ("name.overload" or "ns::name.overload"). RuntimeError
  // where the operator is not defined, NotImplementedError for the table's. One of the same kind is
  // replaced, and does not come back when this library ends. The kernel may be called from several
  // threads at once, and must own what it captures.
  //
  //   Library library("header_boxed");
  //   library.define("twice(Tensor x) -> Tensor");
  //   library.implement("twice", KernelKind::kComposite,
  //                     BoxedKernel([](const Operator&, KeySet, Stack& stack) {
  //                       stack = {stack[0].tensor() * 2};
  //                     }));
  //   Stack stack = {ones({3})};
  //   find_operator("header_boxed::twice")->call(stack);
  //   assert(stack[0].tensor().sum().item<float>() == 6);
  void implement(std::string_view name, KernelKind kind, BoxedKernel kernel);
  // The same for a C++ function, whose types must be those of the schema: RuntimeError otherwise,
  // when it is registered. Tensor takes Tensor and Tensor?, int64_t int, double float, IntSpan and
  // Span<const double> their lists, TensorSpan and TensorList Tensor[], std::optional any `?`.
  template <class R, class... Args>
  void implement(std::string_view name, KernelKind kind, R (*function)(Args...));
  // Goes on with the next key as though nothing were registered.
  void fall_through(std::string_view name, KernelKind kind);

 private:
  struct Registrations;
  void check_signature(std::string_view name, const std::vector<const char*>& arguments,
                       const std::vector<const char*>& results) const;
  std::string qualify(std::string_view name) const;
  std::string name_space_;
  std::unique_ptr<Registrations> registrations_;
};

// Registers operators while the program or shared library that contains it is loaded:
//
//   TD_LIBRARY(mylib, library) {
//     library.define("scale(Tensor x, float factor) -> Tensor");
//     library.implement("scale", KernelKind::kCPU, scale);   // ... of the program
//   }
//
// They are called as find_operator("mylib::scale") in C++ and torch.ops.mylib.scale in Python. One
// block a namespace and file. A linker may drop a shared library of which the program uses
// nothing else; --no-as-needed keeps it. An exception in the block is load_library's; where the
// program was linked with the library it ends the program.
#define TD_LIBRARY(ns, library)                                                     \
  static void td_library_##ns(::taeda::Library& library);                           \
  static const ::taeda::detail::LoadedLibrary td_loaded_##ns(#ns, td_library_##ns); \
  static void td_library_##ns(::taeda::Library& library)

// Loads a shared library, whose TD_LIBRARY blocks register their operators. Throws what a block
// throws (RuntimeError for a function of other types than its schema); nothing of that block is
// registered, what others registered stays, and loading the file again throws the same. OSError for
// a file that cannot be loaded.
//
//   EXPECT_THROW(load_library("/missing/operators.so"), Error);
void load_library(const std::string& path);

// --- how C++ functions take their arguments from a stack ---

namespace detail {

class LoadedLibrary {
 public:
  // What `fill` throws passes on to load_library, if that loads the library; nothing is registered.
  LoadedLibrary(const char* name_space, void (*fill)(Library&));

 private:
  std::optional<Library> library_;
};

// A C++ parameter type: the schema's name of it, and the value as that type. Another type does not
// compile. Spans and references are lent by the stack for the time of the call.
template <class T>
struct Native;

#define TD_NATIVE(type, schema_type, expression)                     \
  template <>                                                        \
  struct Native<type> {                                              \
    static constexpr const char* name = schema_type;                 \
    static decltype(auto) get(const Value& v) { return expression; } \
  }
TD_NATIVE(Tensor, "Tensor", (v.tensor()));
TD_NATIVE(TensorSpan, "Tensor[]", TensorSpan(v.tensors()));
TD_NATIVE(TensorList, "Tensor[]", (v.tensors()));
TD_NATIVE(Scalar, "Scalar", v.scalar());
TD_NATIVE(int64_t, "int", v.integer());
TD_NATIVE(double, "float", v.real());
TD_NATIVE(bool, "bool", v.boolean());
TD_NATIVE(std::string, "str", (v.text()));
TD_NATIVE(std::string_view, "str", std::string_view(v.text()));
TD_NATIVE(IntSpan, "int[]", IntSpan(v.ints()));
TD_NATIVE(Span<const double>, "float[]", Span<const double>(v.floats()));
TD_NATIVE(DType, "ScalarType", v.dtype());
TD_NATIVE(Device, "Device", v.device());
TD_NATIVE(MemoryFormat, "MemoryFormat", v.memory_format());
TD_NATIVE(Generator*, "Generator?", v.generator());
#undef TD_NATIVE

template <class T>
struct Native<std::optional<T>> {
  static constexpr const char* name = "?";  // any optional type
  static std::optional<T> get(const Value& v) {
    return v.is_none() ? std::nullopt : std::optional<T>(Native<T>::get(v));
  }
};

template <class T>
using NativeOf = Native<std::remove_cvref_t<T>>;

template <class R>
struct NativeResult {
  static std::vector<const char*> names() { return {NativeOf<R>::name}; }
  static void push(Stack& stack, R result) { stack.emplace_back(std::move(result)); }
};
template <class... Rs>
struct NativeResult<std::tuple<Rs...>> {
  static std::vector<const char*> names() { return {NativeOf<Rs>::name...}; }
  static void push(Stack& stack, std::tuple<Rs...> results) {
    std::apply([&](auto&... r) { (stack.emplace_back(std::move(r)), ...); }, results);
  }
};

template <class R, class... Args, size_t... I>
void call_unboxed(R (*function)(Args...), Stack& stack, std::index_sequence<I...>) {
  if constexpr (std::is_void_v<R>) {
    function(NativeOf<Args>::get(stack[I])...);
    stack.clear();
  } else {
    R result = function(NativeOf<Args>::get(stack[I])...);
    stack.clear();
    NativeResult<R>::push(stack, std::move(result));
  }
}

}  // namespace detail

template <class R, class... Args>
void Library::implement(std::string_view name, KernelKind kind, R (*function)(Args...)) {
  std::vector<const char*> results;
  if constexpr (!std::is_void_v<R>) results = detail::NativeResult<R>::names();
  check_signature(name, {detail::NativeOf<Args>::name...}, results);
  implement(name, kind, BoxedKernel([function](const Operator&, KeySet, Stack& stack) {
              detail::call_unboxed(function, stack, std::index_sequence_for<Args...>());
            }));
}

}  // namespace taeda
