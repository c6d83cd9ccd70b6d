// A small libFuzzer: feeds LLVMFuzzerTestOneInput with mutants of the files of a folder and keeps
// those that reach new code. For compilers without libFuzzer; gcc's -fsanitize-coverage=trace-pc
// calls
// __sanitizer_cov_trace_pc() at every branch.
//
//   fuzz_readers FOLDER -runs=N -seed=S -max_len=N -artifact_prefix=DIR/
//
// Other options of libFuzzer's are accepted and do nothing. An input that ends the process, or
// takes over five seconds, is left in DIR/crash.bin.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

using Bytes = std::vector<uint8_t>;
std::array<uint8_t, 1 << 16> edges;
uintptr_t last;

struct Options {
  std::string folder, artifacts = "./";
  int64_t runs = 10000, seed = 1;
  size_t max_bytes = 4096;
};

struct Input {
  std::string path;
  const Bytes* bytes = nullptr;
} current;

// Async-signal-safe: the process may be in any state.
void keep_input(int signal) {
  const int file = open(current.path.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0644);
  if (file >= 0 && current.bytes) (void)!write(file, current.bytes->data(), current.bytes->size());
  ::signal(signal, SIG_DFL);
  raise(signal);
}

bool runs_into_new_code(const Bytes& input) {
  static std::array<uint8_t, 1 << 16> known;
  edges.fill(0);
  last = 0;
  current.bytes = &input;
  alarm(5);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  alarm(0);
  bool fresh = false;
  for (size_t i = 0; i < edges.size(); i++) {
    fresh |= edges[i] > known[i];
    known[i] = std::max(known[i], edges[i]);
  }
  return fresh;
}

class Mutator {
 public:
  explicit Mutator(int64_t seed) : random_(static_cast<uint64_t>(seed)) {}
  size_t below(size_t n) { return n ? random_() % n : 0; }

  Bytes operator()(Bytes x, const Bytes& other, size_t max_bytes) {
    for (size_t rounds = 1 + below(4); rounds > 0; rounds--) change(x, other);
    if (x.size() > max_bytes) x.resize(max_bytes);
    if (below(4) && x.size() >= 8 && other.size() >= 8) fix_length(x);
    return x;
  }

 private:
  void change(Bytes& x, const Bytes& other) {
    const size_t at = below(x.size() + 1), n = std::min(x.size() - at, 1 + below(16));
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(at),
               end = begin + static_cast<std::ptrdiff_t>(n);
    switch (below(6)) {
      case 0:
        if (at < x.size()) x[at] = static_cast<uint8_t>(x[at] ^ (1 << below(8)));
        break;
      case 1:
        x.erase(begin, end);
        break;
      case 2: {
        const Bytes copy(begin, end);
        x.insert(x.begin() + static_cast<std::ptrdiff_t>(below(x.size() + 1)), copy.begin(),
                 copy.end());
        break;
      }
      case 3:
        for (auto it = begin; it != end; ++it) *it = static_cast<uint8_t>(random_());
        break;
      case 4:
        insert(x, at, kWords[below(kWords.size())]);
        break;
      default: {
        const size_t from = below(other.size() + 1), to = from + below(other.size() - from + 1);
        x.insert(begin, other.begin() + static_cast<std::ptrdiff_t>(from),
                 other.begin() + static_cast<std::ptrdiff_t>(to));
      }
    }
  }
  static void insert(Bytes& x, size_t at, const std::string& text) {
    x.insert(x.begin() + static_cast<std::ptrdiff_t>(at), text.begin(), text.end());
  }
  // The header's length, without which nothing behind it is read.
  void fix_length(Bytes& x) {
    size_t end = x.size();
    while (end > 8 && x[end - 1] != '}') end--;
    const uint64_t length = end - 8;
    for (size_t i = 0; i < 8; i++) x[i] = static_cast<uint8_t>(length >> (8 * i));
  }

  const std::vector<std::string> kWords = {"{",
                                           "}",
                                           "[",
                                           "]",
                                           "\"",
                                           ",",
                                           ":",
                                           "0",
                                           "-1",
                                           "1e9",
                                           "8",
                                           "\\u00",
                                           "\\ud83d",
                                           "null",
                                           "true",
                                           "9223372036854775807",
                                           "\"F32\"",
                                           "\"a\"",
                                           "[]",
                                           "\xFF",
                                           "\"__metadata__\":",
                                           "\"dtype\":",
                                           "\"shape\":",
                                           "\"data_offsets\":"};
  std::mt19937_64 random_;
};

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; i++) {
    const std::string text = arguments[i];
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals),
                      value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (text[0] != '-') options.folder = text;
    if (name == "-runs") options.runs = std::atoll(value.c_str());
    if (name == "-seed") options.seed = std::atoll(value.c_str());
    if (name == "-max_len") options.max_bytes = static_cast<size_t>(std::atoll(value.c_str()));
    if (name == "-artifact_prefix") options.artifacts = value;
  }
  return options;
}

std::vector<Bytes> read_folder(const std::string& folder) {
  std::vector<Bytes> files = {{}};
  if (folder.empty()) return files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    files.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return files;
}

}  // namespace

extern "C" void __sanitizer_cov_trace_pc() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  uint8_t& edge = edges[(here ^ last) & 0xFFFF];
  if (edge < 4) edge++;
  last = here >> 1;
}

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  current.path = options.artifacts + "crash.bin";
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM})
    ::signal(signal, keep_input);
  std::vector<Bytes> files = read_folder(options.folder);
  for (const Bytes& file : files) runs_into_new_code(file);
  const size_t honest = files.size();
  Mutator mutate(options.seed);
  for (int64_t run = 0; run < options.runs; run++) {
    const Bytes& other = files[mutate.below(files.size())];
    Bytes mutant = mutate(files[mutate.below(files.size())], other, options.max_bytes);
    if (runs_into_new_code(mutant)) files.push_back(std::move(mutant));
  }
  std::fprintf(stderr, "Done %lld runs, %zu honest files, %zu more reach new code\n",
               static_cast<long long>(options.runs), honest, files.size() - honest);
}
