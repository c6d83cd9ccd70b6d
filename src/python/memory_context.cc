#include "python/memory_context.h"

#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "device/memory.h"
#include "python/common.h"
#include "python/gil.h"

namespace taeda::python {
namespace {

std::atomic<Stacks> stacks{Stacks::kLine};

// References that were dropped without the GIL, or with an allocator's lock held: dropping a code
// object may run anything. The next allocation drops them.
struct Dropped {
  std::mutex mutex;
  std::vector<PyCodeObject*> codes;
};
Dropped& dropped() {
  static auto& instance = *new Dropped;
  return instance;
}
void drop_codes() {
  std::vector<PyCodeObject*> codes;
  {
    const std::lock_guard<std::mutex> lock(dropped().mutex);
    codes.swap(dropped().codes);
  }
  for (PyCodeObject* code : codes) Py_DECREF(code);
}

class PythonContext : public MemoryContext {
 public:
  struct Entry {
    PyCodeObject* code;
    int instruction;
  };
  ~PythonContext() override {
    const std::lock_guard<std::mutex> lock(dropped().mutex);
    for (const Entry& entry : entries) dropped().codes.push_back(entry.code);
  }
  std::vector<Frame> frames() const override {
    const GilAcquire gil;
    std::vector<Frame> result;
    for (const Entry& entry : entries) {
      result.push_back({text(entry.code->co_filename),
                        PyCode_Addr2Line(entry.code, entry.instruction),
                        text(entry.code->co_name)});
    }
    return result;
  }

  std::vector<Entry> entries;

 private:
  static std::string text(PyObject* object) {
    const char* const found = PyUnicode_AsUTF8(object);
    if (!found) PyErr_Clear();
    return found ? found : "?";
  }
};

// The folder of the package, "/.../taeda/", which taeda.__file__ names.
const std::string& own_folder() {
  static const std::string folder = [] {
    const PyRef module = PyRef::adopt(PyImport_ImportModule("taeda"));
    const PyRef file =
        module.get() ? PyRef::adopt(PyObject_GetAttrString(module.get(), "__file__")) : PyRef();
    const char* const path = file.get() ? PyUnicode_AsUTF8(file.get()) : nullptr;
    if (!path) {
      PyErr_Clear();
      return std::string("\n");  // begins no path
    }
    const std::string_view text = path;
    return std::string(text.substr(0, text.rfind('/') + 1));
  }();
  return folder;
}

bool is_own(const PyCodeObject* code) {
  const char* const file = PyUnicode_AsUTF8(code->co_filename);
  if (!file) PyErr_Clear();
  const std::string& folder = own_folder();
  return file && std::strncmp(file, folder.c_str(), folder.size()) == 0;
}

void add_frames(PythonContext& context, bool all) {
  using FrameRef = std::unique_ptr<PyFrameObject, void (*)(PyFrameObject*)>;
  const auto drop = [](PyFrameObject* f) { Py_XDECREF(f); };
  FrameRef frame(PyThreadState_GetFrame(PyThreadState_Get()), drop);
  PyCodeObject* innermost = nullptr;  // with a reference
  int instruction = 0;
  while (frame) {
    PyCodeObject* const code = PyFrame_GetCode(frame.get());
    if (all || !is_own(code)) {
      context.entries.push_back({code, PyFrame_GetLasti(frame.get())});
      if (!all) break;
    } else if (!innermost) {
      innermost = code;
      instruction = PyFrame_GetLasti(frame.get());
    } else {
      Py_DECREF(code);
    }
    frame.reset(PyFrame_GetBack(frame.get()));
  }
  if (!innermost) return;
  if (context.entries.empty())
    context.entries.push_back({innermost, instruction});
  else
    Py_DECREF(innermost);
}

bool is_finalizing() {
#if PY_VERSION_HEX >= 0x030d0000
  return Py_IsFinalizing();
#else
  return _Py_IsFinalizing();
#endif
}

MemoryContextRef context_of_caller() {
  if (!Py_IsInitialized() || is_finalizing()) return nullptr;
  const GilAcquire gil;
  if (PyErr_Occurred()) return nullptr;
  drop_codes();
  auto context = std::make_shared<PythonContext>();
  add_frames(*context, stacks.load(std::memory_order_relaxed) == Stacks::kAll);
  if (context->entries.empty()) return nullptr;
  return context;
}

}  // namespace

void keep_stacks(Stacks which) { stacks = which; }
void install_memory_context() { cuda::set_memory_context_hook(context_of_caller); }

}  // namespace taeda::python
