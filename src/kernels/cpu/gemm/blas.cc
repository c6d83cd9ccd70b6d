#include "kernels/cpu/gemm/blas.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "base/dynamic_library.h"
#include "taeda/error.h"

namespace taeda::cpu {

namespace {

// OpenBLAS starts one thread for each CPU that it sees while it is being loaded. Seeing one, it
// starts none.
class OneCpu {
 public:
  OneCpu() {
    cpu_set_t one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof(saved_), &saved_) != 0) return;
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
      if (!CPU_ISSET(cpu, &saved_)) continue;
      CPU_SET(cpu, &one);
      break;
    }
    pinned_ = sched_setaffinity(0, sizeof(one), &one) == 0;
  }
  ~OneCpu() {
    if (pinned_) sched_setaffinity(0, sizeof(saved_), &saved_);
  }
  OneCpu(const OneCpu&) = delete;
  OneCpu& operator=(const OneCpu&) = delete;

 private:
  cpu_set_t saved_;
  bool pinned_ = false;
};

constexpr size_t kBufferBytes = size_t{33} << 20;    // of OpenBLAS, and a little more
constexpr size_t kLibraryBytes = size_t{128} << 20;  // with its first buffer

// OutOfMemoryError unless the system would give so much memory.
void require_memory(size_t bytes) {
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  TD_CHECK_AS(ErrorKind::kOutOfMemory, memory != MAP_FAILED,
              "CPU out of memory: OpenBLAS needs {} MiB to work in", bytes >> 20);
  munmap(memory, bytes);
}

// When the process exits, OpenBLAS's destructors would free the buffers that calls on other threads
// (daemons, calls left behind) are working in. What they free the system takes back anyway: a
// function that does nothing stands in for each of those that `symbol`'s library lists.
void drop_destructors(const void* symbol) {
  Dl_info info;
  link_map* library = nullptr;
  if (!dladdr1(symbol, &info, reinterpret_cast<void**>(&library), RTLD_DL_LINKMAP)) return;
  uintptr_t begin = 0, bytes = 0;
  for (const ElfW(Dyn)* entry = library->l_ld; entry->d_tag != DT_NULL; entry++) {
    if (entry->d_tag == DT_FINI_ARRAY) begin = library->l_addr + entry->d_un.d_ptr;
    if (entry->d_tag == DT_FINI_ARRAYSZ) bytes = entry->d_un.d_val;
  }
  const auto page = static_cast<uintptr_t>(getpagesize());
  const uintptr_t first = begin / page * page;
  if (bytes == 0 ||
      mprotect(reinterpret_cast<void*>(first), begin + bytes - first, PROT_READ | PROT_WRITE) != 0)
    return;
  using Destructor = void (*)();
  std::fill_n(reinterpret_cast<Destructor*>(begin), bytes / sizeof(Destructor), [] {});
}

const DynamicLibrary& openblas() {
  static const DynamicLibrary& library = *new const DynamicLibrary([] {
    require_memory(kLibraryBytes);
    const OneCpu one_cpu;
    auto opened = DynamicLibrary::open("libscipy_openblas.so");
    TD_CHECK(opened.is_open(), "cannot open OpenBLAS: {}", opened.error());
    OpenBlasCall::forget_callers_after_fork();
    void (*set_num_threads)(int);
    opened.load(set_num_threads, "scipy_openblas_set_num_threads");
    drop_destructors(reinterpret_cast<const void*>(set_num_threads));
    set_num_threads(1);
    return opened;
  }());
  return library;
}

Blas load_blas() {
  const DynamicLibrary& library = openblas();
  Blas table;
  library.load(table.sgemm, "scipy_cblas_sgemm");
  library.load(table.dgemm, "scipy_cblas_dgemm");
  library.load(table.cgemm, "scipy_cblas_cgemm");
  library.load(table.zgemm, "scipy_cblas_zgemm");
  library.load(table.sgemv, "scipy_cblas_sgemv");
  library.load(table.dgemv, "scipy_cblas_dgemv");
  return table;
}

// Small products and decompositions do without a buffer: this call takes one.
void reserve_buffer() {
  using Syrk = void(BlasOrder, int uplo, BlasTranspose, int n, int k, double alpha, const double* a,
                    int lda, double beta, double* c, int ldc);
  static Syrk* const syrk = reinterpret_cast<Syrk*>(cblas("cblas_dsyrk"));
  constexpr int kUpper = 121;
  const double a = 0;
  double c = 0;
  syrk(BlasOrder::kRowMajor, kUpper, BlasTranspose::kNone, 1, 1, 1.0, &a, 1, 0.0, &c, 1);
}

}  // namespace

std::atomic<int> OpenBlasCall::callers_{0}, OpenBlasCall::buffers_{0};

void OpenBlasCall::forget_callers_after_fork() {
  pthread_atfork(nullptr, nullptr, [] { callers_.store(0); });
}

void OpenBlasCall::find_memory(int callers) {
  try {
    openblas();
    require_memory(kBufferBytes);
    reserve_buffer();
  } catch (...) {
    callers_.fetch_sub(1, std::memory_order_relaxed);  // there will be no destructor
    throw;
  }
  int known = buffers_.load();
  while (known < callers && !buffers_.compare_exchange_weak(known, callers)) {
  }
}

const Blas& blas() {
  static const Blas table = load_blas();
  return table;
}

void* cblas(const char* name) {
  void* routine = openblas().find(("scipy_" + std::string(name)).c_str());
  TD_CHECK(routine, "OpenBLAS has no routine {}", name);
  return routine;
}

void* lapack(const char* name) {
  void* routine = openblas().find(("scipy_" + std::string(name) + "_").c_str());
  TD_CHECK(routine, "OpenBLAS has no routine {}", name);
  return routine;
}

}  // namespace taeda::cpu
