// Storage: a run of bytes on a device and the way to give them back.
//
// Shared by all views of a tensor, with one version counter that in-place operators advance. NumPy
// arrays, DLPack capsules and mapped files are storages whose deleter drops the foreign owner:
// nothing is copied. Storages of up to 64 bytes keep their data inside the object. The address may
// change (resize, replace); tensors ask for it each time.
#pragma once

#include <atomic>
#include <cstdint>

#include "taeda/device.h"
#include "taeda/ref.h"

namespace taeda {

// Reading and counting versions is safe from any thread; resizing while another thread uses the
// memory is not.
//
//   const Ref<Storage> memory = Storage::allocate(1024, Device());
//   assert(memory->nbytes() == 1024 && memory->resizable() && memory->version() == 0);
class Storage final : public RefCounted {
 public:
  using Deleter = void (*)(void* context);

  // Uninitialised memory from the device's allocator; OutOfMemoryError when there is none. `meta`
  // has no memory.
  static Ref<Storage> allocate(int64_t nbytes, Device device);
  // Foreign memory; `deleter(context)` runs once when the last reference goes, on any thread. It
  // must not throw. The memory must hold nbytes bytes until then.
  //
  //   static int freed = 0;
  //   {
  //     auto* values = new float[2]{1, 2};
  //     const auto drop = [](void* p) { delete[] static_cast<float*>(p), freed++; };
  //     const Ref<Storage> memory = Storage::wrap(values, 8, Device(), drop, values);
  //     assert(memory->data() == values && !memory->resizable());
  //   }
  //   assert(freed == 1);
  static Ref<Storage> wrap(void* data, int64_t nbytes, Device device, Deleter deleter,
                           void* context);

  ~Storage() override;

  // The first byte, null on meta; the length as it was asked for.
  void* data() const { return data_; }
  int64_t nbytes() const { return nbytes_; }
  Device device() const { return device_; }
  bool resizable() const { return (owned_ || movable_) && resizable_ && pins_ == 0; }
  // For memory whose address somebody else has been told for good (a NumPy array).
  void forbid_resize() { resizable_ = false; }
  // The address must not change until as many calls of unpin (a buffer that is given back).
  void pin() { pins_++; }
  void unpin() { pins_--; }
  // Allows resize() to copy the contents out of foreign memory and to let that go.
  void set_movable() { movable_ = true; }
  bool writable() const { return writable_; }
  void set_read_only() { writable_ = false; }

  // Replaces the memory by one of `nbytes`, keeping what fits; RuntimeError for foreign memory that
  // is not movable. Tensors may still look at what a smaller storage lost: its addresses stay valid
  // and read as anything, while their pages go back to the system.
  void resize(int64_t nbytes);
  // Moves the contents to foreign memory of the same size (shared memory).
  void replace(void* data, Deleter deleter, void* context);
  // The context of memory that was wrapped with this deleter, else null.
  void* context_of(Deleter deleter) const { return deleter_ == deleter ? context_ : nullptr; }

  // How often operators wrote the memory in place. Backward compares it with what it was when a
  // tensor was saved, and raises where they differ.
  uint32_t version() const { return version_.load(std::memory_order_relaxed); }
  void bump_version() { version_.fetch_add(1, std::memory_order_relaxed); }

  static void* operator new(size_t size);
  static void operator delete(void* object);

 private:
  Storage() = default;
  static Ref<Storage> make(Device device);
  void free_data();
  void last_release() const override;
  // An only owner is alone with the count: nobody takes a reference from a table (try_retain).
  friend void release(const Storage* storage) {
    if (storage->is_only_owner()) return storage->last_release();
    release(static_cast<const RefCounted*>(storage));
  }

  void* data_ = nullptr;
  int64_t nbytes_ = 0;
  Deleter deleter_ = nullptr;
  union {
    void* context_ = nullptr;  // of foreign memory
    int64_t allocated_;        // of our own: its size, at least nbytes_
  };
  std::atomic<uint32_t> version_{0};
  Device device_;
  uint32_t pins_ = 0;
  bool owned_ = false;  // memory from our allocator (or inline), not foreign
  bool movable_ = false;
  bool writable_ = true;
  bool resizable_ = true;
};

}  // namespace taeda
