#include "base/parallel.h"

#include "taeda/error.h"

namespace taeda {
namespace {

thread_local bool in_region = false;

}  // namespace

int available_cpus() { return 1; }
int get_num_threads() { return 1; }
void set_num_threads(int threads) { TD_CHECK(threads > 0, "set_num_threads: expected a positive number, got {}", threads); }
bool in_parallel_region() { return in_region; }
void add_worker_start_hook(void (*)()) {}

void detail::run_chunks(int64_t begin, int64_t end, int64_t chunk, ChunkFn fn, const void* context) {
  const bool outer = in_region;
  struct Restore {
    bool value;
    ~Restore() { in_region = value; }
  } restore{outer};
  in_region = true;
  for (int64_t at = begin; at < end; at += chunk) fn(context, at, at + chunk < end ? at + chunk : end);
}

}  // namespace taeda
