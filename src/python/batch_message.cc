#include "python/batch_message.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "python/storage_object.h"
#include "python/tensor_object.h"
#include "taeda/tensor.h"

namespace taeda::python {
namespace {

using data::Block;
using data::SharedArea;
using data::WorkerChannel;

constexpr int64_t kInlineBytes = 1 << 15;       // up to which data travels within the message
constexpr int64_t kLongCopy = 1 << 18;          // from which copies are made without the GIL
constexpr size_t kFewBlocks = 8;                // that a trainer may hold, whatever their size
constexpr size_t kManyBlocks = 512;             // that it may not, however small
constexpr size_t kManyBytes = size_t{1} << 27;  // that it may not hold in more than a few
constexpr int64_t kAlignment = 64;
constexpr uint32_t kNothing = ~uint32_t{0};  // the region of a tensor without elements
constexpr uint8_t kBytes = 255;              // the dtype of a storage

struct Head {
  int64_t tag;
  uint32_t regions, items;
  uint64_t pickle_bytes, data_start;  // of what travels within the message
};
struct Region {
  uint64_t block;  // offset of its block in the area, 0: in the message
  uint64_t start;  // in the block's or the message's data
  int64_t bytes;
};
struct Item {
  uint32_t region;
  uint8_t dtype, requires_grad;
  uint16_t ndim;   // so many sizes and strides follow
  int64_t offset;  // in elements, from the region's start
};

int64_t aligned(int64_t n) { return (n + kAlignment - 1) / kAlignment * kAlignment; }

void copy_bytes(void* to, const void* from, int64_t n) {
  unlocked_if(n >= kLongCopy, [&] { std::memcpy(to, from, static_cast<size_t>(n)); });
}

// The bytes of a storage that an item looks at.
struct View {
  const Ref<Storage>* storage;
  int64_t begin, end;
  uint32_t region = kNothing;
};

View view_of(PyObject* object) {
  if (is_storage(object)) return {&storage_of(object), 0, storage_of(object)->nbytes()};
  if (!is_tensor(object))
    raise_python(PyExc_TypeError, "expected tensors and storages, got {}", type_name(object));
  const TensorImpl& x = *tensor_of(object).impl();
  if (x.numel == 0) return {&x.storage, 0, 0};
  int64_t last = x.offset;
  for (size_t d = 0; d < x.sizes.size(); d++) last += (x.sizes[d] - 1) * x.strides[d];
  const int64_t size = item_size(x.dtype);
  return {&x.storage, x.offset * size, (last + 1) * size};
}

struct Part {
  const Storage* storage;
  int64_t begin, end;
  Region there{};
  int64_t bytes() const { return end - begin; }
  const char* data() const { return static_cast<const char*>(storage->data()) + begin; }
};

// The parts of storages that views look at; those that overlap become one.
std::vector<Part> parts_of(std::vector<View>& views) {
  std::vector<View*> order;
  for (View& view : views)
    if (view.begin < view.end) order.push_back(&view);
  std::sort(order.begin(), order.end(), [](const View* a, const View* b) {
    return std::pair(a->storage->get(), a->begin) < std::pair(b->storage->get(), b->begin);
  });
  std::vector<Part> parts;
  for (View* view : order) {
    const Storage* const storage = view->storage->get();
    if (parts.empty() || parts.back().storage != storage || parts.back().end <= view->begin)
      parts.push_back({storage, view->begin / kAlignment * kAlignment, view->end});
    parts.back().end = std::max(parts.back().end, view->end);
    view->region = static_cast<uint32_t>(parts.size() - 1);
  }
  return parts;
}

// Blocks that a message refers to, released unless it is sent.
class Blocks {
 public:
  explicit Blocks(WorkerChannel& channel) : channel_(channel) {}
  ~Blocks() {
    for (Block* block : blocks_) WorkerChannel::release(block);
  }
  Blocks(const Blocks&) = delete;
  Blocks& operator=(const Blocks&) = delete;

