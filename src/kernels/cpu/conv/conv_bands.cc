#include "kernels/cpu/conv/conv_bands.h"

#include <algorithm>
#include <cmath>

namespace taeda::cpu {
namespace {

constexpr double kBandWork = 5e8;      // multiplications of one sample: some hundredths of a second
constexpr double kSlowBandWork = 1e8;  // of the types that take several times as long
constexpr double kBandWindows = 1 << 25;  // elements of windows, where few channels come out
constexpr int64_t kBandPositions = 1024;  // at least, since each band lays out the filters anew

int64_t ceil_div(int64_t a, int64_t b) { return a > 0 ? (a + b - 1) / b : -(-a / b); }

// The outermost spatial dimension that has an extent.
size_t cut_dimension(const ConvProblem& p, const ConvArray& result) {
  size_t d = 0;
  while (d + 1 < p.spatial() && result.sizes[d + 2] == 1) d++;
  return d;
}

// Rows of a band.
int64_t band_rows(const ConvProblem& p, const ConvArray& result, size_t dim) {
  int64_t positions = 1;
  for (size_t d = dim + 1; d < p.spatial(); d++) positions *= result.sizes[d + 2];
  const int64_t rows = result.sizes[dim + 2];
  const double work = p.work_per_sample(),
               windows = work * static_cast<double>(p.groups) /
                         static_cast<double>(std::max<int64_t>(1, p.w.sizes[0]));
  const bool slow = is_complex(p.x.dtype) || p.x.dtype == DType::kFloat64;
  const double band_work = slow ? kSlowBandWork : kBandWork,
               bands = std::ceil(std::max(work / band_work, windows / kBandWindows));
  if (bands < 2) return rows;
  const auto length = static_cast<int64_t>(std::ceil(static_cast<double>(rows) / bands));
  return std::max(length, ceil_div(kBandPositions, positions));
}

// Where bands begin and end, for results of `rows`. One that touches nothing of the other array
// (padding alone) is joined to its neighbour.
template <class Band>
std::vector<ConvProblem> cut(const ConvProblem& p, int64_t rows, int64_t length, const Band& band) {
  std::vector<ConvProblem> bands;
  std::vector<int64_t> begins;
  int64_t begin = 0, count = length;
  while (length < rows && begin < rows) {
    count = std::min(count, rows - begin);
    ConvProblem part = p;
    if (band(part, begin, count)) {
      bands.push_back(part);
      begins.push_back(begin);
      begin += count;
      count = length;
    } else if (begin + count < rows) {
      count += length;
    } else {
      if (bands.empty()) break;
      begin = begins.back();
      count = rows - begin;
      bands.pop_back();
      begins.pop_back();
    }
  }
  if (bands.empty()) bands.push_back(p);
  return bands;
}

}  // namespace

std::vector<ConvProblem> bands_of_y(const ConvProblem& p) {
  const size_t d = cut_dimension(p, p.y), dim = d + 2;
  const int64_t reach = (p.w.sizes[dim] - 1) * p.dilation[d];
  return cut(p, p.y.sizes[dim], band_rows(p, p.y, d),
             [&](ConvProblem& part, int64_t begin, int64_t rows) {
               const int64_t first = begin * p.stride[d] - p.padding[d],
                             end = first + (rows - 1) * p.stride[d] + reach + 1,
                             from = std::max<int64_t>(0, first), to = std::min(p.x.sizes[dim], end);
               if (from >= to) return false;
               part.y = p.y.slice(d + 2, begin, rows);
               part.x = p.x.slice(d + 2, from, to - from);
               part.padding[d] = from - first;
               return true;
             });
}

std::vector<ConvProblem> bands_of_x(const ConvProblem& p) {
  const size_t d = cut_dimension(p, p.x), dim = d + 2;
  const int64_t reach = (p.w.sizes[dim] - 1) * p.dilation[d], stride = p.stride[d];
  return cut(p, p.x.sizes[dim], band_rows(p, p.x, d),
             [&](ConvProblem& part, int64_t begin, int64_t rows) {
               // Rows of y whose windows touch these of x.
               const int64_t first = begin + p.padding[d],
                             from = std::max<int64_t>(0, ceil_div(first - reach, stride)),
                             to = std::min(p.y.sizes[dim], (first + rows - 1) / stride + 1);
               if (from >= to || first < from * stride) return false;
               part.x = p.x.slice(d + 2, begin, rows);
               part.y = p.y.slice(d + 2, from, to - from);
               part.padding[d] = first - from * stride;
               return true;
             });
}

}  // namespace taeda::cpu
