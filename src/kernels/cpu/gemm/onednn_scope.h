// OneThread: while it lives, oneDNN on this thread uses this thread only (taeda's pool splits the
// work).
//
// oneDNN's CPU build asks OpenMP how many threads to use; OpenMP keeps that number per thread, and
// other libraries of the process may rely on it, so it is put back.
#pragma once

#include <omp.h>

namespace taeda::cpu {

class OneThread {
 public:
  OneThread() : saved_(omp_get_max_threads()) {
    if (saved_ != 1) omp_set_num_threads(1);
  }
  ~OneThread() {
    if (saved_ != 1) omp_set_num_threads(saved_);
  }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int saved_;
};

}  // namespace taeda::cpu
