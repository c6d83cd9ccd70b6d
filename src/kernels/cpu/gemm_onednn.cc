#include "kernels/cpu/gemm_onednn.h"

#include <string_view>

#include "kernels/cpu/onednn.h"

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

std::shared_ptr<Plan> build_plan(const OnednnProduct& p) {
  const OneThread one_thread;
  const auto bf16 = memory::data_type::bf16;
  auto plan = std::make_shared<Plan>();
  plan->a = describe(p, p.a, p.a_step, bf16);
  plan->b = describe(p, p.b, p.b_step, bf16);
  plan->c = describe(p, p.c, p.c_step, p.wide ? memory::data_type::f32 : bf16);
  if (p.bias) plan->bias = {{1, p.c.cols}, bf16, memory::format_tag::ab};
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const dnnl::matmul::primitive_desc pd(onednn::engine(), plan->a, plan->b, plan->bias, plan->c,
                                        attributes);
  plan->fast = std::string_view(pd.impl_info_str()).starts_with("brg");
  plan->kernel = {dnnl::matmul(pd), pd.scratchpad_desc().get_size()};
  return plan;
}

std::shared_ptr<const Plan> find_plan(const OnednnProduct& p) {
  static onednn::Cache<Plan> cache(1024);
  onednn::Cache<Plan>::Key key{p.c.rows, p.c.cols, p.a.cols, p.wide,  p.bias != nullptr,
                               p.count,  p.c_step, p.a_step, p.b_step};
  for (const Matrix* m : {&p.a, &p.b, &p.c}) key.insert(key.end(), {m->row_stride, m->col_stride});
  return cache.get(key, [&] { return build_plan(p); });
}

}  // namespace

bool onednn_multiplies(DType dtype) {
  return dtype == DType::kBFloat16 && onednn::multiplies_bf16();
}

bool onednn_gemm(const OnednnProduct& p) {
  const std::shared_ptr<const Plan> plan = find_plan(p);
  if (p.count > 1 && !plan->fast) return false;
  std::unordered_map<int, memory> arguments{
      {DNNL_ARG_SRC, onednn::memory_at(plan->a, p.a.data)},
      {DNNL_ARG_WEIGHTS, onednn::memory_at(plan->b, p.b.data)},
      {DNNL_ARG_DST, onednn::memory_at(plan->c, p.c.data)}};
  if (p.bias)
    arguments.emplace(DNNL_ARG_BIAS, onednn::memory_at(plan->bias, const_cast<void*>(p.bias)));
  plan->kernel.run(std::move(arguments));
  return true;
}

}  // namespace taeda::cpu
