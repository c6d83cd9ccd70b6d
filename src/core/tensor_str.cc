// Tensors as text, in PyTorch's format: four decimals, scientific notation where magnitudes differ
// widely, and the middle of tensors of more than 1000 elements left out.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ostream>

#include "core/device_memory.h"
#include "core/element.h"
#include "core/host_copy.h"
#include "taeda/tensor.h"

namespace taeda {
namespace {

constexpr int64_t kEdge = 3, kThreshold = 1000;
constexpr size_t kLineWidth = 80;

using Numbers = std::vector<double>;

std::string printed(const char* form, double value) {
  char text[400];
  std::snprintf(text, sizeof(text), form, value);
  return text;
}

// One column width and notation for all numbers of a tensor.
class FloatFormat {
 public:
  explicit FloatFormat(const Numbers& numbers) {
    double least = INFINITY, most = 0;
    for (const double x : numbers) {
      if (!std::isfinite(x) || x == 0) continue;
      least = std::min(least, std::abs(x));
      most = std::max(most, std::abs(x));
      if (x != std::ceil(x)) integers_ = false;
    }
    if (most == 0) return;
    scientific_ = most / least > 1000 || most > 1e8 || (!integers_ && least < 1e-4);
    for (const double x : numbers) {
      if (std::isfinite(x) && x != 0) width_ = std::max(width_, plain(x).size());
    }
  }
  size_t width() const { return width_; }
  std::string operator()(double x) const {
    const std::string text = plain(x);
    return std::string(width_ > text.size() ? width_ - text.size() : 0, ' ') + text;
  }

 private:
  std::string plain(double x) const {
    if (std::isnan(x)) return "nan";
    if (std::isinf(x)) return x < 0 ? "-inf" : "inf";
    if (scientific_) return printed("%.4e", x);
    return integers_ ? printed("%.0f", x) + "." : printed("%.4f", x);
  }
  bool integers_ = true, scientific_ = false;
  size_t width_ = 1;
};

Scalar element_at(const Tensor& t, int64_t offset) {
  return read_element(t.dtype(), static_cast<const char*>(t.data_ptr()) + offset * t.itemsize());
}

class Printer {
 public:
  explicit Printer(const Tensor& t) : t_(t), summarize_(t.numel() > kThreshold) {
    visit(0, 0, [&](int64_t offset) {
      if (is_inexact(t_.dtype())) {
        const std::complex<double> z = element_at(t_, offset).to_complex();
        reals_.push_back(z.real());
        imags_.push_back(z.imag());
      } else {
        width_ = std::max(width_, taeda::to_text(element_at(t_, offset)).size());
      }
    });
    real_ = FloatFormat(reals_);
    imag_ = FloatFormat(imags_);
  }

  std::string block(int64_t dim, int64_t offset, size_t indent) const {
    if (dim == t_.dim()) return element(offset);
    if (dim == t_.dim() - 1) return row(dim, offset, indent);
    std::string text = "[";
    const std::string separator = "," + std::string(static_cast<size_t>(t_.dim() - dim - 1), '\n') +
                                  std::string(indent + 1, ' ');
    bool first = true;
    for_shown(dim, [&](int64_t i) {
      if (!first) text += separator;
      first = false;
      text += i < 0 ? "..." : block(dim + 1, offset + i * t_.strides()[dim], indent + 1);
    });
    return text + "]";
  }

 private:
  // Calls f(i) for the indices shown along a dimension; -1 stands for those left out.
  template <class F>
  void for_shown(int64_t dim, const F& f) const {
    const int64_t n = t_.sizes()[dim];
    const bool cut = summarize_ && n > 2 * kEdge;
    for (int64_t i = 0; i < n; i++) {
      if (cut && i == kEdge) {
        f(int64_t{-1});
        i = n - kEdge;
      }
      f(i);
    }
  }

  template <class F>
  void visit(int64_t dim, int64_t offset, const F& f) const {
    if (dim == t_.dim()) return f(offset);
    for_shown(dim, [&](int64_t i) {
      if (i >= 0) visit(dim + 1, offset + i * t_.strides()[dim], f);
    });
  }

  std::string element(int64_t offset) const {
    if (!is_inexact(t_.dtype())) {
      const std::string text = taeda::to_text(element_at(t_, offset));
      return std::string(width_ > text.size() ? width_ - text.size() : 0, ' ') + text;
    }
    const std::complex<double> z = element_at(t_, offset).to_complex();
    if (!is_complex(t_.dtype())) return real_(z.real());
    std::string imag = imag_(z.imag());
    imag.erase(0, imag.find_first_not_of(' '));
    return real_(z.real()) + (z.imag() < 0 ? "" : "+") + imag + "j";
  }

  std::string row(int64_t dim, int64_t offset, size_t indent) const {
    size_t width = is_inexact(t_.dtype()) ? real_.width() : width_;
    if (is_complex(t_.dtype())) width += imag_.width() + 1;
    const size_t width_left = kLineWidth > indent ? kLineWidth - indent : 0;
    const size_t per_line = std::max<size_t>(1, width_left / (width + 2));
    std::string text = "[";
    size_t count = 0;
    for_shown(dim, [&](int64_t i) {
      if (count > 0) text += count % per_line == 0 ? ",\n" + std::string(indent + 1, ' ') : ", ";
      count++;
      text += i < 0 ? " ..." : element(offset + i * t_.strides()[dim]);
    });
    return text + "]";
  }

  const Tensor& t_;
  bool summarize_;
  size_t width_ = 1;
  Numbers reals_, imags_;
  FloatFormat real_{{}}, imag_{{}};
};

bool is_default(DType dtype) {
  return dtype == default_dtype() || dtype == to_complex(default_dtype()) ||
         dtype == DType::kInt64 || dtype == DType::kBool;
}

std::string size_text(IntSpan sizes) {
  std::string text = taeda::to_text(sizes);
  text.front() = '(';
  text.back() = ')';
  if (sizes.size() == 1) text.insert(text.size() - 1, ",");
  return "size=" + text;
}

}  // namespace

std::string Tensor::to_string() const {
  if (!defined()) return "tensor(undefined)";
  constexpr std::string_view kPrefix = "tensor(";
  std::string text(kPrefix);
  std::vector<std::string> suffixes;
  if (!device().is_cpu()) suffixes.push_back("device='" + to_text(device()) + "'");
  const bool readable = has_memory(device()) && !impl()->keys.has(Key::kBatched);
  if (!readable || numel() == 0) {
    if (!readable || dim() != 1) suffixes.push_back(size_text(sizes()));
    text += readable ? "[]" : "...";
  } else {
    text += Printer(host_copy(*this)).block(0, 0, kPrefix.size());
  }
  const bool shows_integers = numel() == 0 && dtype() == DType::kInt64;
  if (!is_default(dtype()) || shows_integers)
    suffixes.push_back("dtype=torch." + std::string(to_text(dtype())));
  // Suffixes go on a line of their own where the last one is full.
  const size_t newline = text.rfind('\n');
  size_t last_line =
      text.size() - (newline == std::string::npos ? static_cast<size_t>(-1) : newline) + 1;
  for (const std::string& suffix : suffixes) {
    if (last_line + suffix.size() + 2 > kLineWidth) {
      text += ",\n" + std::string(kPrefix.size(), ' ') + suffix;
      last_line = kPrefix.size() + suffix.size();
    } else {
      text += ", " + suffix;
      last_line += suffix.size() + 2;
    }
  }
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) {
  return out << (x.defined() ? x.to_string() : "Tensor()");
}

}  // namespace taeda
