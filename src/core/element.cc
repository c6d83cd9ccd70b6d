#include "core/element.h"

#include <cstring>

namespace taeda {
namespace {

template <class T>
Scalar read(const void* data) {
  T value;
  std::memcpy(&value, data, sizeof(T));
  if constexpr (std::is_same_v<T, Bool>)
    return Scalar(static_cast<bool>(value));
  else if constexpr (StoredFloat<T>)
    return Scalar(static_cast<float>(value));
  else if constexpr (std::is_same_v<T, ComplexHalf>)
    return Scalar(std::complex<double>(std::complex<float>(value)));
  else if constexpr (is_complex(kDTypeOf<T>))
    return Scalar(std::complex<double>(value));
  else
    return Scalar(value);
}

template <class T>
void write(void* data, const Scalar& value) {
  T element{};
  if constexpr (std::is_same_v<T, Bool>)
    element = value.to_bool();
  else if constexpr (std::is_same_v<T, Float4E2M1x2>)
    value.to<double>() == 0 ? void() : T::refuse();  // zeros() is made of it
  else
    element = value.to<T>();
  std::memcpy(data, &element, sizeof(T));
}

}  // namespace

Scalar read_element(DType t, const void* data) {
  switch (t) {
#define TD_CASE(name, type, ...) \
  case DType::name:              \
    return read<type>(data);
    TD_DTYPES(TD_CASE)
#undef TD_CASE
  }
  return {};
}

void write_element(DType t, void* data, const Scalar& value) {
  switch (t) {
#define TD_CASE(name, type, ...) \
  case DType::name:              \
    return write<type>(data, value);
    TD_DTYPES(TD_CASE)
#undef TD_CASE
  }
}

}  // namespace taeda
