#include "kernels/cpu/gemm/onednn.h"

#ifdef __x86_64__
#include <cpuid.h>
#endif

#include <cstdlib>
#include <optional>

#include "base/block_signals.h"
#include "base/implementations.h"
#include "hwy/targets.h"
#include "taeda/error.h"

namespace taeda::cpu::onednn {

namespace {

// oneDNN takes the sizes of AMX's tiles from CPUID's leaf 0x1d. Virtual machines exist that show
// the instructions and not this leaf: its kernels would then set up no tiles and end in SIGILL.
bool shows_no_tiles() {
#ifdef __x86_64__
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kTileLeaf = 0x1d, kAmxTile = 1u << 24;  // the latter of leaf 7's edx
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(d & kAmxTile)) return false;
  return !__get_cpuid_count(kTileLeaf, 0, &a, &b, &c, &d) || a == 0;  // a: the last palette
#else
  return false;
#endif
}

// Before oneDNN looks at the processor for the first time. Who names a limit himself gets that one.
void limit_to_usable_instructions() {
  [[maybe_unused]] static const bool limited = [] {
    if (!shows_no_tiles() || std::getenv("ONEDNN_MAX_CPU_ISA")) return false;
    dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx512_core_fp16);
    return true;
  }();
}

}  // namespace

dnnl::engine& engine() {
  // Never destroyed: cached primitives and other threads' streams may outlive static destruction.
  static dnnl::engine* const instance = [] {
    limit_to_usable_instructions();
    return new dnnl::engine(dnnl::engine::kind::cpu, 0);
  }();
  return *instance;
}

dnnl::stream& stream() {
  static thread_local dnnl::stream instance(engine());
  return instance;
}

bool multiplies_bf16() {
  static const bool does = [] {
    using dnnl::cpu_isa;
    if ((hwy::SupportedTargets() & HWY_AVX3) == 0) return false;
    limit_to_usable_instructions();
    const cpu_isa isa = dnnl::get_effective_cpu_isa();
    return isa == cpu_isa::avx512_core_bf16 || isa == cpu_isa::avx512_core_fp16 ||
           isa == cpu_isa::avx512_core_amx || isa == cpu_isa::avx512_core_amx_fp16;
  }();
  return does;
}

dnnl::memory::data_type type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return dnnl::memory::data_type::f32;
    case DType::kBFloat16:
      return dnnl::memory::data_type::bf16;
    case DType::kFloat16:
      return dnnl::memory::data_type::f16;
    default:
      fail(ErrorKind::kNotImplemented, "oneDNN has no type {}", dtype);
  }
}

dnnl::memory::dims dims_of(IntSpan values) { return {values.begin(), values.end()}; }

dnnl::memory::desc desc_of(const View& v) {
  return {dims_of(v.sizes), type_of(v.dtype), dims_of(v.strides)};
}

dnnl::primitive_attr own_scratchpad() {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  return attributes;
}

namespace {

const char* name_of(dnnl::primitive::kind kind) {
  switch (kind) {
    case dnnl::primitive::kind::matmul:
      return "matmul ";
    case dnnl::primitive::kind::convolution:
      return "convolution ";
    case dnnl::primitive::kind::reorder:
      return "reorder ";
    default:
      return "";
  }
}

}  // namespace

void count_implementation(const dnnl::primitive_desc_base& pd) {
  taeda::count_implementation(std::string(name_of(pd.get_kind())) + pd.impl_info_str());
}

void Compiled::run(std::unordered_map<int, dnnl::memory> arguments) const {
  const OneThread one_thread;
  const Scratch<char> scratch(static_cast<int64_t>(scratch_bytes));
  if (scratch_bytes > 0) {
    const dnnl::memory::desc desc({static_cast<dnnl::memory::dim>(scratch_bytes)},
                                  dnnl::memory::data_type::u8, dnnl::memory::format_tag::a);
    arguments.emplace(DNNL_ARG_SCRATCHPAD, memory_at(desc, scratch.data()));
  }
  std::optional<BlockSignals> no_frames;
  if (moves_stack) no_frames.emplace();
  primitive.execute(stream(), arguments);
}

namespace {

void append(std::vector<int64_t>& key, const dnnl::memory::desc& desc) {
  key.push_back(static_cast<int64_t>(desc.get_data_type()));
  const auto extend = [&](const std::vector<dnnl_dim_t>& values) {
    key.push_back(static_cast<int64_t>(values.size()));
    key.insert(key.end(), values.begin(), values.end());
  };
  extend(desc.get_dims());
  extend(desc.get_padded_dims());
  extend(desc.get_strides());
  extend(desc.get_inner_blks());
  extend(desc.get_inner_idxs());
}

}  // namespace

void reorder(const dnnl::memory::desc& from, const void* source, const dnnl::memory::desc& to,
             void* target) {
  static Cache<Compiled>& cache = *new Cache<Compiled>(1024);
  std::vector<int64_t> key;
  key.reserve(64);
  append(key, from);
  append(key, to);
  const auto compiled = cache.get(key, [&] {
    const OneThread one_thread;
    const dnnl::reorder::primitive_desc pd(engine(), from, engine(), to, own_scratchpad());
    count_implementation(pd);
    return std::make_shared<Compiled>(Compiled{dnnl::reorder(pd), pd.scratchpad_desc().get_size()});
  });
  compiled->run({{DNNL_ARG_FROM, memory_at(from, const_cast<void*>(source))},
                 {DNNL_ARG_TO, memory_at(to, target)}});
}

}  // namespace taeda::cpu::onednn
