#include <atomic>
#include <memory>
#include <mutex>

#include "base/handover.h"
#include "core/storage_bytes.h"
#include "ops/boxing.h"
#include "ops/modes.h"
#include "ops/profile_handler.h"
#include "profile/ring.h"
#include "taeda/profile.h"

namespace taeda {
namespace {

using profile::Details;
using profile::Ring;
using profile::Subject;
using profile::Timeline;

// One start_profile to its stop, with the rings of all threads that worked for it.
struct Session {
  const ProfileOptions options;
  std::mutex mutex;
  std::vector<std::unique_ptr<Ring>> rings;

  explicit Session(const ProfileOptions& given) : options(given) {
    if (options.memory) storage_bytes_counters++;
  }
  ~Session() {
    if (options.memory) storage_bytes_counters--;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  bool detailed() const { return options.shapes || options.frames || options.memory; }
  Ring* add_ring() {
    const std::lock_guard lock(mutex);
    return rings.emplace_back(std::make_unique<Ring>(options.capacity, detailed())).get();
  }
};

thread_local std::shared_ptr<Session> session;
// What records need at once. The ring belongs to the session; null until this thread records
// something.
struct Current {
  Ring* ring = nullptr;
  bool detailed = false;
};
constinit thread_local Current current;

std::shared_ptr<Session> get_session() { return session; }
void set_session(std::shared_ptr<Session> next) {
  session = std::move(next);
  current = {nullptr, session && session->detailed()};
}
const CarriedValue<get_session, set_session> carried_session;

std::atomic<std::string (*)()> python_frame{nullptr};

// This thread's ring; null where it is not profiled.
Ring* ring() {
  if (!current.ring && session) current.ring = session->add_ring();
  return current.ring;
}

// Ends a record where the operator raises, too. Whoever stops the profile meanwhile ends them all.
class End {
 public:
  End(Ring& ring, uint64_t number) : ring_(ring), number_(number) {}
  End(const End&) = delete;
  End& operator=(const End&) = delete;
  ~End() {
    if (current.ring != &ring_) return;
    ring_.end(number_);
    if (current.detailed)
      if (Details* const details = ring_.details(number_))
        details->bytes_after = live_storage_bytes;
  }

 private:
  Ring& ring_;
  const uint64_t number_;
};

void add_shape(const Tensor& t, Details& details) {
  details.shapes.push_back(t.defined() ? DimVector(t.sizes()) : DimVector());
}

void add_shapes(const Stack& stack, Details& details) {
  for (const Value& value : stack) {
    if (value.is_tensor()) add_shape(value.tensor(), details);
    if (value.is_tensors())
      for (const Tensor& t : value.tensors()) add_shape(t, details);
  }
}

// The details of the record that begins next, but for the shapes.
Details& begin_details(Ring& ring) {
  Details& details = ring.next_details();
  if (session->options.frames)
    if (const auto frame = python_frame.load()) details.frame = frame();
  details.bytes_before = details.bytes_after = live_storage_bytes;
  return details;
}

// A call of a registered operator, or of one of the table through a stack.
void handle(const Operator& op, KeySet keys, Stack& stack) {
  keys = keys - Key::kProfile;
  Ring* const to = ring();
  if (!to) return op.redispatch(keys, stack);
  if (current.detailed) {
    Details& details = begin_details(*to);
    if (session->options.shapes) add_shapes(stack, details);
  }
  const Subject subject = op.record() ? Subject(*op.record(), op.form()) : Subject(op);
  const End end(*to, to->begin(subject));
  op.redispatch(keys, stack);
}

// A call of an operator of the table by its C++ function, whose arguments stay as they are.
void handle_unboxed(const OperatorRecord& record, Operator::Form form, KeySet keys,
                    const void* const* args, void* const* results) {
  keys = keys - Key::kProfile;
  Ring* const to = ring();
  if (!to) return dispatch::run_modes(record, keys, args, results);
  if (current.detailed) {
    Details& details = begin_details(*to);
    if (session->options.shapes) {
      Stack stack;
      boxing::box(record, args + record.has(OperatorRecord::kInto), stack);
      add_shapes(stack, details);
    }
  }
  const End end(*to, to->begin(Subject(record, form)));
  dispatch::run_modes(record, keys, args, results);
}

// When both clocks were read first: the longer ago, the more exact the counter's rate.
Timeline::Moment first_moment() {
  static const Timeline::Moment first;
  return first;
}

}  // namespace

void start_profile(const ProfileOptions& options) {
  TD_CHECK(!session, "start_profile: this thread is being profiled already");
  dispatch::set_handler(Key::kProfile, handle);
  dispatch::set_profile_handler(handle_unboxed);
  first_moment();
  set_session(std::make_shared<Session>(options));
  thread_modes.included = thread_modes.included | Key::kProfile;
}

Profile stop_profile() {
  TD_CHECK(session, "stop_profile: this thread is not being profiled");
  thread_modes.included = thread_modes.included - Key::kProfile;
  const std::shared_ptr<Session> stopped = session;
  set_session(nullptr);
  const Timeline timeline(first_moment(), {});
  Profile profile;
  const std::lock_guard lock(stopped->mutex);
  for (const auto& ring : stopped->rings) ring->move_to(profile, timeline);
  const auto earlier = [](const ProfileRecord& a, const ProfileRecord& b) {
    return a.start_ns < b.start_ns;
  };
  if (!std::is_sorted(profile.records.begin(), profile.records.end(), earlier))
    std::stable_sort(profile.records.begin(), profile.records.end(), earlier);
  return profile;
}

bool is_profiling() { return session != nullptr; }

uint64_t begin_profile_block(std::string_view name) {
  Ring* const to = ring();
  if (!to) return ~uint64_t{0};
  if (current.detailed) begin_details(*to);
  return to->begin_block(name);
}

void end_profile_block(uint64_t number) {
  if (current.ring) End(*current.ring, number);
}

int64_t storage_bytes() { return live_storage_bytes; }

void set_profile_frame(std::string (*frame)()) { python_frame = frame; }

}  // namespace taeda
