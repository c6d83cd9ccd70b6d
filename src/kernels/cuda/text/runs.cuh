// Values of equal keys, which are sorted, combined with one element: in the order of their numbers,
// without atomics, so with the same bits each time.
//
//   to[key][c] = to[key][c] op value[order_p][c] op ... for the p with key_p = key
//
// A run is cut in front of each key whose number is a multiple of kPiece, and a thread goes along a
// piece. A run of one piece is finished by its thread; of others each piece leaves a partial
// result, and in a second launch a warp combines those of a run. Each value is read once, each
// element of `to` that is named is read and written once; partial results are 1 / 128 of the
// values, or less.
//
// A Column<T> is made of a kernel's argument and the number of a column; it has to(key) and
// value(number).
#pragma once
#include "kernels/cuda/text/combine.cuh"
#include "kernels/cuda/text/group.cuh"

namespace taeda::device {

// Whether key p is of the run of the one in front of it.
TD_FN bool is_continued(const Runs& r, uint64_t p) {
  return p > 0 && p < r.count && r.keys[p] == r.keys[p - 1];
}
// Where the piece that begins at key p leaves its result.
template <class T>
TD_FN T* partial_of(const Runs& r, uint64_t column, uint64_t p) {
  const uint64_t slots = (r.count + kPiece - 1) / kPiece;
  return reinterpret_cast<T*>(r.partials) + 2 * (column * slots + p / kPiece) + (p % kPiece != 0);
}

template <class T, class Column, class Args>
TD_FN void combine_pieces(const Args& a) {
  const Runs& r = a.runs;
  for (uint64_t i = first_index(); i < r.count * r.columns; i += index_step()) {
    const uint64_t first = i / r.columns, number = i - first * r.columns, key = r.keys[first];
    if (key >> 63 || (first % kPiece != 0 && is_continued(r, first))) continue;
    const uint64_t end = (first / kPiece + 1) * kPiece;
    const bool is_cut = is_continued(r, first) || (end < r.count && r.keys[end] == key);
    const Column column(a, number);
    char* const to = column.to(key);
    bool any = !is_cut;
    T result = any ? load<T>(to, a.type) : T(0);
    for (uint64_t p = first; p < end && p < r.count && r.keys[p] == key; p++) {
      const T value = column.value(r.order[p]);
      result = any ? combined(r.combine, result, value) : value;
      any = true;
    }
    if (is_cut)
      *partial_of<T>(r, number, first) = result;
    else
      store(to, a.type, result);
  }
}

// The partial results of a run begin with that of the piece in front of `slot`, the first one that
// begins inside the run.
template <class T, class Column, class Args>
TD_FN void combine_partials(const Args& a) {
  const Runs& r = a.runs;
  const Group warp{32};
  const uint64_t slots = (r.count + kPiece - 1) / kPiece;
  for (uint64_t i = warp.first(); i < (slots - 1) * r.columns; i += warp.step()) {
    const uint64_t slot = i / r.columns + 1, before = (slot - 1) * kPiece;
    const uint64_t number = i - (slot - 1) * r.columns, key = r.keys[slot * kPiece];
    if (key >> 63 || r.keys[slot * kPiece - 1] != key) continue;
    if (r.keys[before] == key && is_continued(r, before)) continue;
    const T head = *partial_of<T>(r, number, before + (r.keys[before] != key));
    T result = r.combine == Combine::kSum ? T(0) : r.combine == Combine::kProd ? T(1) : head;
    if (warp.rank() == 0) result = head;
    for (uint64_t k = slot + (warp.rank() + 31) % 32; k < slots && r.keys[k * kPiece] == key;
         k += 32)
      result = combined(r.combine, result, *partial_of<T>(r, number, k * kPiece));
    result = warp.reduce(result, [&](const T& x, const T& y) { return combined(r.combine, x, y); });
    char* const to = Column(a, number).to(key);
    if (warp.rank() == 0) store(to, a.type, combined(r.combine, load<T>(to, a.type), result));
  }
}

}  // namespace taeda::device
