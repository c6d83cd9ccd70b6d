#include "kernels/cpu/pointwise/loop.h"

#include <cstring>

#include "base/parallel.h"
#include "core/device_memory.h"
#include "kernels/cpu/index/gather.h"
#include "kernels/cpu/pointwise/loop_plan.h"
#include "kernels/cpu/simd/prefetch.h"
#include "kernels/cpu/simd/stream.h"
#include "kernels/launch.h"
#include "taeda/error.h"

namespace taeda {

namespace cpu {
namespace {

// Runs shorter than this are gathered into blocks instead of being handed to the kernel one by one.
constexpr int64_t kShortRun = 32;

// How one operand's memory meets the dense arrays that a kernel wants.
struct Operand {
  int64_t itemsize;
  int64_t stride;      // along the run, in bytes
  Conversion convert;  // none: already the kernel's dtype
  bool direct;         // the kernel may use the memory as it is
  bool tiled;          // read across memory order
  bool repeated;       // one element along the whole run
};

constexpr int kMaxOperands = static_cast<int>(kMaxLoopInputs) + 1;
using Plan = LoopPlan<kMaxOperands>;

struct Kernel {
  DenseFn fn;
  const void* params;
  int operands;
  Operand operand[kMaxOperands];
  int64_t in_itemsize;  // what fn reads and writes
  int64_t out_itemsize;
  int64_t tile_rows;  // runs that a tile holds
  uint32_t repeated;  // bit k: input k
  bool streamed;      // the result passes by the cache
};

struct Scratch {
  // What an input's buffer holds: `rows` runs of `count` elements, the first of them at `source`.
  struct Held {
    const char* source = nullptr;
    int64_t count = 0;
    int64_t rows = 0;
  };
  Held held[kMaxOperands];
  StreamFence fence;
  alignas(64) char raw[kBlockBytes];
  alignas(64) char buffer[kMaxOperands][kBlockBytes];
};

// kRepeatBytes of copies of the element at `from`, converted.
void repeat_item(char* to, const char* from, const Operand& op, int64_t itemsize) {
  if (op.convert)
    op.convert(to, from, 1);
  else
    std::memcpy(to, from, static_cast<size_t>(itemsize));
  for (int64_t filled = itemsize; filled < kRepeatBytes; filled *= 2)
    std::memcpy(to + filled, to, static_cast<size_t>(filled));
}

// The run of n elements of input k that starts at `at`, dense and in the kernel's dtype. `rows`
// runs follow along dimension 1, this one included. Buffers are kept: what they hold is not written
// by this loop, since an input that shares memory with the output has its layout, and then no two
// runs have the same address.
const void* dense_input(const Kernel& kernel, Scratch& scratch, int k, const char* at, int64_t n,
                        int64_t rows) {
  const Operand& op = kernel.operand[k];
  char* buffer = scratch.buffer[k];
  Scratch::Held& held = scratch.held[k];
  if (op.tiled) {
    int64_t row = (at - held.source) / op.itemsize;
    if (!held.source || row < 0 || row >= held.rows || held.count != n) {
      held = {at, n, std::min(rows, kernel.tile_rows)};
      row = 0;
      gather_tile(op.convert ? scratch.raw : buffer, at, op.itemsize, op.stride, n, held.rows);
      if (op.convert) op.convert(buffer, scratch.raw, n * held.rows);
    }
    return buffer + row * n * kernel.in_itemsize;
  }
  if (held.source == at && held.count >= n) return buffer;
  if (op.repeated) {
    held = {at, INT64_MAX, 1};
    repeat_item(buffer, at, op, kernel.in_itemsize);
    return buffer;
  }
  held = {at, n, 1};
  if (op.convert && op.stride == op.itemsize) {
    op.convert(buffer, at, n);
  } else if (op.convert) {
    gather_items(scratch.raw, at, op.itemsize, op.stride, n);
    op.convert(buffer, scratch.raw, n);
  } else {
    gather_items(buffer, at, op.itemsize, op.stride, n);
  }
  return buffer;
}

// Short runs that lie far apart are not prefetched by the processor itself.
constexpr int64_t kRowsAhead = 8;

// Runs along dimension 0: operands that are dense there are used in place.
void loop_by_runs(const Plan& plan, const Kernel& kernel, int64_t block) {
  const bool crosses = plan.crosses_memory_order();
  for_each_run<Scratch>(
      plan, block, [&](Scratch& scratch, char* const* at, int64_t n, int64_t rows) {
        const void* in[kMaxOperands];
        for (int k = 1; k < kernel.operands; k++) {
          if (crosses && rows > kRowsAhead && kernel.operand[k].direct)
            prefetch_lines(at[k] + kRowsAhead * plan.strides[1][k], n * kernel.operand[k].itemsize);
          in[k - 1] =
              kernel.operand[k].direct ? at[k] : dense_input(kernel, scratch, k, at[k], n, rows);
        }
        const Operand& out = kernel.operand[0];
        if (out.direct && !kernel.streamed) {
          kernel.fn(at[0], in, n, kernel.params, kernel.repeated);
          return;
        }
        kernel.fn(scratch.buffer[0], in, n, kernel.params, kernel.repeated);
        if (kernel.streamed) {
          if (out.convert) out.convert(scratch.raw, scratch.buffer[0], n);
          stream(at[0], out.convert ? scratch.raw : scratch.buffer[0], n * out.itemsize);
          scratch.fence.pending = true;
          return;
        }
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
// offset, count) for each chunk that lies in one run of dimension 0.
template <class Visit>
void visit_chunks(const Plan& plan, int k, int64_t begin, int64_t n, const Visit& visit) {
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

// Elements [begin, begin + n) of operand k in the loop's order, to and from a dense buffer.
void gather_block(const Plan& plan, int k, int64_t itemsize, int64_t begin, int64_t n,
                  char* buffer) {
  const int64_t stride = plan.strides[0][k];
  with_item_type(itemsize, [&](auto t) {
    visit_chunks(plan, k, begin, n, [&](const char* at, int64_t offset, int64_t count) {
      auto* y = reinterpret_cast<decltype(t)*>(buffer) + offset;
      for (int64_t i = 0; i < count; i++) std::memcpy(y + i, at + i * stride, sizeof t);
    });
  });
}
void scatter_block(const Plan& plan, int64_t itemsize, int64_t begin, int64_t n,
                   const char* buffer) {
  const int64_t stride = plan.strides[0][0];
  with_item_type(itemsize, [&](auto t) {
    visit_chunks(plan, 0, begin, n, [&](char* at, int64_t offset, int64_t count) {
      const auto* x = reinterpret_cast<const decltype(t)*>(buffer) + offset;
      for (int64_t i = 0; i < count; i++) std::memcpy(at + i * stride, x + i, sizeof t);
    });
  });
}

// Blocks of the loop's order, whatever the runs: for loops whose innermost dimension is short. A
// block is a whole number of runs, so that an operand which only moves along dimension 0 looks the
// same in every block.
void loop_by_blocks(const Plan& plan, const Kernel& kernel, int64_t block) {
  block -= block % plan.sizes[0];
  bool linear[kMaxOperands], repeats[kMaxOperands];
  for (int k = 0; k < kernel.operands; k++) {
    linear[k] = plan.is_linear(k, kernel.operand[k].itemsize);
    repeats[k] = true;
    for (int d = 1; d < plan.ndim; d++) repeats[k] &= plan.strides[d][k] == 0;
  }
  const auto run_block = [&](Scratch& scratch, int64_t begin, int64_t n) {
    const void* in[kMaxOperands];
    for (int k = 1; k < kernel.operands; k++) {
      const Operand& op = kernel.operand[k];
      const char* source = plan.data[k] + begin * op.itemsize;
      in[k - 1] = linear[k] && !op.convert ? source : scratch.buffer[k];
      if (scratch.held[k].count >= n) continue;
      if (repeats[k]) scratch.held[k].count = n;
      if (!linear[k]) {
        char* target = op.convert ? scratch.raw : scratch.buffer[k];
        gather_block(plan, k, op.itemsize, begin, n, target);
        source = target;
      }
      if (op.convert) op.convert(scratch.buffer[k], source, n);
    }
    const Operand& out = kernel.operand[0];
    char* target = plan.data[0] + begin * out.itemsize;
    kernel.fn(linear[0] && !out.convert ? target : scratch.buffer[0], in, n, kernel.params, 0);
    if (out.convert) out.convert(linear[0] ? target : scratch.raw, scratch.buffer[0], n);
    if (!linear[0])
      scatter_block(plan, out.itemsize, begin, n, out.convert ? scratch.raw : scratch.buffer[0]);
  };
  const int64_t blocks = (plan.numel + block - 1) / block;
  parallel_for(0, blocks, std::max<int64_t>(1, kLoopGrain / block),
               [&](int64_t first, int64_t last) {
                 Scratch scratch;
                 for (int64_t b = first; b < last; b++)
                   run_block(scratch, b * block, std::min(block, plan.numel - b * block));
               });
}

bool is_row_major(const View& v) {
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
  bool in_place = false;
  for (const View& v : in) in_place |= v.data == out.data;
  const int64_t inputs = static_cast<int64_t>(in.size());
  const bool streamed =
      !in_place && worth_streaming(out.numel * (out_itemsize + inputs * in_itemsize));
  const int64_t block = streamed ? kStreamBytes / out_itemsize : INT64_MAX;
  parallel_for(0, out.numel, kLoopGrain, [&](int64_t begin, int64_t end) {
    alignas(64) char buffer[kStreamBytes];
    StreamFence fence;
    fence.pending = streamed;
    for (int64_t at = begin, n; at < end; at += n) {
      n = std::min(block, end - at);
      const void* data[kMaxLoopInputs];
      for (size_t k = 0; k < in.size(); k++) data[k] = in[k].as<char>() + at * in_itemsize;
      char* const target = out.as<char>() + at * out_itemsize;
      fn(streamed ? buffer : target, data, n, params, 0);
      if (streamed) stream(target, buffer, n * out_itemsize);
    }
  });
}

}  // namespace
}  // namespace cpu

void pointwise_loop(DenseFn fn, DType compute, DType fn_out, const View& out, Span<const View> in,
                    const void* params) {
  using namespace cpu;
  if (out.numel == 0 || !has_memory(out.device)) return;
  if (!out.device.is_cpu()) kernels::fail_absent("pointwise", out.device);
  TD_CHECK(in.size() <= kMaxLoopInputs, "pointwise_loop: {} inputs, at most {} are supported",
           in.size(), kMaxLoopInputs);
  bool dense = out.dtype == fn_out && is_row_major(out);
  for (size_t k = 0; k < in.size() && dense; k++)
    dense = in[k].dtype == compute && same_layout(out, in[k]);
  if (dense) return loop_dense(fn, item_size(fn_out), item_size(compute), out, in, params);

  const View* views[kMaxOperands] = {&out};
  for (size_t k = 0; k < in.size(); k++) views[k + 1] = &in[k];
  Plan plan;
  plan.build(views, static_cast<int>(in.size()) + 1);

  Kernel kernel{fn, params, plan.operands, {}, item_size(compute), item_size(fn_out), 0, 0, false};
  int64_t bytes = 0;
  bool overwrites = false;
  int64_t widest = std::max(item_size(compute), item_size(fn_out));
  for (int k = 0; k < plan.operands; k++) {
    const DType from = views[k]->dtype, wanted = k == 0 ? fn_out : compute;
    Operand& op = kernel.operand[k];
    op.itemsize = item_size(from);
    op.stride = plan.strides[0][k];
    if (from != wanted) op.convert = k == 0 ? Conversion(from, wanted) : Conversion(wanted, from);
    op.direct = !op.convert && op.stride == op.itemsize;
    op.tiled = k > 0 && plan.crosses(k) && plan.strides[1][k] == op.itemsize;
    widest = std::max(widest, op.itemsize);
    bytes += plan.footprint(k, op.itemsize);
    overwrites |= k > 0 && plan.data[k] == plan.data[0];
  }
  const int64_t block = kBlockBytes / widest;
  if (plan.sizes[0] < kShortRun && plan.ndim > 1) return loop_by_blocks(plan, kernel, block);
  bool in_place = true;  // no run needs a buffer as long as itself
  for (int k = 0; k < plan.operands; k++) {
    Operand& op = kernel.operand[k];
    op.repeated = k > 0 && op.stride == 0;
    if (op.repeated) kernel.repeated |= 1u << (k - 1);
    in_place &= op.direct || op.repeated;
  }
  kernel.tile_rows = kCacheLine / widest;
  const bool crosses = plan.crosses_memory_order();
  kernel.streamed = (crosses ? worth_streaming_chunks(bytes) : worth_streaming(bytes)) &&
                    !overwrites && kernel.operand[0].stride == kernel.operand[0].itemsize;
  loop_by_runs(plan, kernel,
               crosses           ? kTileLength
               : kernel.streamed ? kStreamBytes / widest
               : in_place        ? kLoopGrain
                                 : block);
}

}  // namespace taeda
