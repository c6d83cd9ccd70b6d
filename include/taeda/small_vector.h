// SmallVector<T, N>: a vector of trivially copyable values whose first N live inside the object.
// Span<T>: a borrowed range; it owns nothing and must not outlive what it points at.
//
// Shapes and strides are DimVector (5 dimensions without a heap allocation) and are passed as
// IntSpan. Indices are not checked. Neither type locks: threads may read one object at once, and
// who writes it must be alone. A function takes spans, and returns and keeps vectors.
//
//   DimVector sizes{2, 3};
//   sizes.push_back(4);
//   const IntSpan all = sizes;
//   assert(all.slice(1, 2) == IntSpan({3, 4}));
//   assert(to_text(all) == "[2, 3, 4]");
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <string>
#include <type_traits>
#include <vector>

namespace taeda {

// A pointer and a length; Span<const T> takes lists in braces, arrays and any contiguous container.
// Comparing compares elements. Copying one costs two words: pass it by value. A Span<T> of a T that
// is not const writes through to the caller's elements, also where the Span itself is const.
//
// As a parameter it takes whatever the caller has; as a local it must not be made of a temporary,
// whose memory is gone after the statement:
//
//   const auto product = [](IntSpan sizes) {
//     int64_t n = 1;
//     for (const int64_t size : sizes) n *= size;
//     return n;
//   };
//   assert(product({2, 3}) == 6 && product(std::vector<int64_t>{4, 5}) == 20);
template <class T>
class Span {
 public:
  using value_type = std::remove_const_t<T>;
  constexpr Span() = default;
  constexpr Span(T* data, size_t size) : data_(data), size_(size) {}
  // For arguments only: the list lives until the end of the full expression. A local IntSpan
  // made of braces compiles and dangles; a DimVector or an array keeps the numbers.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winit-list-lifetime"
  constexpr Span(std::initializer_list<value_type> list) requires std::is_const_v<T>
      : data_(list.begin()), size_(list.size()) {}
#pragma GCC diagnostic pop
  template <size_t N>
  constexpr Span(T (&array)[N]) : data_(array), size_(N) {}
  // Any contiguous container with data() and size(): std::vector but for bool, std::array,
  // std::string, SmallVector. It points at the container's present memory, so growing the container
  // invalidates it.
  //
  //   std::vector<int64_t> sizes = {2, 3};
  //   const Span<int64_t> all = sizes;
  //   all[0] = 5;
  //   assert(sizes[0] == 5);
  template <class C>
    requires requires(C& c) {
      static_cast<T*>(c.data());
      c.size();
    }
  constexpr Span(C&& container) : data_(container.data()), size_(container.size()) {}

