// Reference counting: RefCounted is the base of shared objects, Ref<T> the owning pointer to one.
//
//   struct Buffer : RefCounted { int size = 8; };
//   const Ref<Buffer> a = make_ref<Buffer>(), b = a;
//   assert(a == b && a->use_count() == 2);
//
// Counts are atomic; the object dies with its last Ref, on the thread that drops it. A class that
// needs to know when it becomes shared (TensorImpl, whose Python object must then stay alive)
// overloads retain/release, found by ADL. PyTorch's c10::intrusive_ptr is the same idea; there are
// no weak pointers here.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace taeda {

// Objects begin without an owner; make_ref gives the first. One on the stack or inside another
// object works as long as no Ref to it is made: the last Ref deletes it.
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;
  virtual ~RefCounted() = default;
  // How many Refs there are now. Other threads may change it at once, unless it is 1 and the caller
  // has that one.
  uint32_t use_count() const { return refs_.load(std::memory_order_relaxed); }

 protected:
  // Whether the caller's Ref is the only one; it then sees what the owners before have written.
  bool is_only_owner() const { return refs_.load(std::memory_order_acquire) == 1; }

 private:
  // Counting up orders nothing; the last count down sees all that other owners wrote before theirs.
  friend void retain(const RefCounted* object) {
    object->refs_.fetch_add(1, std::memory_order_relaxed);
  }
  friend void release(const RefCounted* object) {
    if (object->refs_.fetch_sub(1, std::memory_order_acq_rel) == 1) object->last_release();
  }
  // The count of a new object, which no other thread has seen.
  friend void retain_new(const RefCounted* object) {
    object->refs_.store(1, std::memory_order_relaxed);
  }
  // Takes a reference unless the last one is gone already: for tables of objects that they do not
  // own.
  friend bool try_retain(const RefCounted* object) {
    uint32_t count = object->refs_.load(std::memory_order_relaxed);
    while (count != 0)
      if (object->refs_.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel))
        return true;
    return false;
  }
  // Called with the count at zero; deep structures override it to avoid recursion.
  virtual void last_release() const { delete this; }

  mutable std::atomic<uint32_t> refs_{0};
};

// As std::shared_ptr, with the count in the object: one pointer wide, and a Ref can be made from
// `this`. One Ref object must not be changed by two threads at once; the object's other Refs may.
// Two objects that hold Refs to each other are never freed: one of them keeps a plain pointer.
//
// Copying costs an atomic addition, moving none; a function that only uses the object takes a
// `const T&`, one that keeps it a Ref by value. Dereferencing null is undefined. A Ref to a class
// converts to one of its bases; == compares addresses.
//
//   struct Base : RefCounted { virtual int id() const { return 1; } };
//   struct Derived final : Base { int id() const override { return 2; } };
//   Ref<Base> base = make_ref<Derived>();
//   assert(base->id() == 2 && base->use_count() == 1);
//   const Ref<Base> moved = std::move(base);
//   assert(!base && moved->use_count() == 1);
template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}
  explicit Ref(T* object) : object_(object) {
    if (object_) retain(object_);
  }
  Ref(const Ref& other) : Ref(other.object_) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*> Ref(Ref<U> other) : object_(other.detach()) {}
    ~Ref() {
      if (object_) release(object_);
    }
    Ref& operator=(Ref other) noexcept {
      std::swap(object_, other.object_);
      return *this;
    }

    // Takes over a count that the caller owns. With detach(), the way through C and Python, which
    // keep a plain pointer:
    //
    //   struct Buffer : RefCounted {};
    //   Buffer* const kept = make_ref<Buffer>().detach();
    //   assert(Ref<Buffer>::adopt(kept)->use_count() == 1);
    static Ref adopt(T* object) {
      Ref ref;
      ref.object_ = object;
      return ref;
    }
    // Gives the count to the caller, who must adopt() it again; this Ref is null afterwards.
    T* detach() { return std::exchange(object_, nullptr); }

    T* get() const { return object_; }
    T& operator*() const { return *object_; }
    T* operator->() const { return object_; }
    explicit operator bool() const { return object_ != nullptr; }
    friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }

   private:
    T* object_ = nullptr;
};

// A new object with its first owner: one allocation. Exceptions of its constructor, which makes no
// Ref to the object, pass through.
template <class T, class... Args>
Ref<T> make_ref(Args&&... args) {
  T* const object = new T(std::forward<Args>(args)...);
  retain_new(object);
  return Ref<T>::adopt(object);
}

}  // namespace taeda
