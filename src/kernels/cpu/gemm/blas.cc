#include "kernels/cpu/gemm/blas.h"

#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
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

const DynamicLibrary& openblas() {
  static const DynamicLibrary& library = *new const DynamicLibrary([] {
    require_memory(kLibraryBytes);
    const OneCpu one_cpu;
    auto opened = DynamicLibrary::open("libscipy_openblas.so");
    TD_CHECK(opened.is_open(), "cannot open OpenBLAS: {}", opened.error());
    on_exit(OpenBlasCall::leave_process, nullptr);
    OpenBlasCall::forget_callers_after_fork();
    void (*set_num_threads)(int);
    opened.load(set_num_threads, "scipy_openblas_set_num_threads");
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
void take_buffer() {
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
    take_buffer();
  } catch (...) {
    callers_.fetch_sub(1, std::memory_order_relaxed);  // there will be no destructor
    throw;
  }
  int known = buffers_.load();
  while (known < callers && !buffers_.compare_exchange_weak(known, callers)) {
  }
}

void OpenBlasCall::leave_process(int status, void*) {
  if (callers_.load() == 0) return;
  std::fflush(nullptr);
  _exit(status);
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
