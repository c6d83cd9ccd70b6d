#include "kernels/cpu/loop.h"

#include <complex>
#include <cstring>

#include "base/parallel.h"
#include "kernels/cpu/loop_plan.h"
#include "taeda/error.h"

namespace taeda {

namespace cpu {
namespace {

constexpr int64_t kBlockBytes = 8192;
// Runs shorter than this are gathered into blocks instead of being handed to the kernel one by one.
constexpr int64_t kShortRun = 32;

template <class T>
void gather(void* dst, const char* src, int64_t stride, int64_t n) {
  T* y = static_cast<T*>(dst);
  if (stride == 0) {
    T value;
    std::memcpy(&value, src, sizeof(T));
    for (int64_t i = 0; i < n; i++) y[i] = value;
    return;
  }
  for (int64_t i = 0; i < n; i++) std::memcpy(y + i, src + i * stride, sizeof(T));
}
template <class T>
void scatter(char* dst, int64_t stride, const void* src, int64_t n) {
  const T* x = static_cast<const T*>(src);
  for (int64_t i = 0; i < n; i++) std::memcpy(dst + i * stride, x + i, sizeof(T));
}

struct Pair {
  uint64_t a, b;
};

// n elements of `itemsize` bytes, `stride` bytes apart, one after the other into dst.
void gather_items(void* dst, const char* src, int64_t itemsize, int64_t stride, int64_t n) {
  if (stride == itemsize) {
    std::memcpy(dst, src, static_cast<size_t>(n * itemsize));
    return;
  }
  switch (itemsize) {
    case 1:
      return gather<uint8_t>(dst, src, stride, n);
    case 2:
      return gather<uint16_t>(dst, src, stride, n);
    case 4:
      return gather<uint32_t>(dst, src, stride, n);
    case 8:
      return gather<uint64_t>(dst, src, stride, n);
    default:
      return gather<Pair>(dst, src, stride, n);
  }
}
void scatter_items(char* dst, const void* src, int64_t itemsize, int64_t stride, int64_t n) {
  if (stride == itemsize) {
    std::memcpy(dst, src, static_cast<size_t>(n * itemsize));
    return;
  }
  switch (itemsize) {
    case 1:
      return scatter<uint8_t>(dst, stride, src, n);
    case 2:
      return scatter<uint16_t>(dst, stride, src, n);
    case 4:
      return scatter<uint32_t>(dst, stride, src, n);
    case 8:
      return scatter<uint64_t>(dst, stride, src, n);
    default:
      return scatter<Pair>(dst, stride, src, n);
  }
}

// How one operand's memory meets the dense arrays that a kernel wants.
struct Operand {
  int64_t itemsize;
  int64_t stride;     // along the run, in bytes
  ConvertFn convert;  // null: already the kernel's dtype
  bool direct;        // the kernel may use the memory as it is
};

constexpr int kMaxOperands = static_cast<int>(kMaxLoopInputs) + 1;
using Plan = LoopPlan<kMaxOperands>;

struct Scratch {
  const char* held[kMaxOperands] = {};  // the address whose elements an input's buffer holds
  int64_t held_count[kMaxOperands] = {};
  alignas(64) char raw[kBlockBytes];
  alignas(64) char buffer[kMaxOperands][kBlockBytes];
};

struct Kernel {
  DenseFn fn;
  const void* params;
  int operands;
  Operand operand[kMaxOperands];
  int64_t fn_out_itemsize;
};

// Runs along dimension 0: operands that are dense there are used in place.
void loop_by_runs(const Plan& plan, const Kernel& kernel, int64_t block) {
  for_each_run<Scratch>(plan, block, [&](Scratch& scratch, char* const* at, int64_t n) {
    const void* in[kMaxOperands];
    for (int k = 1; k < kernel.operands; k++) {
      const Operand& op = kernel.operand[k];
      if (op.direct) {
        in[k - 1] = at[k];
        continue;
      }
      in[k - 1] = scratch.buffer[k];
      if (scratch.held[k] == at[k] && scratch.held_count[k] >= n) continue;
      if (op.convert && op.stride == op.itemsize) {
        op.convert(scratch.buffer[k], at[k], n);
      } else if (op.convert) {
        gather_items(scratch.raw, at[k], op.itemsize, op.stride, n);
        op.convert(scratch.buffer[k], scratch.raw, n);
      } else {
        gather_items(scratch.buffer[k], at[k], op.itemsize, op.stride, n);
      }
      // Only what no run of this loop writes may be reused: repeated (broadcast) values.
      scratch.held[k] = at[k];
      scratch.held_count[k] = n;
    }
    const Operand& out = kernel.operand[0];
    if (out.direct) {
      kernel.fn(at[0], in, n, kernel.params);
      return;
    }
    kernel.fn(scratch.buffer[0], in, n, kernel.params);
    if (!out.convert) {
      scatter_items(at[0], scratch.buffer[0], out.itemsize, out.stride, n);
    } else if (out.stride == out.itemsize) {
      out.convert(at[0], scratch.buffer[0], n);
    } else {
      out.convert(scratch.raw, scratch.buffer[0], n);
      scatter_items(at[0], scratch.raw, out.itemsize, out.stride, n);
    }
  });
}

// Walks operand k over elements [begin, begin + n) of the loop's order, calling visit(pointer,
// offset, count) for each piece that lies in one run of dimension 0.
template <class Visit>
void visit_pieces(const Plan& plan, int k, int64_t begin, int64_t n, const Visit& visit) {
  int64_t index[Plan::kMaxDims];
  char* at = plan.data[k];
  int64_t rest = begin;
  for (int d = 0; d < plan.ndim; d++) {
    index[d] = rest % plan.sizes[d];
    rest /= plan.sizes[d];
    at += index[d] * plan.strides[d][k];
  }
  for (int64_t done = 0; done < n;) {
    const int64_t count = std::min(n - done, plan.sizes[0] - index[0]);
    visit(at, done, count);
    done += count;
    index[0] += count;
    at += count * plan.strides[0][k];
    for (int d = 0; d + 1 < plan.ndim && index[d] == plan.sizes[d]; d++) {
      at += plan.strides[d + 1][k] - plan.sizes[d] * plan.strides[d][k];
      index[d] = 0;
      index[d + 1]++;
    }
  }
}

// Blocks of the loop's order, whatever the runs: for loops whose innermost dimension is short.
void loop_by_blocks(const Plan& plan, const Kernel& kernel, int64_t block) {
  bool linear[kMaxOperands];
  for (int k = 0; k < kernel.operands; k++)
    linear[k] = plan.is_linear(k, kernel.operand[k].itemsize);
  const int64_t blocks = (plan.numel + block - 1) / block;
  parallel_for(
      0, blocks, std::max<int64_t>(1, kLoopGrain / block), [&](int64_t first, int64_t last) {
        Scratch scratch;
        for (int64_t b = first; b < last; b++) {
          const int64_t begin = b * block, n = std::min(block, plan.numel - begin);
          const void* in[kMaxOperands];
          for (int k = 1; k < kernel.operands; k++) {
            const Operand& op = kernel.operand[k];
            const char* source = plan.data[k] + begin * op.itemsize;
            if (!linear[k]) {
              char* target = op.convert ? scratch.raw : scratch.buffer[k];
              visit_pieces(plan, k, begin, n, [&](char* at, int64_t offset, int64_t count) {
                gather_items(target + offset * op.itemsize, at, op.itemsize, op.stride, count);
              });
              source = target;
            }
            if (op.convert) op.convert(scratch.buffer[k], source, n);
            in[k - 1] = op.convert ? scratch.buffer[k] : source;
          }
          const Operand& out = kernel.operand[0];
          char* target = plan.data[0] + begin * out.itemsize;
          kernel.fn(linear[0] && !out.convert ? target : scratch.buffer[0], in, n, kernel.params);
          const char* source = scratch.buffer[0];
          if (out.convert) {
            out.convert(linear[0] ? target : scratch.raw, source, n);
            source = scratch.raw;
          }
          if (!linear[0]) {
            visit_pieces(plan, 0, begin, n, [&](char* at, int64_t offset, int64_t count) {
              scatter_items(at, source + offset * out.itemsize, out.itemsize, out.stride, count);
            });
          }
        }
      });
}

// Row-major, or any other order without gaps.
bool is_dense(const View& v) {
  int64_t expected = 1;
  bool row_major = true;
  for (size_t d = v.sizes.size(); d-- > 0;) {
    row_major &= v.strides[d] == expected || v.sizes[d] == 1;
    expected *= v.sizes[d];
  }
  return row_major;
}
bool same_layout(const View& a, const View& b) {
  for (size_t d = 0; d < a.sizes.size(); d++) {
    if (a.strides[d] != b.strides[d] && a.sizes[d] != 1) return false;
  }
  return true;
}

void loop_dense(DenseFn fn, int64_t out_itemsize, int64_t in_itemsize, const View& out,
                Span<const View> in, const void* params) {
  parallel_for(0, out.numel, kLoopGrain, [&](int64_t begin, int64_t end) {
    const void* data[kMaxLoopInputs];
    for (size_t k = 0; k < in.size(); k++) data[k] = in[k].as<char>() + begin * in_itemsize;
    fn(out.as<char>() + begin * out_itemsize, data, end - begin, params);
  });
}

}  // namespace
}  // namespace cpu

void pointwise_loop(DenseFn fn, DType compute, DType fn_out, const View& out, Span<const View> in,
                    const void* params) {
  using namespace cpu;
  if (out.numel == 0) return;
  TD_CHECK(in.size() <= kMaxLoopInputs, "pointwise_loop: {} inputs, at most {} are supported",
           in.size(), kMaxLoopInputs);
  bool dense = out.dtype == fn_out && is_dense(out);
  for (size_t k = 0; k < in.size() && dense; k++)
    dense = in[k].dtype == compute && same_layout(out, in[k]);
  if (dense) return loop_dense(fn, item_size(fn_out), item_size(compute), out, in, params);

  const View* views[kMaxOperands] = {&out};
  for (size_t k = 0; k < in.size(); k++) views[k + 1] = &in[k];
  Plan plan;
  plan.build(views, static_cast<int>(in.size()) + 1);

  Kernel kernel{fn, params, plan.operands, {}, item_size(fn_out)};
  int64_t widest = std::max(item_size(compute), item_size(fn_out));
  for (int k = 0; k < plan.operands; k++) {
    const DType from = views[k]->dtype, wanted = k == 0 ? fn_out : compute;
    Operand& op = kernel.operand[k];
    op.itemsize = item_size(from);
    op.stride = plan.strides[0][k];
    op.convert = from == wanted ? nullptr
                 : k == 0       ? convert_fn(from, wanted)
                                : convert_fn(wanted, from);
    op.direct = !op.convert && op.stride == op.itemsize;
    widest = std::max(widest, op.itemsize);
  }
  const int64_t block = kBlockBytes / widest;
  if (plan.sizes[0] < kShortRun && plan.ndim > 1) return loop_by_blocks(plan, kernel, block);
  bool all_direct = true;
  for (int k = 0; k < plan.operands; k++) all_direct &= kernel.operand[k].direct;
  loop_by_runs(plan, kernel,
               all_direct                    ? kLoopGrain
               : plan.crosses_memory_order() ? std::min<int64_t>(block, 256)
                                             : block);
}

namespace cpu {

namespace {

struct CopyScratch {
  alignas(64) char raw[kBlockBytes];
  alignas(64) char converted[kBlockBytes];
};

// One run of a copy between strided memories of one item size.
void copy_items(char* dst, int64_t dst_stride, const char* src, int64_t src_stride,
                int64_t itemsize, int64_t n) {
  if (dst_stride == itemsize) return gather_items(dst, src, itemsize, src_stride, n);
  if (src_stride == itemsize) return scatter_items(dst, src, itemsize, dst_stride, n);
  for (int64_t i = 0; i < n; i++) {
    std::memcpy(dst + i * dst_stride, src + i * src_stride, static_cast<size_t>(itemsize));
  }
}

}  // namespace

void copy(const View& dst, const View& src) {
  if (dst.numel == 0) return;
  const View* views[] = {&dst, &src};
  LoopPlan<2> plan;
  plan.build(views, 2);
  const int64_t to = item_size(dst.dtype), from = item_size(src.dtype);
  const int64_t dst_stride = plan.strides[0][0], src_stride = plan.strides[0][1];
  if (dst.dtype == src.dtype) {
    const bool crosses = plan.crosses_memory_order();
    for_each_run<char>(plan, crosses ? 64 : kLoopGrain, [&](char&, char* const* at, int64_t n) {
      copy_items(at[0], dst_stride, at[1], src_stride, to, n);
    });
    return;
  }
  const ConvertFn convert = convert_fn(dst.dtype, src.dtype);
  const int64_t block = kBlockBytes / std::max(to, from);
  for_each_run<CopyScratch>(plan,
                            plan.crosses_memory_order() ? std::min<int64_t>(block, 256) : block,
                            [&](CopyScratch& scratch, char* const* at, int64_t n) {
                              const char* source = at[1];
                              if (src_stride != from) {
                                gather_items(scratch.raw, at[1], from, src_stride, n);
                                source = scratch.raw;
                              }
                              if (dst_stride == to) return convert(at[0], source, n);
                              convert(scratch.converted, source, n);
                              scatter_items(at[0], scratch.converted, to, dst_stride, n);
                            });
}

namespace {

template <class T>
void fill_with(const View& dst, T value) {
  DimVector zeros;
  zeros.resize(dst.sizes.size());
  copy(dst, View{&value, kDTypeOf<T>, dst.sizes, zeros, dst.numel, true});
}

}  // namespace

void fill(const View& dst, const Scalar& value) {
  switch (dst.dtype) {
    case DType::kBool:
      return fill_with(dst, value.to_bool());
    case DType::kUInt8:
      return fill_with(dst, value.to<uint8_t>());
    case DType::kInt8:
      return fill_with(dst, value.to<int8_t>());
    case DType::kInt16:
      return fill_with(dst, value.to<int16_t>());
    case DType::kInt32:
      return fill_with(dst, value.to<int32_t>());
    case DType::kInt64:
      return fill_with(dst, value.to<int64_t>());
    case DType::kFloat16:
      return fill_with(dst, value.to<Half>());
    case DType::kBFloat16:
      return fill_with(dst, value.to<BFloat16>());
    case DType::kFloat32:
      return fill_with(dst, value.to<float>());
    case DType::kFloat64:
      return fill_with(dst, value.to<double>());
    case DType::kComplex64:
      return fill_with(dst, value.to<std::complex<float>>());
    case DType::kComplex128:
      return fill_with(dst, value.to<std::complex<double>>());
  }
}

}  // namespace cpu
}  // namespace taeda
