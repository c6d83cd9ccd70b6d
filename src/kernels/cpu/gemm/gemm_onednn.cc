#include "kernels/cpu/gemm/gemm_onednn.h"

#include <string_view>

#include "kernels/cpu/gemm/onednn.h"

namespace taeda::cpu {

namespace {

using dnnl::memory;

struct Plan {
  onednn::Compiled kernel;
  memory::desc a, b, c, bias;
  bool fast;
};

memory::desc describe(const OnednnProduct& p, const Matrix& m, int64_t step,
                      memory::data_type type) {
  if (p.count == 1) return {{m.rows, m.cols}, type, {m.row_stride, m.col_stride}};
  return {{p.count, m.rows, m.cols}, type, {step, m.row_stride, m.col_stride}};
}

// What oneDNN takes for the best layout of B under a row-major A without gaps. A primitive for a B
// in that layout and another A exists only as reference.
std::shared_ptr<const memory::desc> packed_layout(int64_t k, int64_t columns) {
  static auto& cache = *new onednn::Cache<memory::desc>(1024);
  return cache.get({k, columns}, [&] {
    constexpr int64_t kRows = 512;  // of a product that B is packed for
    const OneThread one_thread;
    const auto bf16 = memory::data_type::bf16;
    const auto row_major = memory::format_tag::ab;
    const dnnl::matmul::primitive_desc pd(onednn::engine(), {{kRows, k}, bf16, row_major},
                                          {{k, columns}, bf16, memory::format_tag::any},
                                          {{kRows, columns}, bf16, row_major},
                                          onednn::own_scratchpad());
    return std::make_shared<const memory::desc>(pd.weights_desc());
  });
}

std::shared_ptr<Plan> build_plan(const OnednnProduct& p) {
  const OneThread one_thread;
  const auto bf16 = memory::data_type::bf16;
  auto plan = std::make_shared<Plan>();
  plan->a = describe(p, p.a, p.a_step, bf16);
  plan->b = p.packed ? *packed_layout(p.b.rows, p.b.cols) : describe(p, p.b, p.b_step, bf16);
  plan->c = describe(p, p.c, p.c_step, p.wide ? memory::data_type::f32 : bf16);
  if (p.bias) plan->bias = {{1, p.c.cols}, bf16, memory::format_tag::ab};
  constexpr bool kAllowEmpty = true;
  const dnnl::matmul::primitive_desc pd(onednn::engine(), plan->a, plan->b, plan->bias, plan->c,
                                        onednn::own_scratchpad(), kAllowEmpty);
  plan->kernel = onednn::compile<dnnl::matmul>(pd);
  plan->fast = plan->kernel && std::string_view(pd.impl_info_str()).starts_with("brg");
  return plan;
}

std::shared_ptr<const Plan> find_plan(const OnednnProduct& p) {
  static auto& cache = *new onednn::Cache<Plan>(1024);
  onednn::Cache<Plan>::Key key{p.c.rows, p.c.cols, p.a.cols, p.wide,   p.bias != nullptr,
                               p.count,  p.c_step, p.a_step, p.b_step, p.packed};
  for (const Matrix* m : {&p.a, &p.b, &p.c}) key.insert(key.end(), {m->row_stride, m->col_stride});
  return cache.get(key, [&] { return build_plan(p); });
}

}  // namespace

bool onednn_multiplies(DType dtype) {
  return dtype == DType::kBFloat16 && onednn::multiplies_bf16();
}

bool onednn_packs_for(const Matrix& a) { return a.col_stride == 1 && a.row_stride == a.cols; }

bool onednn_gemm(const OnednnProduct& p) {
  const std::shared_ptr<const Plan> plan = find_plan(p);
  if (!plan->kernel || (p.count > 1 && !plan->fast)) return false;
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, onednn::memory_at(plan->a, p.a.data)},
      {DNNL_ARG_WEIGHTS, onednn::memory_at(plan->b, p.b.data)},
      {DNNL_ARG_DST, onednn::memory_at(plan->c, p.c.data)}};
  if (p.bias)
    arguments.emplace(DNNL_ARG_BIAS, onednn::memory_at(plan->bias, const_cast<void*>(p.bias)));
  plan->kernel.run(std::move(arguments));
  return true;
}

int64_t onednn_packed_bytes(int64_t k, int64_t columns) {
  return static_cast<int64_t>(packed_layout(k, columns)->get_size());
}

void onednn_pack(const Matrix& b, void* to) {
  const memory::desc lies({b.rows, b.cols}, memory::data_type::bf16, {b.row_stride, b.col_stride});
  onednn::reorder(lies, b.data, *packed_layout(b.rows, b.cols), to);
}

}  // namespace taeda::cpu
