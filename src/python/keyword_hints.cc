// CPython says from 3.13 on which keyword was meant; before, only that one is unexpected. The call
// is made as ever, and only where it failed with that TypeError is the text looked at. A class gets
// its own `tp_vectorcall`: `type(cls)` stays `type`, and subclasses of programs are left alone.
#include "python/keyword_hints.h"

#include "python/call.h"
#include "python/module.h"
#include "python/suggestion.h"

namespace taeda::python {
namespace {

constexpr std::string_view kUnexpected = "() got an unexpected keyword argument '";

// The keyword of "softmax() got an unexpected keyword argument 'dimm'"; empty for other texts.
std::string_view unexpected_keyword(std::string_view text) {
  const size_t at = text.find(kUnexpected);
  if (at == text.npos || text.back() != '\'') return {};
  const size_t first = at + kUnexpected.size();
  return first < text.size() ? text.substr(first, text.size() - first - 1) : std::string_view();
}

bool passes(PyObject* kwnames, std::string_view keyword) {
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(kwnames); i++) {
    if (utf8(PyTuple_GET_ITEM(kwnames, i)) == keyword) return true;
  }
  return false;
}

// Names that a Python function takes as keywords, added to `known`; whether it takes any others.
bool add_parameters(PyObject* function, std::vector<std::string>& known) {
  PyRef code = PyRef::check(PyObject_GetAttrString(function, "__code__"));
  PyRef names = PyRef::check(PyObject_GetAttrString(code.get(), "co_varnames"));
  const auto* head = reinterpret_cast<PyCodeObject*>(code.get());
  const int count = head->co_argcount + head->co_kwonlyargcount;
  for (int i = head->co_posonlyargcount; i < count; i++) {
    const std::string_view name = utf8(PyTuple_GET_ITEM(names.get(), i));
    if (name != "self" && name.substr(0, 1) != "_") known.emplace_back(name);
  }
  return head->co_flags & CO_VARKEYWORDS;
}

// What the class's __init__ takes, and those of its bases as far as **kwargs are passed on.
std::vector<std::string> parameters_of_class(PyObject* type) {
  std::vector<std::string> known;
  PyObject* bases = reinterpret_cast<PyTypeObject*>(type)->tp_mro;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(bases); i++) {
    PyObject* dict = reinterpret_cast<PyTypeObject*>(PyTuple_GET_ITEM(bases, i))->tp_dict;
    PyObject* init = dict ? PyDict_GetItemString(dict, "__init__") : nullptr;
    if (init && (!PyFunction_Check(init) || !add_parameters(init, known))) break;
  }
  return known;
}

std::vector<std::string> parameters_of(PyObject* callable) {
  if (PyType_Check(callable)) return parameters_of_class(callable);
  std::vector<std::string> known;
  if (PyFunction_Check(callable)) add_parameters(callable, known);
  return known;
}

void add_hint(PyObject* callable, PyObject* kwnames, PyObject* error) {
  PyRef text = PyRef::check(PyObject_Str(error));
  const std::string_view keyword = unexpected_keyword(utf8(text.get()));
  if (keyword.empty() || !passes(kwnames, keyword)) return;
  const std::vector<std::string> known = parameters_of(callable);
  const std::string hint = did_you_mean(keyword, {known.begin(), known.end()});
  if (!hint.empty()) {
    const std::string longer = std::string(utf8(text.get())) + hint;
    PyRef args = PyRef::check(Py_BuildValue("(s)", longer.c_str()));
    check_status(PyObject_SetAttrString(error, "args", args.get()));
  }
  const std::string note = "Fix: " + keywords_text({known.begin(), known.end()});
  PyRef::check(PyObject_CallMethod(error, "add_note", "s", note.c_str()));
}

PyObject* construct(PyObject* type, PyObject* const* args, size_t nargsf, PyObject* kwnames) {
  const Py_ssize_t nargs = PyVectorcall_NARGS(nargsf);
  PyRef positional = PyRef::adopt(PyTuple_New(nargs));
  if (!positional) return nullptr;
  for (Py_ssize_t i = 0; i < nargs; i++) PyTuple_SET_ITEM(positional.get(), i, new_ref(args[i]));
  PyRef named;
  const Py_ssize_t count = kwnames ? PyTuple_GET_SIZE(kwnames) : 0;
  if (count) named = PyRef::adopt(PyDict_New());
  if (count && !named) return nullptr;
  for (Py_ssize_t i = 0; i < count; i++) {
    if (PyDict_SetItem(named.get(), PyTuple_GET_ITEM(kwnames, i), args[nargs + i])) return nullptr;
  }
  PyObject* made =
      call_python([&] { return Py_TYPE(type)->tp_call(type, positional.get(), named.get()); });
  return made ? made : hint_at_keywords(type, kwnames);
}

// _hint_keywords(class or function): the class itself, or a function that calls the given one.
PyObject* hint_keywords(PyObject*, PyObject* callable) {
  TD_PYTHON_TRY
  if (PyFunction_Check(callable)) return hinting_function(callable).release();
  auto* type = reinterpret_cast<PyTypeObject*>(callable);
  if (!PyType_Check(callable) || !(type->tp_flags & Py_TPFLAGS_HEAPTYPE))
    raise_python(PyExc_TypeError, "_hint_keywords() expects a function or class, got {}",
                 type_name(callable));
  type->tp_vectorcall = construct;
  return new_ref(callable);
  TD_PYTHON_CATCH(nullptr)
}

// _did_you_mean(wrong, names): ". Did you mean 'dim'?" or "".
PyObject* suggest(PyObject*, PyObject* const* args, Py_ssize_t count) {
  TD_PYTHON_TRY
  if (count != 2 || !PyUnicode_Check(args[0]))
    raise_python(PyExc_TypeError, "_did_you_mean() expects a name and a list of names");
  PyRef names = PyRef::check(PySequence_Fast(args[1], "_did_you_mean() expects a list of names"));
  std::vector<std::string_view> known;
  for (Py_ssize_t i = 0; i < PySequence_Fast_GET_SIZE(names.get()); i++)
    known.push_back(utf8(PySequence_Fast_GET_ITEM(names.get(), i)));
  const std::string text = did_you_mean(utf8(args[0]), known);
  return PyUnicode_FromStringAndSize(text.data(), static_cast<Py_ssize_t>(text.size()));
  TD_PYTHON_CATCH(nullptr)
}

PyMethodDef functions[] = {
    {"_hint_keywords", hint_keywords, METH_O,
     "_hint_keywords(callable) -> callable\n\nDecorator of functions and classes: TypeErrors name "
     "the keyword that an unexpected one may have meant."},
    {"_did_you_mean", as_function(suggest), METH_FASTCALL,
     "_did_you_mean(wrong, names) -> str\n\n\". Did you mean 'dim'?\", or nothing where no name is "
     "near."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

PyObject* hint_at_keywords(PyObject* callable, PyObject* kwnames) {
  if (!kwnames || !PyErr_ExceptionMatches(PyExc_TypeError)) return nullptr;
  PyObject *type, *value, *trace;
  PyErr_Fetch(&type, &value, &trace);
  PyErr_NormalizeException(&type, &value, &trace);
  try {
    add_hint(callable, kwnames, value);
  } catch (const PythonError&) {
    PyErr_Clear();  // the error stays as it was
  }
  PyErr_Restore(type, value, trace);
  return nullptr;
}

void add_keyword_hints(PyObject* module) { check_status(PyModule_AddFunctions(module, functions)); }

}  // namespace taeda::python
