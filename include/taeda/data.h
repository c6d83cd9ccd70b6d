// Data sets and loading in batches.
//
//   const Tensor x = arange(10).view({5, 2}), y = arange(5);
//   data::DataLoader loader(data::TensorDataset(x, y), {.batch_size = 2});
//   assert(loader.size() == 3);
//   int64_t rows = 0;
//   for (const auto& [inputs, targets] : loader) {
//     assert(inputs.size(1) == 2 && inputs.size(0) == targets.size(0));
//     rows += targets.size(0);
//   }
//   assert(rows == 5);
//
// data::mnist(folder, train) reads MNIST and Fashion-MNIST; other data sets derive from Dataset.
// Shuffling draws from the default generator as torch.utils.data.DataLoader does: the same seed
// gives the same order.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "taeda/tensor.h"

namespace taeda::data {

// An example, or a batch of them stacked along a new first dimension. Either tensor may be
// undefined in all examples of a data set.
struct Example {
  Tensor data, target;
};

// Examples by index. One object serves every worker of a loader, so get() must not change it.
//
//   struct Squares : data::Dataset {
//     int64_t size() const override { return 100; }
//     data::Example get(int64_t i) const override {
//       return {full({1}, static_cast<double>(i)), full({1}, static_cast<double>(i * i))};
//     }
//   };
//   const data::DataLoader loader(Squares{}, {.batch_size = 10, .workers = 2});
//   assert(loader.begin()->target[3].item<float>() == 9);
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  // Called by several worker threads at once; `index` is in [0, size()). What it throws reaches
  // the program where the batch is asked for.
  virtual Example get(int64_t index) const = 0;
  // The examples of `indices`, stacked. The default calls get() for each; a data set that has its
  // examples in one tensor gathers them at once.
  virtual Example get_batch(Span<const int64_t> indices) const;
};

// Rows of tensors of equal length: example i is (data[i], target[i]). ValueError for lengths that
// differ.
class TensorDataset final : public Dataset {
 public:
  TensorDataset(Tensor data, Tensor target);
  int64_t size() const override;
  Example get(int64_t index) const override;
  Example get_batch(Span<const int64_t> indices) const override;
  Tensor data, target;
};

// How a DataLoader goes about it, as in torch.utils.data.DataLoader. Workers are threads of this
// process, not processes: they share the data set and cost no copies.
struct LoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;    // a new order for each pass, drawn from the default generator
  bool drop_last = false;  // leave out a last batch that is not full
  int workers = 0;         // threads that prepare batches ahead; 0: batches are made when asked for
  int prefetch = 2;        // batches ahead for each worker
};

// Batches of a data set, in order or shuffled. Passes share nothing but the data set, so several
// may run at once; with workers, batches arrive in the order that no workers would give.
class DataLoader {
 public:
  // ValueError for a null data set, a batch size or a number of batches ahead below 1, and for a
  // negative number of workers.
  template <class D>
    requires std::is_base_of_v<Dataset, D>
  explicit DataLoader(D dataset, LoaderOptions options = {})
      : DataLoader(std::shared_ptr<const Dataset>(std::make_shared<D>(std::move(dataset))),
                   options) {}
  DataLoader(std::shared_ptr<const Dataset> dataset, LoaderOptions options = {});

  // Number of batches.
  int64_t size() const;

  // One pass over the data, in one thread. Errors of the data set are thrown where their batch was
  // due.
  class Iterator {
   public:
    const Example& operator*() const { return batch_; }
    const Example* operator->() const { return &batch_; }
    Iterator& operator++();
    bool operator!=(const Iterator& end) const { return feed_ != end.feed_; }

   private:
    friend class DataLoader;
    struct Feed;
    std::shared_ptr<Feed> feed_;  // null at the end
    Example batch_;
  };
  // Starts a pass, in a new order when shuffling.
  Iterator begin() const;
  Iterator end() const { return {}; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  LoaderOptions options_;
};

// An array in the IDX format of MNIST, plain or gzipped: the file's dtype and sizes (LeCun, Cortes
// and Burges, "The MNIST database of handwritten digits"). RuntimeError for files that cannot be
// read or are damaged; memory is taken only as the file has the data.
Tensor read_idx(const std::string& path);

// MNIST's four files (train-images-idx3-ubyte and so on, plain or with .gz) in `folder`, which
// Fashion-MNIST shares: float32 images (n, 1, 28, 28) in [0, 1], int64 labels. `train`: the 60,000
// examples to learn from, else the 10,000 to test with. All of them are read at once, 188 MB.
// Errors are read_idx's, and RuntimeError where a file is not there.
TensorDataset mnist(const std::string& folder, bool train);

}  // namespace taeda::data
