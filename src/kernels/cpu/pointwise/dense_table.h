// dense_table<...>(): a functor's inner loops of all dtypes, and what makes the functor for each.
//
// A fragment, as the functors are: loops-inl.h includes it behind them, once for each instruction
// set. The parameters lie as the operator's caller laid them out, as a struct of the arguments' own
// C++ types; a `Scalar` is converted to the compute dtype once a call, not once an element.

template <class T, class X>
auto parameter(const X& x) {
  if constexpr (std::is_same_v<X, Scalar>)
    return x.template to<T>();
  else
    return x;
}

// The functor with `kFields` fields that calculates in T, from those of `p`, which is null for
// none.
template <class Functor, class T, int kFields, class Parameters>
Functor functor_of(const Parameters* p) {
  if constexpr (kFields == 1) {
    const auto& [a] = *p;
    return {parameter<T>(a)};
  } else if constexpr (kFields == 2) {
    const auto& [a, b] = *p;
    return {parameter<T>(a), parameter<T>(b)};
  } else if constexpr (kFields == 3) {
    const auto& [a, b, c] = *p;
    return {parameter<T>(a), parameter<T>(b), parameter<T>(c)};
  } else {
    static_assert(kFields == 0, "a functor has at most three fields");
    return {};
  }
}

template <class Functor, int kFields>
struct Load {
  template <class T>
  static Functor load(const void* params) {
    return functor_of<Functor, T, kFields>(static_cast<const Functor*>(params));
  }
};
template <template <class> class Functor, int kFields>
struct LoadTemplate {
  template <class T>
  static Functor<T> load(const void* params) {
    return functor_of<Functor<T>, T, kFields>(static_cast<const Functor<Scalar>*>(params));
  }
};
// Its derivative by input `kInput`, by dual numbers; second derivatives never get vectors.
template <class Loader, int kInput>
struct LoadGrad {
  template <class T>
  static auto load(const void* params) {
    return Grad<decltype(Loader::template load<T>(params)), kInput>{
        Loader::template load<T>(params)};
  }
};

// Of this type is what loads a functor, or its derivative where `kPartial` is not -1.
template <class Loader, int kPartial>
auto loader_of() {
  if constexpr (kPartial < 0)
    return Loader();
  else
    return LoadGrad<Loader, kPartial>();
}
template <class Functor, int kFields, int kPartial>
auto loader() {
  return loader_of<Load<Functor, kFields>, kPartial>();
}
template <template <class> class Functor, int kFields, int kPartial>
auto loader() {
  return loader_of<LoadTemplate<Functor, kFields>, kPartial>();
}

// The inner loop of one dtype: floats by vectors where the instruction set has them.
template <class T, class Loader, class OnLanes, int kInputs>
constexpr DenseFn dense_cell() {
  if constexpr (std::is_void_v<T>)
    return nullptr;
  else if constexpr (std::is_floating_point_v<T>)
    return dense<Loader, T, kInputs>;
  else
    return lanes::dense<OnLanes, std::conditional_t<std::is_same_v<T, Bool>, bool, T>, kInputs>;
}
// A dtype that calculates in another has no loop of its own.
template <class Loader, class OnLanes, int kInputs, DTypeSet kTypes>
constexpr DenseTable dense_table() {
#define TD_CELL(ENUMERATOR, CPP, NAME, OTHER, CLASS, KIND, COMPUTE, ...)        \
  dense_cell<std::conditional_t<(kTypes & dtype_bit(DType::ENUMERATOR)) != 0 && \
                                    std::is_same_v<CPP, COMPUTE>,               \
                                CPP, void>,                                     \
             Loader, OnLanes, kInputs>(),
  return {{TD_ARITHMETIC_DTYPES(TD_CELL)}};
#undef TD_CELL
}
