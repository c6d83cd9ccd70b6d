// Operators that programs register: the library they belong to, and shared libraries of them.
#include <dlfcn.h>

#include <exception>
#include <mutex>
#include <unordered_map>

#include "ops/operator.h"
#include "ops/overloads.h"
#include "ops/overrides.h"

namespace taeda {

struct Library::Registrations {
  std::vector<Operator*> defined;
  struct Kernel {
    Operator* op;
    KernelKind kind;
    std::shared_ptr<const BoxedKernel> function;
  };
  std::vector<Kernel> kernels;
};

Library::Library(std::string name_space)
    : name_space_(std::move(name_space)), registrations_(std::make_unique<Registrations>()) {}
Library::Library(Library&&) noexcept = default;
Library::~Library() {
  if (!registrations_) return;
  for (const auto& [op, kind, function] : registrations_->kernels) {
    OperatorRegistry::remove_kernel(*op, kind, function);
    OperatorRegistry::refresh(*op);
  }
  for (const Operator* op : registrations_->defined) OperatorRegistry::get().undefine(*op);
}

std::string Library::qualify(std::string_view name) const {
  return name.find("::") == std::string_view::npos ? name_space_ + "::" + std::string(name)
                                                   : std::string(name);
}

std::string Library::define(std::string_view text) {
  Schema schema = parse_schema(text);
  schema.name = qualify(schema.name);
  const std::string_view space = std::string_view(schema.name).substr(0, schema.name.find("::"));
  TD_CHECK(
      space != "aten" && space != "taeda",
      "the operators of namespace '{}' are defined by the operator table; a library cannot add "
      "'{}' to them",
      space, schema.name);
  TD_CHECK(space == name_space_, "the schema's namespace '{}' is not the library's, '{}'", space,
           name_space_);
  Operator& op = OperatorRegistry::get().define(std::move(schema));
  registrations_->defined.push_back(&op);
  return op.qualified_name();
}

namespace {

// The operator of that name to which kernels can be given.
Operator& registered(const std::string& qualified) {
  const size_t colons = qualified.find("::"), dot = qualified.find('.', colons);
  const std::string name = qualified.substr(0, dot);
  std::string overload = dot == std::string::npos ? "" : qualified.substr(dot + 1);
  if (overload == "default") overload.clear();
  if (Operator* op = OperatorRegistry::get().find(name, overload)) return *op;
  // The table's are constant but for what programs register.
  auto* const op = const_cast<Operator*>(find_operator(name, overload));
  TD_CHECK(op, "operator {} does not exist: define it before giving it a kernel", qualified);
  const Operator& entry = overloads::entry_of(*op);
  TD_CHECK_IMPLEMENTED(&entry == op || overloads::is_seen(*op),
                       "{}: calls do not pass this overload but {}, which can be given a kernel",
                       qualified, entry.qualified_name());
  TD_CHECK_IMPLEMENTED(overrides::can_have(*op),
                       "{}: has no kernel of its own that could be replaced, it is computed as {} "
                       "whose result is copied; give that one a kernel, or let a "
                       "TorchDispatchMode or __torch_function__ stand in front of it",
                       qualified, op->record()->form(Operator::Form::kPlain).qualified_name());
  return *op;
}

}  // namespace

void Library::implement(std::string_view name, KernelKind kind, BoxedKernel kernel) {
  Operator& op = registered(qualify(name));
  auto function = std::make_shared<const BoxedKernel>(std::move(kernel));
  OperatorRegistry::set_kernel(op, kind, function);
  registrations_->kernels.push_back({&op, kind, std::move(function)});
  OperatorRegistry::refresh(op);
}

void Library::fall_through(std::string_view name, KernelKind kind) {
  implement(name, kind, BoxedKernel());  // an empty one: the key is passed by
}

void Library::check_signature(std::string_view name, const std::vector<const char*>& arguments,
                              const std::vector<const char*>& results) const {
  const Schema& schema = registered(qualify(name)).schema();
  const auto matches = [](const SchemaType& type, std::string_view native) {
    if (native == "?") return type.optional;
    SchemaType plain = type;
    plain.size = 0;
    if (plain.is_tensor()) plain.optional = false;
    plain.optional_elements = false;
    return plain.text() == native;
  };
  const auto all = [&](const std::vector<SchemaArgument>& expected,
                       const std::vector<const char*>& given) {
    if (expected.size() != given.size()) return false;
    for (size_t i = 0; i < given.size(); i++)
      if (!matches(expected[i].type, given[i])) return false;
    return true;
  };
  const auto listed = [](const std::vector<const char*>& types) {
    std::string text;
    for (const char* type : types) text += (text.empty() ? "" : ", ") + std::string(type);
    return text;
  };
  TD_CHECK(
      all(schema.arguments, arguments) && all(schema.results, results),
      "the C++ function for '{}' has the types ({}) -> ({}), which are not those of its schema",
      schema.text(), listed(arguments), listed(results));
}

// --- shared libraries ---

namespace {

// What the first of the blocks threw that ran since this thread began to load a library; null
// outside of load_library.
thread_local std::exception_ptr* load_error = nullptr;

// What loading a library threw, by its handle: it stays in the process, and its blocks run once.
struct FailedLoads {
  std::mutex mutex;
  std::unordered_map<void*, std::exception_ptr> errors;
};
FailedLoads& failed_loads() {
  static auto& loads = *new FailedLoads;
  return loads;
}

}  // namespace

detail::LoadedLibrary::LoadedLibrary(const char* name_space, void (*fill)(Library&)) {
  Library library(name_space);
  try {
    fill(library);
    library_.emplace(std::move(library));
  } catch (...) {
    if (!load_error) throw;
    if (!*load_error) *load_error = std::current_exception();
  }
}

void load_library(const std::string& path) {
  std::exception_ptr error;
  std::exception_ptr* const outer = std::exchange(load_error, &error);
  void* const handle = dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL);
  load_error = outer;
  if (!handle) fail(ErrorKind::kOS, "{}", dlerror());
  FailedLoads& loads = failed_loads();
  const std::unique_lock lock(loads.mutex);
  if (error) loads.errors.emplace(handle, error);
  if (const auto found = loads.errors.find(handle); found != loads.errors.end())
    std::rethrow_exception(found->second);
}

}  // namespace taeda
