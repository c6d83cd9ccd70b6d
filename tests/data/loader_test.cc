#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>
#include <set>

#include "taeda/taeda.h"

namespace taeda {
namespace {

data::TensorDataset numbers(int64_t n) { return {arange(n), arange(n)}; }

std::vector<int64_t> batch_of(const Tensor& t) {
  return {t.data<int64_t>(), t.data<int64_t>() + t.numel()};
}

std::vector<std::vector<int64_t>> one_pass(const data::DataLoader& loader) {
  std::vector<std::vector<int64_t>> batches;
  for (const auto& [x, y] : loader) {
    batches.push_back(batch_of(x));
    EXPECT_EQ(batch_of(y), batches.back());
  }
  return batches;
}

TEST(DataLoader, BatchesInOrder) {
  const data::DataLoader loader(numbers(7), {.batch_size = 3});
  EXPECT_EQ(loader.size(), 3);
  EXPECT_EQ(one_pass(loader), (std::vector<std::vector<int64_t>>{{0, 1, 2}, {3, 4, 5}, {6}}));
  const data::DataLoader full(numbers(7), {.batch_size = 3, .drop_last = true});
  EXPECT_EQ(one_pass(full), (std::vector<std::vector<int64_t>>{{0, 1, 2}, {3, 4, 5}}));
  EXPECT_TRUE(one_pass(data::DataLoader(numbers(0))).empty());
}

// torch.utils.data.DataLoader(range(10), batch_size=4, shuffle=True) after torch.manual_seed(0),
// two passes.
TEST(DataLoader, ShufflesLikeTorch) {
  for (const int workers : {0, 2}) {
    manual_seed(0);
    const data::DataLoader loader(numbers(10),
                                  {.batch_size = 4, .shuffle = true, .workers = workers});
    EXPECT_EQ(one_pass(loader),
              (std::vector<std::vector<int64_t>>{{6, 7, 1, 4}, {2, 0, 9, 8}, {3, 5}}));
    EXPECT_EQ(one_pass(loader),
              (std::vector<std::vector<int64_t>>{{2, 4, 7, 0}, {8, 9, 5, 3}, {6, 1}}));
  }
}

class Faulty final : public data::Dataset {
 public:
  int64_t size() const override { return 10; }
  data::Example get(int64_t index) const override {
    TD_CHECK_INDEX(index != 7, "example 7 is missing");
    return {full({2}, static_cast<double>(index)), {}};
  }
};

TEST(DataLoader, ErrorsComeWhereTheirBatchWasDue) {
  for (const int workers : {0, 1, 3}) {
    const data::DataLoader loader(Faulty(), {.batch_size = 2, .workers = workers});
    int batches = 0;
    try {
      for (const auto& [x, y] : loader) {
        EXPECT_EQ(x.sizes(), IntSpan({2, 2}));
        EXPECT_FALSE(y.defined());
        batches++;
      }
      FAIL();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kIndex);
    }
    EXPECT_EQ(batches, 3);
  }
}

TEST(DataLoader, MayBeLeftEarly) {
  const data::DataLoader loader(numbers(1000), {.batch_size = 1, .workers = 3});
  for (const auto& batch : loader) {
    if (batch.data.item<int64_t>() == 5) break;
  }
  EXPECT_EQ(one_pass(loader).size(), 1000u);
}

class Idx : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(folder_); }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string plain(const std::string& name, const std::string& bytes) {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  std::string gzipped(const std::string& name, const std::string& bytes) {
    const std::string path = folder_ / name;
    gzFile file = gzopen(path.c_str(), "wb");
    gzwrite(file, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(file);
    return path;
  }
  std::filesystem::path folder_ = std::filesystem::path(testing::TempDir()) / "taeda_idx_test";
};

std::string header(char type, std::initializer_list<int> sizes) {
  std::string text = {0, 0, type, static_cast<char>(sizes.size())};
  for (const int n : sizes) {
    for (const int shift : {24, 16, 8, 0}) text += static_cast<char>(n >> shift);
  }
  return text;
}

TEST_F(Idx, ReadsPlainAndGzipped) {
  const std::string bytes =
      header(0x0b, {2, 1}) + std::string("\x01\x02\xff\xfe", 4);  // big-endian int16
  for (const std::string& path : {plain("a", bytes), gzipped("a.gz", bytes)}) {
    const Tensor t = data::read_idx(path);
    EXPECT_EQ(t.sizes(), IntSpan({2, 1}));
    EXPECT_EQ(t.data<int16_t>()[0], 258);
    EXPECT_EQ(t.data<int16_t>()[1], -2);
  }
}

TEST_F(Idx, DamagedFilesRaise) {
  const std::string good = header(8, {2, 2}) + "abcd";
  EXPECT_NO_THROW(data::read_idx(plain("good", good)));
  for (size_t n = 0; n < good.size(); n++)
    EXPECT_THROW(data::read_idx(plain("cut", good.substr(0, n))), Error) << n;
  EXPECT_THROW(data::read_idx(plain("long", good + "e")), Error);
  EXPECT_THROW(data::read_idx(plain("type", header(7, {1}) + "a")), Error);
  EXPECT_THROW(data::read_idx(plain("liar", header(8, {INT32_MAX, INT32_MAX}) + "a")), Error);
  EXPECT_THROW(data::read_idx(plain("overflow", header(8, {-1, -1, -1, -1}) + "a")), Error);
  EXPECT_THROW(data::read_idx((folder_ / "absent").string()), Error);
}

TEST_F(Idx, Mnist) {
  gzipped("train-images-idx3-ubyte.gz", header(8, {2, 1, 2}) + std::string("\xff\x00\x33\x66", 4));
  plain("train-labels-idx1-ubyte", header(8, {2}) + std::string("\x07\x03", 2));
  const data::TensorDataset set = data::mnist(folder_.string(), true);
  EXPECT_EQ(set.data.sizes(), IntSpan({2, 1, 1, 2}));
  EXPECT_FLOAT_EQ(set.data.data<float>()[0], 1.0f);
  EXPECT_FLOAT_EQ(set.data.data<float>()[2], 0.2f);
  EXPECT_EQ(set.target.data<int64_t>()[1], 3);
}

}  // namespace
}  // namespace taeda
