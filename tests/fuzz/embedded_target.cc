// The readers that need Python, in a program with an interpreter in it: the C++ unpickler compiled
// with a call at every branch, and taeda's own module with it (tests/fuzz/embedded.py is the rest).
//
// TAEDA_FUZZ_READER names the reader: pickle, archive or safetensors. A libFuzzer target; driver.cc
// stands in where clang's libFuzzer is not to be had. Lines of the readers in Python count as new
// code, too. Ends the process when a reader raises what says nothing, or a file makes anything
// happen: opens another, starts a process, compiles code.
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <unordered_map>

extern "C" PyObject* PyInit__C();
extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

namespace {

// libFuzzer and driver.cc take what is counted here for branches of the program.
constexpr size_t kLineCounters = 1 << 15;
__attribute__((section("__libfuzzer_extra_counters"))) uint8_t line_counters[kLineCounters];

bool reading = false;
PyObject *judge = nullptr, *mutant = nullptr;
const char* reader_name = nullptr;

[[noreturn]] void end(const char* what, const char* details) {
  std::fprintf(stderr, "%s: %s\n", what, details);
  std::abort();
}
// A call that succeeds unless this program is at fault.
PyObject* must(PyObject* object) {
  if (object) return object;
  PyErr_Print();
  end("the fuzzer itself failed", reader_name);
}

int audit(const char* event, PyObject*, void*) {
  static constexpr const char* kForbidden[] = {"open",    "os.",  "subprocess.", "socket.",
                                               "shutil.", "exec", "compile",     "ctypes."};
  if (!reading) return 0;
  for (const char* start : kForbidden)
    if (std::strncmp(event, start, std::strlen(start)) == 0)
      end("the file made this happen", event);
  return 0;
}

bool belongs_to_reader(PyCodeObject* code) {
  static std::unordered_map<PyCodeObject*, bool> known;
  const auto [it, is_new] = known.try_emplace(code, false);
  if (is_new) {
    Py_INCREF(code);  // its address stays its own
    const char* file = PyUnicode_AsUTF8(code->co_filename);
    const std::string_view path = file ? file : "";
    it->second = path.find("/serialization/") != path.npos || path.ends_with("/safetensors.py");
  }
  return it->second;
}

int trace(PyObject*, PyFrameObject* frame, int what, PyObject*) {
  static size_t last = 0;
  if (what != PyTrace_LINE) return 0;
  PyCodeObject* code = PyFrame_GetCode(frame);
  if (belongs_to_reader(code)) {
    const size_t here = static_cast<size_t>(PyFrame_GetLineNumber(frame)) * 31 +
                        static_cast<size_t>(code->co_firstlineno) * 2053;
    uint8_t& count = line_counters[(here ^ last) % kLineCounters];
    if (count < 4) count++;
    last = here >> 1;
  }
  Py_DECREF(code);
  return 0;
}

void start_python() {
  PyConfig config;
  PyConfig_InitPythonConfig(&config);
  config.install_signal_handlers = 0;
  // The interpreter whose environment has the packages.
  PyConfig_SetBytesString(&config, &config.program_name, TAEDA_FUZZ_PYTHON);
  const PyStatus status = Py_InitializeFromConfig(&config);
  PyConfig_Clear(&config);
  if (PyStatus_Exception(status)) end("Python does not start", status.err_msg);
  // This program's module, before the package looks for the one beside its files.
  PyObject* core = must(PyInit__C());
  if (PyDict_SetItemString(PyImport_GetModuleDict(), "taeda._C", core) != 0) must(nullptr);
  Py_DECREF(core);
}

}  // namespace

extern "C" int LLVMFuzzerInitialize(int*, char***) {
  reader_name = std::getenv("TAEDA_FUZZ_READER");
  if (!reader_name) reader_name = "pickle";
  start_python();
  PyObject* module = must(PyImport_ImportModule("tests.fuzz.embedded"));
  judge = must(PyObject_CallMethod(module, "prepare", "s", reader_name));
  mutant = must(PyObject_GetAttrString(module, "mutant"));
  Py_DECREF(module);
  PySys_AddAuditHook(audit, nullptr);
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  PyObject* bytes = must(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(data),
                                                   static_cast<Py_ssize_t>(size)));
  reading = true;
  PyEval_SetTrace(trace, nullptr);
  PyObject* wrong = PyObject_CallOneArg(judge, bytes);
  PyEval_SetTrace(nullptr, nullptr);
  reading = false;
  Py_DECREF(bytes);
  if (PyUnicode_GetLength(must(wrong)) > 0) end("wrong exception", PyUnicode_AsUTF8(wrong));
  Py_DECREF(wrong);
  return 0;
}

// Half of the mutants know the format.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int seed) {
  if (seed % 2) return LLVMFuzzerMutate(data, size, max_size);
  PyObject* made =
      must(PyObject_CallFunction(mutant, "sy#I", reader_name, reinterpret_cast<const char*>(data),
                                 static_cast<Py_ssize_t>(size), seed));
  const size_t count = std::min(static_cast<size_t>(PyBytes_GET_SIZE(made)), max_size);
  std::memcpy(data, PyBytes_AS_STRING(made), count);
  Py_DECREF(made);
  return count;
}
