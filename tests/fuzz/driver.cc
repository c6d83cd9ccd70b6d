// A small libFuzzer: feeds LLVMFuzzerTestOneInput with mutants of the files of a folder and keeps
// those that reach new code. For compilers without libFuzzer; gcc's -fsanitize-coverage=trace-pc
// calls __sanitizer_cov_trace_pc() at every branch, and a target may count more in the section
// __libfuzzer_extra_counters.
//
//   fuzz_readers FOLDER -runs=N -seed=S -max_len=N -timeout=SECONDS -rss_limit_mb=N -dict=FILE
//     -artifact_prefix=DIR/
//
// Other options of libFuzzer's are accepted and do nothing. An input that ends the process, or
// takes longer (of the processor's time), is left in DIR/crash.bin.
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
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
extern "C" __attribute__((weak)) int LLVMFuzzerInitialize(int* count, char*** arguments);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size,
                                                                size_t max_size, unsigned int seed);
extern "C" {  // the linker's names for the ends of the section
extern uint8_t __start___libfuzzer_extra_counters __attribute__((weak));
extern uint8_t __stop___libfuzzer_extra_counters __attribute__((weak));
}

namespace {

using Bytes = std::vector<uint8_t>;
std::array<uint8_t, 1 << 16> edges;
uintptr_t last;

struct Options {
  std::string folder, artifacts = "./", words;
  int64_t runs = 10000, seed = 1, seconds = 5, megabytes = 0;
  size_t max_bytes = 4096;
} options;

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

// SIGPROF after so many seconds of the processor's time, so that a busy machine makes nothing hang;
// SIGALRM after many more, for what waits.
void set_alarm(int64_t seconds) {
  const itimerval limit = {{0, 0}, {seconds, 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
  alarm(static_cast<unsigned>(12 * seconds));
}

// Whether one of the counters is higher than ever.
bool take_news(uint8_t* counters, Bytes& known) {
  bool fresh = false;
  for (size_t i = 0; i < known.size(); i++) {
    fresh |= counters[i] > known[i];
    known[i] = std::max(known[i], counters[i]);
  }
  return fresh;
}

bool runs_into_new_code(const Bytes& input) {
  uint8_t* const more = &__start___libfuzzer_extra_counters;
  static Bytes known(edges.size());
  static Bytes known_more(static_cast<size_t>(&__stop___libfuzzer_extra_counters - more));
  edges.fill(0);
  std::fill_n(more, known_more.size(), uint8_t{0});
  last = 0;
  current.bytes = &input;
  set_alarm(options.seconds);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  set_alarm(0);
  const bool fresh = take_news(edges.data(), known);
  return take_news(more, known_more) || fresh;
}

class Mutator {
 public:
  Mutator(int64_t seed, std::vector<std::string> words)
      : random_(static_cast<uint64_t>(seed)), words_(std::move(words)) {}
  size_t below(size_t n) { return n ? random_() % n : 0; }

  Bytes operator()(Bytes x, const Bytes& other, size_t max_bytes) {
    for (size_t rounds = 1 + below(4); rounds > 0; rounds--) change(x, other);
    if (x.size() > max_bytes) x.resize(max_bytes);
    return x;
  }

 private:
  void change(Bytes& x, const Bytes& other) {
    const size_t at = below(x.size() + 1), n = std::min(x.size() - at, 1 + below(16));
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(at),
               end = begin + static_cast<std::ptrdiff_t>(n);
    switch (below(words_.empty() ? 5 : 6)) {
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
      case 4: {
        const size_t from = below(other.size() + 1), to = from + below(other.size() - from + 1);
        x.insert(begin, other.begin() + static_cast<std::ptrdiff_t>(from),
                 other.begin() + static_cast<std::ptrdiff_t>(to));
        break;
      }
      default: {
        const std::string& word = words_[below(words_.size())];
        x.insert(begin, word.begin(), word.end());
      }
    }
  }

  std::mt19937_64 random_;
  std::vector<std::string> words_;
};

Mutator* mutator = nullptr;
const Bytes* other_input = nullptr;

void parse(int count, char** arguments) {
  for (int i = 1; i < count; i++) {
    const std::string text = arguments[i];
    const size_t equals = text.find('=');
    const std::string name = text.substr(0, equals),
                      value = equals == std::string::npos ? "" : text.substr(equals + 1);
    if (text[0] != '-') options.folder = text;
    if (name == "-runs") options.runs = std::atoll(value.c_str());
    if (name == "-seed") options.seed = std::atoll(value.c_str());
    if (name == "-timeout") options.seconds = std::atoll(value.c_str());
    if (name == "-rss_limit_mb") options.megabytes = std::atoll(value.c_str());
    if (name == "-max_len") options.max_bytes = static_cast<size_t>(std::atoll(value.c_str()));
    if (name == "-dict") options.words = value;
    if (name == "-artifact_prefix") options.artifacts = value;
  }
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

// Lines of libFuzzer's: "text" with \xNN, \" and \\ in it.
std::vector<std::string> read_words(const std::string& path) {
  std::vector<std::string> words;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t begin = line.find('"') + 1, end = line.rfind('"');
    if (line[0] == '#' || end == std::string::npos || end < begin) continue;
    std::string& word = words.emplace_back();
    for (size_t i = begin; i < end; i++) {
      if (line[i] == '\\' && line[i + 1] == 'x') {
        word += static_cast<char>(std::stoi(line.substr(i + 2, 2), nullptr, 16));
        i += 3;
      } else {
        word += line[i] == '\\' ? line[++i] : line[i];
      }
    }
  }
  return words;
}

// What the process may take beyond what it has. Sanitizers reserve terabytes.
void limit_memory() {
#ifndef __SANITIZE_ADDRESS__
  rlim_t pages = 0;
  if (options.megabytes == 0 || !(std::ifstream("/proc/self/statm") >> pages)) return;
  const rlim_t bytes =
      pages * static_cast<rlim_t>(getpagesize()) + (static_cast<rlim_t>(options.megabytes) << 20);
  const rlimit limit = {bytes, bytes};
  setrlimit(RLIMIT_AS, &limit);
#endif
}

Bytes mutant_of(Bytes input, const Bytes& other) {
  other_input = &other;
  if (!LLVMFuzzerCustomMutator) return (*mutator)(std::move(input), other, options.max_bytes);
  const size_t size = std::min(input.size(), options.max_bytes);
  input.resize(options.max_bytes);
  const auto seed = static_cast<unsigned int>(mutator->below(size_t{1} << 32));
  input.resize(LLVMFuzzerCustomMutator(input.data(), size, options.max_bytes, seed));
  return input;
}

}  // namespace

// What a custom mutator calls for an ordinary change.
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size) {
  const Bytes made = (*mutator)(Bytes(data, data + size), *other_input, max_size);
  std::copy(made.begin(), made.end(), data);
  return made.size();
}

extern "C" void __sanitizer_cov_trace_pc() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_return_address(0));
  uint8_t& edge = edges[(here ^ last) & 0xFFFF];
  if (edge < 4) edge++;
  last = here >> 1;
}

int main(int count, char** arguments) {
  parse(count, arguments);
  if (LLVMFuzzerInitialize) LLVMFuzzerInitialize(&count, &arguments);
  limit_memory();
  current.path = options.artifacts + "crash.bin";
  for (const int signal : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGALRM, SIGPROF})
    ::signal(signal, keep_input);
  std::vector<Bytes> files = read_folder(options.folder);
  for (const Bytes& file : files) runs_into_new_code(file);
  const size_t honest = files.size();
  Mutator mutate(options.seed, read_words(options.words));
  mutator = &mutate;
  for (int64_t run = 0; run < options.runs; run++) {
    const Bytes& other = files[mutate.below(files.size())];
    Bytes mutant = mutant_of(files[mutate.below(files.size())], other);
    if (runs_into_new_code(mutant)) files.push_back(std::move(mutant));
  }
  std::fprintf(stderr, "Done %lld runs, %zu honest files, %zu more reach new code\n",
               static_cast<long long>(options.runs), honest, files.size() - honest);
  std::fflush(stderr);
  std::_Exit(0);  // what is left of an interpreter needs no end
}