  // Elements are borrowed: pointers and references are valid as long as the memory behind them.
  // operator[], front() and back() of an element that is not there are undefined.
  constexpr T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](size_t i) const { return data_[i]; }
  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }
  // `count` elements from `start`, which must lie within; a copy of all, which outlives the memory.
  constexpr Span slice(size_t start, size_t count) const { return {data_ + start, count}; }
  std::vector<value_type> vec() const { return {begin(), end()}; }

  // The same length and equal elements, wherever they lie; data() tells whether they are the same.
  // A loop, as lists are short: comparing two sizes takes less than calling memcmp.
  friend bool operator==(Span a, Span b) {
    if (a.size_ != b.size_) return false;
    for (size_t i = 0; i < a.size_; i++)
      if (!(a.data_[i] == b.data_[i])) return false;
    return true;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

// Sizes, strides, dimensions: what PyTorch's schemas call int[].
using IntSpan = Span<const int64_t>;

// "[2, 3]", as PyTorch writes shapes in messages.
std::string to_text(IntSpan values);

// As std::vector, with what shapes need. Moving and growing copy bytes; addresses of elements
// change with both. Up to N elements nothing is allocated. Capacity never shrinks but by moving
// from the vector, and doubles when it is too small, so that push_back costs constant time on
// average. Memory that is not to be had is a std::bad_alloc and leaves the vector as it was.
//
// Elements are copied as bytes and no destructor runs, which is why T must be trivially copyable.
// Parentheses and braces differ, as they do for std::vector:
//
//   const DimVector twice(2, 7), both{2, 7};
//   assert(twice == DimVector({7, 7}) && both.front() == 2);
//
//   DimVector dims{4, 5, 6};
//   dims.insert(0, 3);
//   dims.erase(1);
//   assert(dims == DimVector({3, 5, 6}) && dims.back() == 6);
template <class T, size_t N>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  using value_type = T;
  // Empty; `count` times the same value, zero if none is given; a copy of a range, list or span.
  // A vector that was moved from is empty and may be used again.
  SmallVector() = default;
  explicit SmallVector(size_t count, T value = T()) { resize(count, value); }
  SmallVector(const T* first, const T* last) { assign(first, last); }
  SmallVector(std::initializer_list<T> list) { assign(list.begin(), list.end()); }
  SmallVector(Span<const T> span) { assign(span.begin(), span.end()); }
  SmallVector(const SmallVector& other) { assign(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept { steal(other); }
  ~SmallVector() {
    if (data_ != inline_) delete[] data_;
  }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other.begin(), other.end());
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      steal(other);
    }
    return *this;
  }

  // Replaces the contents by a copy of [first, last), which may be a part of them.
  //
  //   DimVector dims{1, 2, 3, 4};
  //   dims.assign(dims.begin() + 1, dims.end());
  //   assert(dims == DimVector({2, 3, 4}));
  void assign(const T* first, const T* last) {
    const size_t count = static_cast<size_t>(last - first);
    if (count > capacity_) grow(count, /*keep=*/false);
    for (size_t i = 0; i < count; i++) data_[i] = first[i];  // a part of itself moves down
    size_ = static_cast<uint32_t>(count);
  }
  // New elements at the end are `value`; elements beyond `count` are dropped, their memory is kept.
  void resize(size_t count, T value = T()) {
    if (count > capacity_) grow(count, /*keep=*/true);
    for (size_t i = size_; i < count; i++) data_[i] = value;
    size_ = static_cast<uint32_t>(count);
  }
  // The value is taken as a copy, so it may be an element of the vector. pop_back, which returns
  // nothing, needs an element.
  void push_back(T value) {
    if (size_ == capacity_) grow(size_ + 1, /*keep=*/true);
    data_[size_++] = value;
  }
  void pop_back() { size_--; }
  void clear() { size_ = 0; }
  // Elements from `at` on move up, or down: linear in their number. `at` may be size() for insert.
  void insert(size_t at, T value) {
    push_back(value);
    std::rotate(data_ + at, data_ + size_ - 1, data_ + size_);
  }
  void erase(size_t at) {
    std::memmove(data_ + at, data_ + at + 1, (size_ - at - 1) * sizeof(T));
    size_--;
  }

  // Pointers and references are valid until the vector grows past its capacity, is moved or goes.
  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& front() { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& front() const { return data_[0]; }
  const T& back() const { return data_[size_ - 1]; }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return Span<const T>(a) == Span<const T>(b);
  }

 private:
  void grow(size_t count, bool keep) {
    const size_t capacity = std::max<size_t>(count, 2 * static_cast<size_t>(capacity_));
    T* fresh = new T[capacity];
    if (keep && size_) std::memcpy(static_cast<void*>(fresh), data_, size_ * sizeof(T));
    release();
    data_ = fresh;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  void release() {
    if (data_ != inline_) delete[] data_;
    data_ = inline_;
    capacity_ = N;
  }
  void steal(SmallVector& other) {
    if (other.data_ == other.inline_) {
      data_ = inline_;
      capacity_ = N;
      if constexpr (sizeof(inline_) <= 64)  // a length that is known takes a few instructions
        std::memcpy(static_cast<void*>(inline_), other.inline_, sizeof(inline_));
      else
        std::memcpy(static_cast<void*>(inline_), other.inline_, other.size_ * sizeof(T));
    } else {
      data_ = other.data_;
      capacity_ = other.capacity_;
      other.data_ = other.inline_;
      other.capacity_ = N;
    }
    size_ = other.size_;
    other.size_ = 0;
  }

  T* data_ = inline_;
  uint32_t size_ = 0;
  uint32_t capacity_ = N;
  T inline_[N];
};

// Sizes or strides: 56 bytes, enough for a batch of images or of volumes (n, c, d, h, w). More than
// five dimensions take a heap allocation.
using DimVector = SmallVector<int64_t, 5>;

// A vector and a span compare by elements, in either order.
template <class T, size_t N>
bool operator==(const SmallVector<T, N>& a, Span<const T> b) {
  return Span<const T>(a) == b;
}
template <class T, size_t N>
bool operator==(Span<const T> a, const SmallVector<T, N>& b) {
  return a == Span<const T>(b);
}

}  // namespace taeda
