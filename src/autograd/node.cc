#include "autograd/node.h"

#include "autograd/anomaly.h"
#include "autograd/math.h"
#include "base/block_list.h"
#include "base/handover.h"
#include "device/stream.h"

namespace taeda::autograd {
namespace {

constexpr size_t kSmallBytes = 256, kLargeBytes = 512;
using SmallBlocks = BlockList<taeda::detail::BlockClass::kSmallNode, kSmallBytes>;
using LargeBlocks = BlockList<taeda::detail::BlockClass::kLargeNode, kLargeBytes>;

// Trivially destructible: nodes die at any time, also while a thread ends.
thread_local uint64_t next_sequence = 0;
thread_local int64_t live_nodes = 0;
thread_local const Node* dying_nodes = nullptr;
thread_local bool destroying = false;

// Numbers go on where the first thread stopped, so that later operators have higher ones.
struct CarriedNumbers final : Carried {
  uint64_t sequence = next_sequence;
  int64_t nodes = 0;
  void arrive() override { next_sequence = sequence; }
  void leave() noexcept override {
    sequence = next_sequence;
    nodes = live_nodes;
  }
  void come_back(std::exception_ptr&) override {
    next_sequence = sequence;
    live_nodes += nodes;
  }
};
[[maybe_unused]] const bool numbers_are_carried = [] {
  carry_over([]() -> std::unique_ptr<Carried> { return std::make_unique<CarriedNumbers>(); });
  return true;
}();

void note_stream(Node& node, Device device) {
  const int64_t stream = cuda::Stream::current(device.index).id;
  if (stream != 0 || node.extras()) node.make_extras().stream = stream;
}

}  // namespace

thread_local bool Node::filtered_ = false;

EdgeList::EdgeList(EdgeList&& other) noexcept { *this = std::move(other); }
EdgeList::~EdgeList() = default;
EdgeList& EdgeList::operator=(EdgeList&& other) noexcept {
  for (size_t i = 0; i < kInline; i++) inline_[i] = std::move(other.inline_[i]);
  more_ = std::move(other.more_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

void EdgeList::clear() {
  for (Edge& edge : inline_) edge = {};
  more_.reset();
  size_ = 0;
}

Tensor ResultMetadata::zeros() const { return math::zeros(sizes, dtype, device); }

Node::Node() : sequence_(next_sequence++) {
  live_nodes++;
  if (anomaly_enabled.load(std::memory_order_relaxed)) [[unlikely]]
    note_creation(*this);
}

Node::~Node() {
  live_nodes--;
  delete extras_.load(std::memory_order_relaxed);
}

NodeExtras& Node::make_extras() {
  NodeExtras* extras = extras_.load(std::memory_order_acquire);
  if (extras) return *extras;
  auto* fresh = new NodeExtras;
  if (extras_.compare_exchange_strong(extras, fresh, std::memory_order_acq_rel)) return *fresh;
  delete fresh;
  return *extras;
}

void Node::set_input_metadata(uint32_t i, const Tensor& result) {
  ResultMetadata* metadata = &metadata_;
  if (i > 0) {
    if (!more_metadata_) more_metadata_ = std::make_unique<std::vector<ResultMetadata>>();
    if (more_metadata_->size() < i) more_metadata_->resize(i);
    metadata = &(*more_metadata_)[i - 1];
  }
  num_inputs_ = std::max(num_inputs_, i + 1);
  if (!result.defined()) return;
  *metadata = ResultMetadata(result);
  if (metadata->device.type == DeviceType::kCUDA) [[unlikely]]
    note_stream(*this, metadata->device);
}

void* Node::operator new(size_t size) {
  if (size <= kSmallBytes) return SmallBlocks::take();
  if (size <= kLargeBytes) return LargeBlocks::take();
  return ::operator new(size);
}

void Node::operator delete(void* object, size_t size) {
  if (size <= kSmallBytes)
    SmallBlocks::give(object);
  else if (size <= kLargeBytes)
    LargeBlocks::give(object);
  else
    ::operator delete(object);
}

int64_t Node::live_count() { return live_nodes; }

// A node's destructor releases its edges and saved tensors, whose histories release further nodes.
// Those wait in a list until this one is gone.
void Node::last_release() const {
  if (destroying) {
    next_dying_ = dying_nodes;
    dying_nodes = this;
    return;
  }
  destroying = true;
  delete this;
  while (const Node* node = dying_nodes) {
    dying_nodes = node->next_dying_;
    delete node;
  }
  destroying = false;
}

}  // namespace taeda::autograd
