// What inspect.signature says of functions that are written by hand.

#include <algorithm>
#include <deque>
#include <string>

#include "python/module.h"

namespace taeda::python {
namespace {

// "dim=None" of the docstring "size(dim=None) -> Size or int\n\n..."; false where it is not a call.
// What Python cannot read as a parameter becomes *args; a default by a name of torch, None.
bool find_parameters(const PyMethodDef& def, std::string& found) {
  if (!def.ml_doc) return false;
  std::string_view doc = def.ml_doc;
  const std::string start = std::string(def.ml_name) + "(";
  if (doc.substr(0, start.size()) != start) return false;
  doc.remove_prefix(start.size());
  const size_t end = doc.find(')');
  if (end == std::string_view::npos) return false;
  found = doc.substr(0, end);
  if (found.find('|') != std::string::npos) found = "*args, **kwargs";
  for (size_t i = found.find("=torch."); i != std::string::npos; i = found.find("=torch."))
    found.replace(i, std::min(found.find(',', i), found.size()) - i, "=None");
  return true;
}

}  // namespace

void add_signatures(PyMethodDef* functions, bool methods) {
  // For as long as the process lives, as Python keeps the pointers.
  static std::deque<std::string>& texts = *new std::deque<std::string>;
  for (PyMethodDef* def = functions; def->ml_name; def++) {
    std::string parameters;
    if (!find_parameters(*def, parameters)) continue;
    if (def->ml_flags & METH_O) parameters += ", /";
    if (methods) parameters = parameters.empty() ? "$self" : "$self, " + parameters;
    texts.push_back(std::string(def->ml_name) + "(" + parameters + ")\n--\n\n" + def->ml_doc);
    def->ml_doc = texts.back().c_str();
  }
}

}  // namespace taeda::python
