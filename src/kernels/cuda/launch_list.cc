#include "kernels/cuda/launch_list.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "device/launch.h"
#include "device/put_off.h"
#include "kernels/cuda/kernel_name.h"

namespace taeda::cuda {
namespace {

struct List {
  std::vector<ListRow> rows;
  std::string kernel;
  Functor functor{};
  int device = 0, inputs = 0;
  DType stored = DType::kFloat32;
};

thread_local std::unique_ptr<List> list;  // what the thread has put off

struct Bytes {
  const char *begin, *end;
  size_t row;
};

Bytes bytes_of(const List& calls, size_t i, int operand) {
  const ListRow& row = calls.rows[i];
  const auto* const begin = static_cast<const char*>(row.operands[operand]);
  const uint8_t bit = operand > 0 ? static_cast<uint8_t>(1 << (operand - 1)) : 0;
  if (row.given & bit) return {nullptr, nullptr, i};
  const int64_t itemsize = row.single & bit ? sizeof(float) : item_size(calls.stored);
  return {begin, begin + itemsize * (row.repeated & bit ? 1 : row.n), i};
}

// Whether no call writes what another one reads or writes: then their order does not matter.
bool independent(const List& calls) {
  std::vector<Bytes> written;
  for (size_t i = 0; i < calls.rows.size(); i++) written.push_back(bytes_of(calls, i, 0));
  std::ranges::sort(written, {}, &Bytes::begin);
  for (size_t i = 1; i < written.size(); i++)
    if (written[i].begin < written[i - 1].end) return false;
  for (size_t i = 0; i < calls.rows.size(); i++) {
    for (int k = 1; k <= calls.inputs; k++) {
      const Bytes read = bytes_of(calls, i, k);
      auto other = std::ranges::upper_bound(written, read.begin, {}, &Bytes::end);
      for (; other != written.end() && other->begin < read.end; ++other)
        if (other->row != i) return false;
    }
  }
  return true;
}

template <int N>
void launch_rows(const List& calls, size_t begin, size_t end) {
  PointwiseArgument<device::ListArgs<N>> argument{.functor = calls.functor};
  static_assert(sizeof(argument) <= 4096, "CUDA's limit");
  auto& loop = argument.loop;
  SmallVector<Access, 16> accesses;
  for (size_t i = begin; i < end; i++) {
    const ListRow& row = calls.rows[i];
    device::ListCall<N>& call = loop.calls[loop.count++];
    uintptr_t bits = 0;
    for (int k = 0; k <= N; k++) {
      const Bytes touched = bytes_of(calls, i, k);
      if (touched.begin) accesses.push_back({touched.begin, touched.end - touched.begin, k == 0});
      const bool array = k == 0 || !((row.given | row.repeated) >> (k - 1) & 1);
      if (array) bits |= reinterpret_cast<uintptr_t>(row.operands[k]);
      if (k > 0) call.in[k - 1] = row.operands[k];
    }
    call.out = const_cast<void*>(row.operands[0]);
    call.n = static_cast<uint32_t>(row.n), call.first = loop.chunks;
    call.given = row.given, call.repeated = row.repeated, call.single = row.single;
    call.aligned = bits % 16 == 0;
    loop.chunks += (call.n + device::kListChunk - 1) / device::kListChunk;
  }
  launch(calls.device, calls.kernel, int64_t{loop.chunks} * kThreadsPerBlock, &argument, accesses);
}

template <int N>
void launch_calls(const List& calls) {
  const size_t step = independent(calls) ? size_t{device::kListCalls<N>} : 1;
  for (size_t i = 0; i < calls.rows.size(); i += step)
    launch_rows<N>(calls, i, std::min(i + step, calls.rows.size()));
}

void launch_list() {
  static constexpr void (*kLaunches[])(const List&) = {launch_calls<1>, launch_calls<2>,
                                                       launch_calls<3>};
  static_assert(std::size(kLaunches) == device::kMaxListInputs);
  const List calls = std::exchange(*list, {});
  kLaunches[calls.inputs - 1](calls);
}

bool is_same(const Functor& a, const Functor& b) {
  return std::memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

}  // namespace

void put_off(const PointwiseCall& call, int device, DType stored, int inputs, const ListRow& row) {
  std::string kernel = kernel_name(call.loop.name, stored, "_list");
  const Functor functor(call);
  if (!list) list = std::make_unique<List>();
  List& l = *list;
  if (launch_put_off != launch_list || l.device != device || l.kernel != kernel ||
      !is_same(l.functor, functor))
    launch_what_is_put_off();
  if (l.rows.empty()) {
    l.kernel = std::move(kernel);
    l.functor = functor, l.device = device, l.stored = stored, l.inputs = inputs;
    launch_put_off = launch_list;
  }
  l.rows.push_back(row);
}

}  // namespace taeda::cuda
