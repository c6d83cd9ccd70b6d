// Bindings of operators: reads a Python call's arguments by the types of the operator's C++
// parameters, calls it, and wraps what it returns.
//
//   return call_operator<op::sort, op::sort_out>(a, kGiven, -1, false);
//
// Behind the Arguments stands, for each parameter, its default or one of the tags below.
#pragma once

#include <iterator>
#include <type_traits>
#include <utility>

#include "python/binding_support.h"
#include "python/call_note.h"

namespace taeda::python {
// Unnamed: what only one file calls, and once, is compiled into its caller.
namespace {

struct Given {};    // kGiven: there is no default, or none but None
struct Missing {};  // kMissing: a tensor that may be undefined
struct Number {};   // kNumber: a tensor for which a number may stand
inline constexpr Given kGiven;
inline constexpr Missing kMissing;
inline constexpr Number kNumber;

// Once compiled, a binding is one function, as if it were written by hand.
#define TD_INLINED __attribute__((always_inline))

template <class T>
struct Type {};

// What parameter `i` is read as; `fallback` is its default, where it has one.
inline const Tensor& read(Type<const Tensor&>, const Arguments& a, int i) { return a.tensor(i); }
inline const Tensor& read(Type<const Tensor&>, const Arguments& a, int i, Missing) {
  return a.opt_tensor(i);
}
inline TensorArgument read(Type<const Tensor&>, const Arguments& a, int i, Number) {
  return a.tensor_or_number(i);
}
inline TensorOptions read(Type<const TensorOptions&>, const Arguments& a, int i) {
  return tensor_options(a, i);
}
#define TD_READ(TYPE, GETTER)                                                     \
  template <class... Fallback>                                                    \
  auto read(Type<TYPE>, const Arguments& a, int i, const Fallback&... fallback) { \
    return a.GETTER(i, fallback...);                                              \
  }
TD_READ(TensorSpan, tensors)
TD_READ(const Scalar&, scalar)
TD_READ(const OptScalar&, opt_scalar)
TD_READ(int64_t, integer)
TD_READ(OptInt, opt_integer)
TD_READ(IntSpan, ints)
TD_READ(OptInts, opt_ints)
TD_READ(double, real)
TD_READ(OptDouble, opt_real)
TD_READ(Span<const double>, reals)
TD_READ(std::optional<Span<const double>>, opt_reals)
TD_READ(bool, boolean)
TD_READ(OptBool, opt_boolean)
TD_READ(std::string_view, text)
TD_READ(std::optional<std::string_view>, opt_text)
TD_READ(DType, dtype)
TD_READ(OptDType, opt_dtype)
TD_READ(Device, device)
TD_READ(OptDevice, opt_device)
TD_READ(MemoryFormat, memory_format)
TD_READ(OptMemoryFormat, opt_memory_format)
TD_READ(Generator*, generator)
#undef TD_READ

template <class T, class Fallback>
[[gnu::always_inline]] inline decltype(auto) read_or(const Arguments& a, int i,
                                                     const Fallback& fallback) {
  if constexpr (std::is_same_v<Fallback, Given>)
    return read(Type<T>(), a, i);
  else
    return read(Type<T>(), a, i, fallback);
}

// How many of a call's arguments the first `count` parameters are: `options` stands for five.
template <class... Params>
constexpr int python_arguments(size_t count) {
  const int widths[] = {(std::is_same_v<Params, const TensorOptions&> ? 5 : 1)..., 0};
  int sum = 0;
  for (size_t i = 0; i < count; i++) sum += widths[i];
  return sum;
}

// Calls `call` with the arguments read from left to right, where they lie.
struct InOrder {
  template <class Call, class... Values>
  [[gnu::always_inline]] InOrder(const Call& call, Values&&... values) {
    call(values...);
  }
};

template <auto function>
struct Bound;
template <class R, class... Params, R (*function)(Params...)>
struct Bound<function> {
  static constexpr size_t kCount = sizeof...(Params);
  static constexpr int kArguments = python_arguments<Params...>(kCount);