  // The region of a part outside of the message; false without memory.
  bool place(Part& part) {
    Block* block = channel_.area().block_of(*part.storage);
    if (block && !block->sent) {
      block->holders.fetch_add(1, std::memory_order_relaxed);
    } else {
      block = channel_.allocate(static_cast<size_t>(part.bytes()));
      if (!block) return false;
      copy_bytes(block->data(), part.data(), part.bytes());
    }
    const bool in_block = channel_.area().block_of(*part.storage) == block;
    blocks_.push_back(block);
    part.there = {static_cast<uint64_t>(reinterpret_cast<char*>(block) - channel_.area().data()),
                  in_block ? static_cast<uint64_t>(part.data() - block->data()) : 0, part.bytes()};
    return true;
  }
  void sent() {
    for (Block* block : blocks_) block->sent = true;
    blocks_.clear();
  }

 private:
  WorkerChannel& channel_;
  std::vector<Block*> blocks_;
};

template <class T>
char* put(char* at, const T* values, size_t n) {
  if (n > 0) std::memcpy(at, values, n * sizeof(T));
  return at + n * sizeof(T);
}

char* put_item(char* at, PyObject* object, const View& view, const std::vector<Part>& parts) {
  const int64_t begin = view.region == kNothing ? 0 : parts[view.region].begin;
  if (is_storage(object)) {
    const Item item{view.region, kBytes, 0, 0, -begin};
    return put(at, &item, 1);
  }
  const Tensor& x = tensor_of(object);
  const auto n = x.impl()->sizes.size();
  const int64_t offset =
      view.region == kNothing ? 0 : x.impl()->offset - begin / item_size(x.dtype());
  const Item item{view.region, static_cast<uint8_t>(x.dtype()), x.requires_grad(),
                  static_cast<uint16_t>(n), offset};
  at = put(at, &item, 1);
  at = put(at, x.impl()->sizes.data(), n);
  return put(at, x.impl()->strides.data(), n);
}

size_t item_bytes(PyObject* object) {
  return sizeof(Item) +
         (is_storage(object) ? 0 : 2 * sizeof(int64_t) * tensor_of(object).impl()->sizes.size());
}

// Reads what put() wrote.
class Reader {
 public:
  explicit Reader(const char* at) : at_(at) {}
  template <class T>
  T get() {
    T value;
    std::memcpy(&value, at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }
  DimVector dims(size_t n) {
    DimVector values(n);
    if (n > 0) std::memcpy(values.data(), at_, n * sizeof(int64_t));
    at_ += n * sizeof(int64_t);
    return values;
  }
  const char* skip(size_t n) { return std::exchange(at_, at_ + n); }

 private:
  const char* at_;
};

bool keeps_many() {
  const size_t blocks = SharedArea::held_blocks();
  return blocks > kManyBlocks || (blocks > kFewBlocks && SharedArea::held_bytes() > kManyBytes);
}

Ref<Storage> copied(const char* from, int64_t bytes) {
  Ref<Storage> storage = Storage::allocate(bytes, Device());
  copy_bytes(storage->data(), from, bytes);
  return storage;
}

// A message's regions as storages; the holders of those not taken are released.
class Regions {
 public:
  Regions(WorkerChannel& channel, const std::vector<Region>& regions, const char* data)
      : area_(channel.area()), regions_(regions) {
    const bool copy = keeps_many();
    for (; taken_ < regions.size(); taken_++) {
      const Region& region = regions[taken_];
      bytes += region.bytes;
      if (region.block == 0) {
        storages.push_back(copied(data + region.start, region.bytes));
        continue;
      }
      char* const begin = block(region)->data() + region.start;
      if (copy) {
        storages.push_back(copied(begin, region.bytes));
        WorkerChannel::release(block(region));
      } else {
        storages.push_back(area_.storage(block(region), begin, region.bytes));
      }
    }
  }
  ~Regions() {
    for (; taken_ < regions_.size(); taken_++)
      if (regions_[taken_].block != 0) WorkerChannel::release(block(regions_[taken_]));
  }
  Regions(const Regions&) = delete;
  Regions& operator=(const Regions&) = delete;

  std::vector<Ref<Storage>> storages;
  int64_t bytes = 0;

