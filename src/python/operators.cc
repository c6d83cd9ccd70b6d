// Python's operators on tensors: + - * / // % @ ** << >> & | ^ ~, their reflected and in-place
// forms, comparison, and conversions to Python numbers.
//
// Each slot hands its operands to the binding that the table generated for the operator's method,
// so types are checked, numbers wrapped and overrides seen in one place. Foreign operands, NumPy
// arrays among them, give NotImplemented: `tensor + array` is NumPy's sum, which comes back as a
// tensor (__array_wrap__), and `array + tensor` raises, as in PyTorch.
#include "python/arguments.h"
#include "python/generated.h"
#include "python/interop.h"
#include "python/module.h"
#include "python/tensor_slots.h"
#include "python/torch_function.h"
#include "python/trace.h"
#include "python/wrap.h"
#include "taeda/warning.h"

namespace taeda::python {
namespace {

using Binding = PyObject* (*)(PyObject* self, PyObject* const* args, Py_ssize_t nargs,
                              PyObject* kwnames);

// The generated binding of Tensor.NAME, or null when the table has no such operator.
Binding find_binding(std::string_view name) {
  for (const MethodGroup* group = kMethodGroups; group->owner; group++) {
    if (std::string_view(group->owner) != "Tensor") continue;
    for (PyMethodDef* def = group->methods; def->ml_name; def++) {
      if (name == def->ml_name)
        return reinterpret_cast<Binding>(reinterpret_cast<void (*)()>(def->ml_meth));
    }
  }
  return nullptr;
}

// One operator: the bindings of its functional and in-place forms. `reflected` names the method for
// operands that may not be exchanged.
struct Operator {
  const char* name;
  const char* reflected = nullptr;
  Binding function = nullptr;
  Binding inplace = nullptr;
};
// In the order of Op below.
Operator operators[] = {{"add"},
                        {"sub", "__rsub__"},
                        {"mul"},
                        {"div", "__rtruediv__"},
                        {"floor_divide", "__rfloordiv__"},
                        {"remainder", "__rmod__"},
                        {"pow", "__rpow__"},
                        {"matmul", "__rmatmul__"},
                        {"bitwise_left_shift", "__rlshift__"},
                        {"bitwise_right_shift", "__rrshift__"},
                        {"bitwise_and"},
                        {"bitwise_or"},
                        {"bitwise_xor"},
                        {"neg"},
                        {"abs"},
                        {"bitwise_not"},
                        {"lt"},
                        {"le"},
                        {"eq"},
                        {"ne"},
                        {"gt"},
                        {"ge"}};
enum Op {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDivide,
  kRemainder,
  kPow,
  kMatmul,
  kLeftShift,
  kRightShift,
  kAnd,
  kOr,
  kXor,
  kNeg,
  kAbs,
  kNot,
  kLt,
  kLe,
  kEq,
  kNe,
  kGt,
  kGe
};

bool is_plain(PyObject* object) {
  return is_exact_tensor(object) || PyFloat_CheckExact(object) || PyLong_CheckExact(object);
}

// The operand as operators take it: itself, an array as a tensor, or null for foreign types. New
// reference.
PyRef operand(PyObject* object) {
  if (is_plain(object) || is_tensor(object) || can_be_scalar(object)) return PyRef::share(object);
  if (overrides_torch_function(object)) return PyRef::share(object);
  return PyRef();
}

PyObject* call_binary(Binding binding, PyObject* a, PyObject* b) {
  if (is_plain(a) && is_plain(b)) [[likely]]
    return binding(a, &b, 1, nullptr);
  TD_PYTHON_TRY
  const PyRef left = operand(a), right = operand(b);
  if (!left || !right) Py_RETURN_NOTIMPLEMENTED;
  PyObject* other = right.get();
  return binding(left.get(), &other, 1, nullptr);
  TD_PYTHON_CATCH(nullptr)
}

// `number - subclass`: a handler sees Tensor.__rsub__(subclass, number), or the operator with its
// operands exchanged where they may be.
PyObject* call_reflected(Op op, PyObject* number, PyObject* tensor) {
  const Operator& spec = operators[op];
  if (!spec.reflected) return spec.function(tensor, &number, 1, nullptr);
  TD_PYTHON_TRY
  PyObject* type = reinterpret_cast<PyObject*>(tensor_type);
  const PyRef function = PyRef::check(PyObject_GetAttrString(type, spec.reflected));
  PyObject* args[] = {tensor, number};
  return call_torch_function(function.get(), args, 2, nullptr);
  TD_PYTHON_CATCH(nullptr)
}

// `array / tensor` alone of the arithmetic gives a tensor, as in PyTorch: the array is multiplied
// by the reciprocal. So are numbers divided by complex tensors, which differs from a quotient where
// the divisor is 0 or infinite.
PyObject* by_reciprocal(PyObject* a, PyObject* tensor) {
  static const Binding reciprocal = find_binding("reciprocal");
  const PyRef inverse = PyRef::adopt(reciprocal(tensor, nullptr, 0, nullptr));
  return inverse ? PyNumber_Multiply(inverse.get(), a) : nullptr;
}

template <Op op>
PyObject* binary(PyObject* a, PyObject* b) {
  const Binding binding = operators[op].function;
  if (!binding) Py_RETURN_NOTIMPLEMENTED;
  if (op == kDiv && !is_tensor(a) && is_numpy_array(a) && is_tensor(b)) [[unlikely]]
    return by_reciprocal(a, b);
  if (!is_tensor(a) && can_be_scalar(a) && is_tensor(b) && hands_over(b)) [[unlikely]]
    return call_reflected(op, a, b);
  if (op == kDiv && !is_tensor(a) && is_tensor(b) && tensor_of(b).is_complex() && can_be_scalar(a))
    return by_reciprocal(a, b);
  return call_binary(binding, a, b);
}

template <Op op>
PyObject* binary_inplace(PyObject* a, PyObject* b) {
  const Binding binding = operators[op].inplace;
  if (!binding) Py_RETURN_NOTIMPLEMENTED;
  return call_binary(binding, a, b);
}

template <Op op>
PyObject* unary(PyObject* a) {
  const Binding binding = operators[op].function;
  if (!binding) {
    PyErr_Format(PyExc_NotImplementedError, "Tensor.%s", operators[op].name);
    return nullptr;
  }
  return binding(a, nullptr, 0, nullptr);
}

PyObject* invert(PyObject* a) {
  if (!overrides_torch_function(a) && is_inexact(tensor_of(a).dtype())) {
    PyErr_SetString(PyExc_TypeError,
                    "~ (operator.invert) is only implemented on integer and Boolean-type tensors");
    return nullptr;
  }
  return unary<kNot>(a);
}

PyObject* power(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary<kPow>(a, b);
}

PyObject* power_inplace(PyObject* a, PyObject* b, PyObject* modulo) {
  if (modulo != Py_None) Py_RETURN_NOTIMPLEMENTED;
  return binary_inplace<kPow>(a, b);
}

PyObject* positive(PyObject* a) { return new_ref(a); }

PyObject* compare(PyObject* a, PyObject* b, int op) {
  static_assert(Py_LT == 0 && Py_LE == 1 && Py_EQ == 2 && Py_NE == 3 && Py_GT == 4 && Py_GE == 5);
  const Binding binding = operators[kLt + op].function;
  if (!binding) Py_RETURN_NOTIMPLEMENTED;
  TD_PYTHON_TRY
  if (op == Py_EQ && !is_plain(b) && is_numpy_array(b)) {  // != and the others raise
    const PyRef array = PyRef::check(tensor_from_array(b));
    return call_binary(binding, a, array.get());
  }
  return call_binary(binding, a, b);
  TD_PYTHON_CATCH(nullptr)
}

// --- Python numbers ---

Scalar only_element(PyObject* self) {
  const Tensor& x = tensor_of(self);
  if (x.numel() != 1)
    raise_python(PyExc_ValueError, "only one element tensors can be converted to Python scalars");
  return x.item_scalar();
}

int tensor_bool(PyObject* self) {
  TD_PYTHON_TRY
  if (hands_over(self)) [[unlikely]]
    return PyObject_IsTrue(hand_over("__bool__", {self}).get());
  const Tensor& x = tensor_of(self);
  TD_CHECK(
      x.numel() == 1,
      "Boolean value of Tensor with {} is ambiguous\nFix: expected one value, and {} are given: "
      "x.any(), x.all(), or torch.where instead of if",
      x.numel() == 0 ? "no values" : "more than one value", x.numel());
  leaves_trace("a Python boolean");
  return x.item_scalar().to_bool();
  TD_PYTHON_CATCH(-1)
}

PyObject* tensor_int(PyObject* self) {
  TD_PYTHON_TRY
  if (hands_over(self)) [[unlikely]]
    return hand_over("__int__", {self}).release();
  leaves_trace("a Python integer");
  const Scalar value = only_element(self);
  if (value.is_float())
    return PyLong_FromDouble(value.to_double());  // nan and inf raise as in Python
  if (value.is_complex())
    raise_python(PyExc_TypeError, "int() argument must not be a complex tensor");
  return wrap_integer(value);
  TD_PYTHON_CATCH(nullptr)
}

PyObject* tensor_float(PyObject* self) {
  TD_PYTHON_TRY
  if (hands_over(self)) [[unlikely]]
    return hand_over("__float__", {self}).release();
  leaves_trace("a Python float");
  if (thread_modes.grad_enabled && tensor_of(self).requires_grad())
    TD_WARN_ONCE(
        "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
        "Consider using tensor.detach() first.");
  return PyFloat_FromDouble(only_element(self).to_double());
  TD_PYTHON_CATCH(nullptr)
}

PyObject* tensor_index(PyObject* self) {
  TD_PYTHON_TRY
  if (hands_over(self)) [[unlikely]]
    return hand_over("__index__", {self}).release();
  const Tensor& x = tensor_of(self);
  if (x.numel() != 1 || is_inexact(x.dtype())) {
    raise_python(PyExc_TypeError,
                 "only integer tensors of a single element can be converted to an index");
  }
  leaves_trace("a Python index");
  return wrap_integer(x.item_scalar());
  TD_PYTHON_CATCH(nullptr)
}

}  // namespace

void add_number_slots(TypeSlots& slots) {
  for (Operator& op : operators) {
    op.function = find_binding(op.name);
    op.inplace = find_binding(std::string(op.name) + "_");
  }
  const PyType_Slot own[] = {
      type_slot(Py_nb_add, binary<kAdd>),
      type_slot(Py_nb_subtract, binary<kSub>),
      type_slot(Py_nb_multiply, binary<kMul>),
      type_slot(Py_nb_true_divide, binary<kDiv>),
      type_slot(Py_nb_floor_divide, binary<kFloorDivide>),
      type_slot(Py_nb_remainder, binary<kRemainder>),
      type_slot(Py_nb_power, power),
      type_slot(Py_nb_matrix_multiply, binary<kMatmul>),
      type_slot(Py_nb_lshift, binary<kLeftShift>),
      type_slot(Py_nb_rshift, binary<kRightShift>),
      type_slot(Py_nb_and, binary<kAnd>),
      type_slot(Py_nb_or, binary<kOr>),
      type_slot(Py_nb_xor, binary<kXor>),
      type_slot(Py_nb_inplace_add, binary_inplace<kAdd>),
      type_slot(Py_nb_inplace_subtract, binary_inplace<kSub>),
      type_slot(Py_nb_inplace_multiply, binary_inplace<kMul>),
      type_slot(Py_nb_inplace_true_divide, binary_inplace<kDiv>),
      type_slot(Py_nb_inplace_floor_divide, binary_inplace<kFloorDivide>),
      type_slot(Py_nb_inplace_remainder, binary_inplace<kRemainder>),
      type_slot(Py_nb_inplace_power, power_inplace),
      type_slot(Py_nb_inplace_lshift, binary_inplace<kLeftShift>),
      type_slot(Py_nb_inplace_rshift, binary_inplace<kRightShift>),
      type_slot(Py_nb_inplace_and, binary_inplace<kAnd>),
      type_slot(Py_nb_inplace_or, binary_inplace<kOr>),
      type_slot(Py_nb_inplace_xor, binary_inplace<kXor>),
      type_slot(Py_nb_negative, unary<kNeg>),
      type_slot(Py_nb_absolute, unary<kAbs>),
      type_slot(Py_nb_invert, invert),
      type_slot(Py_nb_positive, positive),
      type_slot(Py_tp_richcompare, compare),
      type_slot(Py_nb_bool, tensor_bool),
      type_slot(Py_nb_int, tensor_int),
      type_slot(Py_nb_float, tensor_float),
      type_slot(Py_nb_index, tensor_index),
  };
  slots.insert(slots.end(), std::begin(own), std::end(own));
}

}  // namespace taeda::python
