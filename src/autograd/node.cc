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
struct Local {
  uint64_t next_sequence = 0;
  int64_t live_nodes = 0;
  const Node* dying_nodes = nullptr;
  bool destroying = false;
};
thread_local Local local __attribute__((tls_model("initial-exec")));

// Numbers go on where the first thread stopped, so that later operators have higher ones.
struct CarriedNumbers final : Carried {
  uint64_t sequence = local.next_sequence;
  int64_t nodes = 0;
  void arrive() override { local.next_sequence = sequence; }
  void leave() noexcept override {
    sequence = local.next_sequence;
    nodes = local.live_nodes;
  }
  void come_back(std::exception_ptr&) override {
    local.next_sequence = sequence;
    local.live_nodes += nodes;
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

constinit thread_local bool Node::filtered_ = false;

EdgeList::EdgeList(EdgeList&& other) noexcept { *this = std::move(other); }
EdgeList::~EdgeList() = default;
EdgeList& EdgeList::operator=(EdgeList&& other) noexcept {
  for (size_t i = 0; i < kInline; i++) inline_[i] = std::move(other.inline_[i]);
  more_ = std::move(other.more_);
  size_ = std::exchange(other.size_, 0);
  return *this;
}

Edge& EdgeList::emplace_outside() {
  if (!more_) more_ = std::make_unique<std::vector<Edge>>();
  size_++;
  return more_->emplace_back();
}

Tensor ResultMetadata::zeros() const { return math::zeros(sizes, dtype, device); }

uint64_t next_sequence() { return local.next_sequence; }

Node::Node() : sequence_(local.next_sequence++) {
  local.live_nodes++;
  if (anomaly_enabled.load(std::memory_order_relaxed)) [[unlikely]]
    note_creation(*this);
}

Node::~Node() {
  local.live_nodes--;
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
  metadata->sizes = result.sizes();
  metadata->dtype = result.dtype();
  metadata->device = result.device();
  metadata->known = true;
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

int64_t Node::live_count() { return local.live_nodes; }

// A node's destructor releases its edges and saved tensors, whose histories release further nodes.
// Those wait in a list until this one is gone.
void Node::last_release() const {
  if (local.destroying) {
    next_dying_ = local.dying_nodes;
    local.dying_nodes = this;
    return;
  }
  local.destroying = true;
  delete this;
  while (const Node* node = local.dying_nodes) {
    local.dying_nodes = node->next_dying_;
    delete node;
  }
  local.destroying = false;
}

}  // namespace taeda::autograd