 private:
  Block* block(const Region& region) const {
    return reinterpret_cast<Block*>(area_.data() + region.block);
  }
  SharedArea& area_;
  const std::vector<Region>& regions_;
  size_t taken_ = 0;
};

PyObject* read_item(Reader& reader, const std::vector<Ref<Storage>>& storages) {
  const Item item = reader.get<Item>();
  Ref<Storage> storage =
      item.region == kNothing ? Storage::allocate(0, Device()) : storages[item.region];
  if (item.dtype == kBytes) return wrap(std::move(storage));
  const DimVector sizes = reader.dims(item.ndim), strides = reader.dims(item.ndim);
  auto impl =
      make_ref<TensorImpl>(std::move(storage), static_cast<DType>(item.dtype), DeviceType::kCPU);
  impl->set_layout(sizes, strides, item.offset);
  Tensor x(std::move(impl));
  if (item.requires_grad) x.requires_grad_();
  return wrap(std::move(x));
}

struct Release {
  Block* message;
  ~Release() { WorkerChannel::release(message); }
};

}  // namespace

bool send_message(WorkerChannel& channel, int64_t tag, PyObject* pickle, PyObject* items) {
  std::vector<View> views;
  const Py_ssize_t n = PyList_GET_SIZE(items);
  size_t layout_bytes = 0;
  for (Py_ssize_t i = 0; i < n; i++) {
    views.push_back(view_of(PyList_GET_ITEM(items, i)));
    layout_bytes += item_bytes(PyList_GET_ITEM(items, i));
  }
  std::vector<Part> parts = parts_of(views);
  Blocks blocks(channel);
  int64_t inline_bytes = 0;
  for (Part& part : parts) {
    const Block* known = channel.area().block_of(*part.storage);
    if (part.bytes() > kInlineBytes || (known && !known->sent)) {
      if (!blocks.place(part)) return false;
    } else {
      part.there = {0, static_cast<uint64_t>(inline_bytes), part.bytes()};
      inline_bytes += aligned(part.bytes());
    }
  }
  Head head{tag, static_cast<uint32_t>(parts.size()), static_cast<uint32_t>(n),
            static_cast<uint64_t>(PyBytes_GET_SIZE(pickle)), 0};
  const size_t before =
      sizeof(Head) + parts.size() * sizeof(Region) + layout_bytes + head.pickle_bytes;
  head.data_start = static_cast<uint64_t>(aligned(static_cast<int64_t>(before)));
  Block* const message = channel.allocate(head.data_start + static_cast<size_t>(inline_bytes));
  if (!message) return false;
  char* at = put(message->data(), &head, 1);
  for (const Part& part : parts) at = put(at, &part.there, 1);
  for (Py_ssize_t i = 0; i < n; i++)
    at = put_item(at, PyList_GET_ITEM(items, i), views[static_cast<size_t>(i)], parts);
  put(at, PyBytes_AS_STRING(pickle), head.pickle_bytes);
  for (const Part& part : parts) {
    if (part.there.block == 0)
      std::memcpy(message->data() + head.data_start + part.there.start, part.data(),
                  static_cast<size_t>(part.bytes()));
  }
  if (!channel.push(message)) {
    WorkerChannel::release(message);
    raise_python(PyExc_RuntimeError, "DataLoader: too many messages for a worker under way");
  }
  blocks.sent();
  return true;
}

PyObject* unpack_message(WorkerChannel& channel, Block* message) {
  const Release release{message};
  Reader reader(message->data());
  const Head head = reader.get<Head>();
  std::vector<Region> regions(head.regions);
  for (Region& region : regions) region = reader.get<Region>();
  const Regions taken(channel, regions, message->data() + head.data_start);
  const PyRef items = PyRef::check(PyList_New(head.items));
  for (Py_ssize_t i = 0; i < head.items; i++)
    PyList_SET_ITEM(items.get(), i, PyRef::check(read_item(reader, taken.storages)).release());
  const auto size = static_cast<Py_ssize_t>(head.pickle_bytes);
  const PyRef pickle =
      PyRef::check(PyBytes_FromStringAndSize(reader.skip(head.pickle_bytes), size));
  return Py_BuildValue("(LOOL)", static_cast<long long>(head.tag), pickle.get(), items.get(),
                       static_cast<long long>(taken.bytes));
}

}  // namespace taeda::python
