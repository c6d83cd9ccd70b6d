// The generators whose random numbers a graph draws.
//
// A kernel of a graph finds its seed and offset in device memory: each replay writes there how far
// the generator is, and takes as many numbers from it as the capture did. So replays give different
// numbers, and the same as the work would that was not captured.
#pragma once

#include <optional>
#include <vector>

#include "device/stream.h"
#include "taeda/generator.h"
#include "taeda/storage.h"

namespace taeda::cuda {

// Where the kernels of a capture find a generator's state, and what they add to the offset.
struct CapturedGenerator {
  const uint64_t* words;  // seed, offset
  uint64_t offset;
};

class GraphGenerators {
 public:
  // Before the capture; a generator may be added twice. RuntimeError for one of another kind.
  void add(Generator& generator);
  // Allocates what kernels read; drops what an earlier capture took. RuntimeError for a generator
  // of another device, whose kernels would read this one's memory.
  void begin_capture(int device);
  // Null for a generator that was not added.
  std::optional<CapturedGenerator> take(const Philox& generator, uint64_t words);
  // Whether the work that was captured draws random numbers.
  bool are_used() const;
  // Writes the states on a stream, and moves the generators on.
  void replay(Stream stream);
  void release_memory();

 private:
  struct Entry {
    Ref<Generator> generator;
    Ref<Storage> words;
    uint64_t taken = 0;
  };
  Philox& philox(const Entry& entry) const { return static_cast<Philox&>(*entry.generator); }

  std::vector<Entry> entries_;
};

// While the current stream of the device is captured: the generator's state there, from which
// `words` are taken; else null. RuntimeError for a generator that the graph does not know.
std::optional<CapturedGenerator> captured_generator(const Philox& generator, int device,
                                                    uint64_t words);

}  // namespace taeda::cuda
