// Which function of special_functions.h or polynomial of orthogonal_polynomials.h a name of
// torch.special stands for.
#pragma once

#include <algorithm>
#include <iterator>
#include <string_view>

#include "kernels/orthogonal_polynomials.h"
#include "kernels/special_functions.h"
#include "taeda/error.h"

namespace taeda::kernels {

inline constexpr std::string_view kSpecialFunctions[] = {"bessel_j0",
                                                         "bessel_j1",
                                                         "bessel_y0",
                                                         "bessel_y1",
                                                         "modified_bessel_k0",
                                                         "modified_bessel_k1",
                                                         "scaled_modified_bessel_k0",
                                                         "scaled_modified_bessel_k1",
                                                         "spherical_bessel_j0",
                                                         "airy_ai"};
inline constexpr std::string_view kPolynomials[] = {
    "chebyshev_polynomial_t",         "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",         "chebyshev_polynomial_w",
    "shifted_chebyshev_polynomial_t", "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v", "shifted_chebyshev_polynomial_w",
    "hermite_polynomial_h",           "hermite_polynomial_he",
    "laguerre_polynomial_l",          "legendre_polynomial_p"};

// Names[i] is enumerator i.
template <class Enum, size_t n>
Enum named(const std::string_view (&names)[n], std::string_view name) {
  const auto found = std::find(std::begin(names), std::end(names), name);
  TD_CHECK(found != std::end(names), "there is no function {}", name);
  return static_cast<Enum>(found - std::begin(names));
}

inline SpecialFunction special_function_named(std::string_view name) {
  return named<SpecialFunction>(kSpecialFunctions, name);
}
inline Polynomial polynomial_named(std::string_view name) {
  return named<Polynomial>(kPolynomials, name);
}

}  // namespace taeda::kernels
