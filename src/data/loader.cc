#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "op/empty.h"
#include "op/index_select.h"
#include "op/randperm.h"
#include "op/select.h"
#include "op/stack.h"
#include "taeda/data.h"
#include "taeda/generator.h"

namespace taeda::data {

Example Dataset::get_batch(Span<const int64_t> indices) const {
  TensorList data, target;
  for (const int64_t index : indices) {
    Example example = get(index);
    data.push_back(std::move(example.data));
    if (example.target.defined()) target.push_back(std::move(example.target));
  }
  return {op::stack(data, 0), target.empty() ? Tensor() : op::stack(target, 0)};
}

TensorDataset::TensorDataset(Tensor data, Tensor target)
    : data(std::move(data)), target(std::move(target)) {
  TD_CHECK_VALUE(
      this->data.dim() > 0 && this->target.dim() > 0 && this->data.size(0) == this->target.size(0),
      "TensorDataset: size mismatch between tensors: {} and {}", this->data.sizes(),
      this->target.sizes());
}
int64_t TensorDataset::size() const { return data.size(0); }
Example TensorDataset::get(int64_t index) const {
  return {op::select(data, 0, index), op::select(target, 0, index)};
}
Example TensorDataset::get_batch(Span<const int64_t> indices) const {
  Tensor rows = op::empty({static_cast<int64_t>(indices.size())}, DType::kInt64, {});
  std::copy(indices.begin(), indices.end(), rows.data<int64_t>());
  return {op::index_select(data, 0, rows), op::index_select(target, 0, rows)};
}

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options)
    : dataset_(std::move(dataset)), options_(options) {
  TD_CHECK_VALUE(dataset_ != nullptr, "DataLoader: no data set");
  TD_CHECK_VALUE(options.batch_size > 0,
                 "batch_size should be a positive integer value, but got batch_size={}",
                 options.batch_size);
  TD_CHECK_VALUE(options.workers >= 0, "DataLoader: workers must not be negative, got {}",
                 options.workers);
  TD_CHECK_VALUE(options.prefetch > 0, "DataLoader: prefetch must be positive, got {}",
                 options.prefetch);
}

int64_t DataLoader::size() const {
  const int64_t n = dataset_->size();
  return options_.drop_last ? n / options_.batch_size
                            : (n + options_.batch_size - 1) / options_.batch_size;
}

// One pass: the order, and the threads that work ahead.
struct DataLoader::Iterator::Feed {
  Feed(std::shared_ptr<const Dataset> dataset, const LoaderOptions& options, int64_t batches)
      : dataset(std::move(dataset)), options(options), batches(batches) {
    draw_order();
    for (int w = 0; w < options.workers; w++) workers.emplace_back([this] { work(); });
  }
  ~Feed() {
    {
      std::lock_guard<std::mutex> lock(mutex);
      stop = true;
    }
    changed.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void draw_order() {
    order.resize(static_cast<size_t>(dataset->size()));
    for (size_t i = 0; i < order.size(); i++) order[i] = static_cast<int64_t>(i);
    Mt19937& source = default_generator();
    uint64_t seed = 0;
    {
      // PyTorch's draws: a base seed for workers at every pass, then the sampler's.
      std::lock_guard<std::mutex> lock(source.mutex());
      source.random64();
      if (options.shuffle) seed = source.random64() & INT64_MAX;
    }
    if (!options.shuffle) return;
    Mt19937 generator(seed);
    const auto n = static_cast<int64_t>(order.size());
    const Tensor permutation = op::randperm(n, &generator, TensorOptions());
    std::copy_n(permutation.data<int64_t>(), n, order.begin());
  }

  Example make(int64_t batch) const {
    const int64_t from = batch * options.batch_size;
    const int64_t count = std::min(options.batch_size, static_cast<int64_t>(order.size()) - from);
    return dataset->get_batch({order.data() + from, static_cast<size_t>(count)});
  }

  void work() {
    const int64_t ahead = static_cast<int64_t>(options.workers) * options.prefetch;
    std::unique_lock<std::mutex> lock(mutex);
    while (true) {
      changed.wait(lock,
                   [&] { return stop || next_made >= batches || next_made < next_wanted + ahead; });
      if (stop || next_made >= batches) return;
      const int64_t batch = next_made++;
      lock.unlock();
      Made made;
      try {
        made.example = make(batch);
      } catch (...) {
        made.error = std::current_exception();
      }
      lock.lock();
      ready.emplace(batch, std::move(made));
      changed.notify_all();
    }
  }

  // The next batch; false at the end.
  bool next(Example& batch) {
    if (next_wanted >= batches) return false;
    if (workers.empty()) {
      batch = make(next_wanted++);
      return true;
    }
    std::unique_lock<std::mutex> lock(mutex);
    changed.wait(lock, [&] { return ready.count(next_wanted) > 0; });
    Made made = std::move(ready.extract(next_wanted++).mapped());
    lock.unlock();
    changed.notify_all();
    if (made.error) std::rethrow_exception(made.error);
    batch = std::move(made.example);
    return true;
  }

  struct Made {
    Example example;
    std::exception_ptr error;
  };
  std::shared_ptr<const Dataset> dataset;
  LoaderOptions options;
  int64_t batches;
  std::vector<int64_t> order;

  std::mutex mutex;
  std::condition_variable changed;
  std::map<int64_t, Made> ready;
  int64_t next_made = 0, next_wanted = 0;
  bool stop = false;
  std::vector<std::thread> workers;
};

DataLoader::Iterator DataLoader::begin() const {
  Iterator it;
  it.feed_ = std::make_shared<Iterator::Feed>(dataset_, options_, size());
  ++it;
  return it;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  if (!feed_->next(batch_)) {
    feed_.reset();
    batch_ = {};
  }
  return *this;
}

}  // namespace taeda::data
