#include "autograd/meta.h"

#include "base/block_list.h"

namespace taeda::autograd {
namespace {

constexpr size_t kBlockBytes = (sizeof(AutogradMeta) + 63) / 64 * 64;
using Blocks = BlockList<taeda::detail::BlockClass::kAutogradMeta, kBlockBytes>;

}  // namespace

AutogradMeta::~AutogradMeta() = default;

void* AutogradMeta::operator new(size_t) { return Blocks::take(); }
void AutogradMeta::operator delete(void* object) { Blocks::give(object); }

AutogradMeta& make_meta(TensorImpl* impl) {
  if (!impl->autograd) impl->autograd.reset(new AutogradMeta);
  return *meta_of(impl);
}

void refresh_keys(TensorImpl* impl) {
  const AutogradMeta* meta = meta_of(impl);
  const bool wanted =
      impl->inference || impl->view_base || (meta && (meta->requires_grad || meta->grad_fn));
  impl->keys = wanted ? impl->keys | Key::kAutograd : impl->keys - Key::kAutograd;
}

}  // namespace taeda::autograd
