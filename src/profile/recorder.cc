#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <mutex>

#include "base/handover.h"
#include "ops/modes.h"
#include "taeda/profile.h"

namespace taeda {
namespace {

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// The records of one thread, which alone writes them.
class Ring {
 public:
  explicit Ring(size_t capacity) : capacity_(std::max<size_t>(capacity, 1)) {}

  // A new record, in the place of the oldest where the ring is full.
  uint64_t begin(ProfileRecord record) {
    if (count_ < capacity_)
      slots_.push_back(std::move(record));
    else
      slots_[count_ % capacity_] = std::move(record);
    return count_++;
  }
  // Its end, unless it has been overwritten since.
  void end(uint64_t number) {
    if (count_ - number <= capacity_) slots_[number % capacity_].end_ns = now_ns();
  }
  void move_to(Profile& profile) {
    const uint64_t kept = std::min<uint64_t>(count_, capacity_);
    profile.dropped += count_ - kept;
    for (uint64_t i = count_ - kept; i < count_; i++)
      profile.records.push_back(std::move(slots_[i % capacity_]));
  }
  uint64_t thread() const { return thread_; }

 private:
  const size_t capacity_;
  std::vector<ProfileRecord> slots_;  // grows up to the capacity
  uint64_t count_ = 0;
  const uint64_t thread_ = static_cast<uint64_t>(syscall(SYS_gettid));
};

// One start_profile to its stop, with the rings of all threads that worked for it.
struct Session {
  ProfileOptions options;
  std::mutex mutex;
  std::vector<std::shared_ptr<Ring>> rings;

  std::shared_ptr<Ring> add_ring() {
    auto ring = std::make_shared<Ring>(options.capacity);
    const std::lock_guard lock(mutex);
    rings.push_back(ring);
    return ring;
  }
};

struct ThreadState {
  std::shared_ptr<Session> session;
  std::shared_ptr<Ring> ring;  // this thread's; null until it records something
};
thread_local ThreadState state;

std::shared_ptr<Session> get_session() { return state.session; }
void set_session(std::shared_ptr<Session> session) { state = {std::move(session), nullptr}; }
const CarriedValue<get_session, set_session> carried_session;

std::atomic<std::string (*)()> python_frame{nullptr};

void add_shapes(const Stack& stack, ProfileRecord& record) {
  const auto add = [&](const Tensor& t) {
    record.shapes.push_back(t.defined() ? DimVector(t.sizes()) : DimVector());
  };
  for (const Value& value : stack) {
    if (value.is_tensor()) add(value.tensor());
    if (value.is_tensors())
      for (const Tensor& t : value.tensors()) add(t);
  }
}

void handle(const Operator& op, KeySet keys, Stack& stack) {
  keys = keys - Key::kProfile;
  const std::shared_ptr<Session> session = state.session;
  if (!session) return op.redispatch(keys, stack);
  if (!state.ring) state.ring = session->add_ring();
  const std::shared_ptr<Ring> ring = state.ring;
  ProfileRecord record;
  record.op = &op;
  record.thread = ring->thread();
  if (session->options.shapes) add_shapes(stack, record);
  if (session->options.frames)
    if (const auto frame = python_frame.load()) record.frame = frame();
  record.start_ns = now_ns();
  // Ends the record where the operator raises, too.
  struct End {
    Ring& ring;
    const uint64_t number;
    ~End() { ring.end(number); }
  };
  const End end{*ring, ring->begin(std::move(record))};
  op.redispatch(keys, stack);
}

}  // namespace

void start_profile(const ProfileOptions& options) {
  TD_CHECK(!state.session, "start_profile: this thread is being profiled already");
  dispatch::set_handler(Key::kProfile, handle);
  auto session = std::make_shared<Session>();
  session->options = options;
  state = {std::move(session), nullptr};
  thread_modes.included = thread_modes.included | Key::kProfile;
}

Profile stop_profile() {
  TD_CHECK(state.session, "stop_profile: this thread is not being profiled");
  thread_modes.included = thread_modes.included - Key::kProfile;
  const std::shared_ptr<Session> session = std::move(state.session);
  state = {};
  Profile profile;
  const std::lock_guard lock(session->mutex);
  for (const auto& ring : session->rings) ring->move_to(profile);
  std::stable_sort(
      profile.records.begin(), profile.records.end(),
      [](const ProfileRecord& a, const ProfileRecord& b) { return a.start_ns < b.start_ns; });
  return profile;
}

bool is_profiling() { return state.session != nullptr; }

void set_profile_frame(std::string (*frame)()) { python_frame = frame; }

}  // namespace taeda