  template <class Call, class... Fallback>
  [[gnu::always_inline]] static void with_arguments(const Arguments& a, const Call& call,
                                                    const Fallback&... fallback) {
    [&]<size_t... I>(std::index_sequence<I...>) TD_INLINED {
      InOrder{call, read_or<Params>(a, python_arguments<Params...>(I), fallback)...};
    }
    (std::index_sequence_for<Params...>());
  }
};

inline void require_options(const Tensor& out, const TensorOptions& options) {
  require_options_of(out, options);
}
template <class T>
void require_options(const Tensor&, const T&) {}

// NAME(..., out=): writes what argument `at` gives.
template <auto out, size_t count, class... Values>
[[gnu::always_inline]] inline PyObject* call_out(Arguments& a, int at, const Values&... values) {
  if constexpr (count == 1) {
    (require_options(a.tensor(at), values), ...);
    unlocked(a, [&] { out(values..., a.tensor(at)); });
  } else {
    const TensorList outs = output_tensors(a, at, count);
    [&]<size_t... I>(std::index_sequence<I...>) TD_INLINED {
      unlocked(a, [&] { out(values..., outs[I]...); });
    }
    (std::make_index_sequence<count>());
  }
  return a.return_argument(at);
}

// The operator's result, as `wrapped` makes an object of it; or its out= form, where it has one.
template <auto plain, auto out, class Wrap, class... Fallback>
[[gnu::always_inline]] inline PyObject* call_wrapped(Arguments& a, const Wrap& wrapped,
                                                     const Fallback&... fallback) {
  PyObject* result = nullptr;
  Bound<plain>::with_arguments(
      a,
      [&](const auto&... values) TD_INLINED {
        if constexpr (!std::is_null_pointer_v<decltype(out)>) {
          constexpr int kOut = Bound<plain>::kArguments;
          if (a.present(kOut)) {
            result = call_out<out, Bound<out>::kCount - sizeof...(values)>(a, kOut, values...);
            return;
          }
        }
        result = wrapped(unlocked(a, [&] { return plain(values...); }));
      },
      fallback...);
  return result;
}

template <auto plain, auto out = nullptr, class... Fallback>
[[gnu::always_inline]] inline PyObject* call_operator(Arguments& a, const Fallback&... fallback) {
  const auto wrapped = [](auto&& value)
                           TD_INLINED { return wrap(std::forward<decltype(value)>(value)); };
  return call_wrapped<plain, out>(a, wrapped, fallback...);
}
// Of several results that have names.
template <auto plain, auto out = nullptr, class... Fallback>
[[gnu::always_inline]] inline PyObject* call_named(Arguments& a, ResultType& type,
                                                   const Fallback&... fallback) {
  const auto wrapped = [&](auto&& value) TD_INLINED { return wrap_named(type, std::move(value)); };
  PyObject* const result = call_wrapped<plain, out>(a, wrapped, fallback...);
  if constexpr (!std::is_null_pointer_v<decltype(out)>) {
    if (a.present(Bound<plain>::kArguments)) return type.name_outputs(result);
  }
  return result;
}
// Of an operator that writes its first argument, and returns it.
template <auto function, class... Fallback>
[[gnu::always_inline]] inline PyObject* call_inplace(Arguments& a, const Fallback&... fallback) {
  Bound<function>::with_arguments(
      a, [&](const auto&... values) TD_INLINED { unlocked(a, [&] { function(values...); }); },
      fallback...);
  return a.return_argument(0);
}

// Python's OWNER.NAME as a CPython function, over the overloads whose parameters are `signatures`
// in namespace SCOPE, where `call` runs the one chosen; HIDDEN of them are not told of in messages.
#define TD_BINDING(IDENT, NAME, OWNER, SCOPE, HIDDEN)                            \
  static const Function function_##IDENT = {NAME,                                \
                                            OWNER "." NAME,                      \
                                            SCOPE::signatures,                   \
                                            std::size(SCOPE::signatures),        \
                                            std::string_view(OWNER) == "Tensor", \
                                            HIDDEN};                             \
  PyObject* py_##IDENT(PyObject* self, PyObject* const* args, Py_ssize_t nargs,  \
                       PyObject* kwnames) {                                      \
    try {                                                                        \
      Arguments a(function_##IDENT, self, args, nargs, kwnames);                 \
      if (a.overridden()) [[unlikely]]                                           \
        return a.call_override();                                                \
      return SCOPE::call(a);                                                     \
    } catch (...) {                                                              \
      return fail_call(function_##IDENT, self, args, nargs, kwnames);            \
    }                                                                            \
  }

}  // namespace
}  // namespace taeda::python
