// Operators as data: records, schemas, boxed calls, registration from C++.
#include "taeda/operator.h"

#include <gtest/gtest.h>

#include "ops/modes.h"
#include "ops/overloads.h"
#include "taeda/autograd.h"
#include "taeda/ops.h"
#include "taeda/values.h"

namespace taeda {
namespace {

Tensor call(const char* name, const char* overload, Stack stack) {
  const Operator* op = find_operator(name, overload);
  EXPECT_NE(op, nullptr) << name << "." << overload;
  op->fill_defaults(stack);
  op->call(stack);
  return stack.at(0).tensor();
}

double number(const Tensor& t) { return t.item_scalar().to_double(); }

TEST(Operator, HasItsSchema) {
  const Operator* add = find_operator("aten::add", "Tensor");
  ASSERT_NE(add, nullptr);
  const Schema& schema = add->schema();
  EXPECT_EQ(schema.text(),
            "aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor");
  EXPECT_EQ(schema.arguments[2].name, "alpha");
  EXPECT_TRUE(schema.arguments[2].keyword_only);
  EXPECT_EQ(schema.arguments[2].default_value.integer(), 1);
  EXPECT_FALSE(schema.is_mutable());
}

TEST(Operator, IsFoundByEveryNameThatItsEntryCovers) {
  EXPECT_NE(find_operator("aten::add", "Scalar"), nullptr);
  EXPECT_NE(find_operator("aten::sum"), nullptr);
  EXPECT_EQ(find_operator("aten::relu", "default"), find_operator("aten::relu"));
  EXPECT_EQ(find_operator("aten::no_such_operator"), nullptr);
  EXPECT_EQ(find_operator("aten::add", "no_such_overload"), nullptr);
}

TEST(Operator, OverloadsAreComputedByTheirEntry) {
  const Operator& scalar = *find_operator("aten::add", "Scalar");
  EXPECT_EQ(scalar.schema().text(),
            "aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor");
  EXPECT_EQ(&overloads::entry_of(scalar), find_operator("aten::add", "Tensor"));
  EXPECT_FALSE(overloads::is_seen(scalar));
  Stack stack = {ones({2}), 2, 3};
  scalar.call(stack);
  EXPECT_EQ(number(stack[0].tensor().sum()), 14);

  const Operator& sum = *find_operator("aten::sum", "dim_IntList");
  Stack all = {ones({2}), Value(), false, Value()}, one = {ones({2}), IntSpan({0}), false, Value()};
  EXPECT_EQ(overloads::of_call(sum, all), find_operator("aten::sum"));
  EXPECT_EQ(all.size(), 2u);
  EXPECT_EQ(overloads::of_call(sum, one), nullptr);
  EXPECT_EQ(one.size(), 4u);
}

TEST(Operator, HasFormsForInPlaceAndOut) {
  const Operator* inplace = find_operator("aten::add_", "Tensor");
  ASSERT_NE(inplace, nullptr);
  EXPECT_EQ(inplace->schema().text(),
            "aten::add_.Tensor(Tensor(a!) self, Tensor other, *, Scalar alpha=1) -> Tensor(a!)");
  EXPECT_TRUE(inplace->schema().is_mutable());
  const Operator* out = find_operator("aten::mm", "out");
  ASSERT_NE(out, nullptr);
  EXPECT_EQ(out->schema().text(),
            "aten::mm.out(Tensor self, Tensor mat2, *, Tensor(a!) out) -> Tensor(a!)");
}

TEST(Operator, RecordsAreSortedAndEachIsFound) {
  ASSERT_GT(kNumOperatorRecords, 700u);
  for (size_t i = 0; i < kNumOperatorRecords; i++) {
    const OperatorRecord& record = *kOperatorRecords[i];
    EXPECT_EQ(find_operator(record.name(), record.overload()), &record.form(Operator::Form::kPlain))
        << record.text;
    // The schema reads back as it was written.
    const std::string text = record.form(Operator::Form::kPlain).schema().text();
    EXPECT_EQ(parse_schema(text).text(), text);
  }
}

TEST(Operator, CallsWithValues) {
  const Tensor x = tensor({1.0, 2.0}), y = tensor({10.0, 20.0});
  EXPECT_EQ(number(call("aten::add", "Tensor", {x, y, 2}).sum()), 63.0);
  EXPECT_EQ(number(call("aten::add", "Tensor", {x, 1}).sum()), 5.0);  // a number for a tensor
  EXPECT_EQ(call("aten::cat", "", {TensorList{x, y}, -1}).numel(), 4);
  EXPECT_EQ(number(call("aten::sum", "", {x})), 3.0);
  EXPECT_EQ(call("aten::zeros", "", {Value::Ints{2, 3}}).sizes(), IntSpan({2, 3}));
  EXPECT_EQ(call("aten::gelu", "", {x, "tanh"}).numel(), 2);
  Stack two = {tensor({3.0, 1.0}), 0};
  find_operator("aten::max", "dim")->fill_defaults(two);
  find_operator("aten::max", "dim")->call(two);
  ASSERT_EQ(two.size(), 2u);
  EXPECT_EQ(number(two[0].tensor()), 3.0);
}

TEST(Operator, WritesInPlaceAndIntoOut) {
  const Tensor x = tensor({1.0, 2.0}), out = empty({2});
  const uint32_t version = x.version();
  EXPECT_TRUE(call("aten::add_", "Tensor", {x, 1, 1}).is_same(x));
  EXPECT_GT(x.version(), version);
  EXPECT_TRUE(call("aten::add", "out", {x, x, 1, out}).is_same(out));
  EXPECT_EQ(number(out.sum()), 10.0);
  EXPECT_TRUE(call("aten::cumsum", "out", {x, 0, Value(), out}).is_same(out));
  EXPECT_EQ(number(out.select(0, 1)), 5.0);
}

TEST(Operator, RecordsItsGradient) {
  const Tensor x = tensor({1.0, 2.0}).requires_grad_();
  call("aten::mul", "Tensor", {x, x}).sum().backward();
  EXPECT_EQ(number(x.grad().sum()), 6.0);
}

TEST(Operator, RefusesWhatItsSchemaDoesNotSay) {
  const Tensor x = tensor({1.0});
  const auto fails = [](const char* name, const char* overload, Stack stack, const char* part) {
    try {
      find_operator(name, overload)->call(stack);
      ADD_FAILURE() << name << " did not raise";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
    }
  };
  fails("aten::relu", "", {"text"}, "Expected a value of type 'Tensor' for argument 'self'");
  fails("aten::relu", "", {Value()}, "Expected a value of type 'Tensor' for argument 'self'");
  fails("aten::relu", "", {x, x}, "takes 1 arguments but got 2");
  fails("aten::softmax", "int", {x, 3, Value()}, "Dimension out of range");
  fails("aten::cat", "", {TensorList{Tensor()}, 0}, "Expected a value of type 'Tensor[]'");
  Stack none;
  EXPECT_THROW(find_operator("aten::relu")->fill_defaults(none), Error);
}

TEST(Schema, SaysWhereItIsWrong) {
  for (const char* text :
       {"", "f", "f(", "f(Tensor) -> Tensor", "f(Strange x) -> Tensor", "f(Tensor x) -> ",
        "f(Tensor x, Tensor x) -> Tensor", "f(int x=) -> Tensor", "f(Tensor x) -> Tensor y more",
        "f(int[x] y) -> ()", "f(str s=\"a) -> ()", "f(Tensor(a x) -> ()"})
    EXPECT_THROW(parse_schema(text), Error) << text;
  const Schema schema = parse_schema(
      "ns::f.o(Tensor(a!)[] x, Tensor?[] y, *, int[2] n=1, float? s=None) -> (Tensor(a!)[], int)");
  EXPECT_EQ(schema.name, "ns::f");
  EXPECT_EQ(schema.overload, "o");
  EXPECT_TRUE(schema.arguments[0].alias.written);
  EXPECT_TRUE(schema.arguments[1].type.optional_elements);
  EXPECT_EQ(schema.arguments[2].default_value.ints(), (Value::Ints{1, 1}));
  EXPECT_EQ(parse_schema(schema.text()).text(), schema.text());
}

// --- generic keys ---

std::vector<std::string>* seen = nullptr;
void note(const Operator& op, KeySet keys, Stack& stack) {
  seen->push_back(op.qualified_name());
  op.redispatch(keys - KeySet(Key::kTrace), stack);
}

TEST(Modes, SendEveryOperatorThroughOneHandler) {
  std::vector<std::string> names;
  seen = &names;
  dispatch::set_handler(Key::kTrace, note);
  const Tensor x = tensor({1.0, 2.0}).requires_grad_(), out = empty({2});
  {
    const IncludeKeys tracing((KeySet(Key::kTrace)));
    Tensor y = mul(x, x);
    y = y.detach();
    y.add_(1.0);
    op::sub_out(y, y, Scalar(1), out);
    op::softmax(y, -1, std::nullopt);
    const auto [values, indices] = op::max_dim(y, 0, false);
    EXPECT_EQ(number(values), 5.0);
  }
  mul(x, x);  // not seen
  dispatch::set_handler(Key::kTrace, nullptr);
  EXPECT_EQ(names[0], "aten::mul.Tensor");
  EXPECT_NE(std::find(names.begin(), names.end(), "aten::add_.Tensor"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "aten::sub.out"), names.end());
  EXPECT_NE(std::find(names.begin(), names.end(), "aten::max.dim"), names.end());
}

TEST(Modes, KeepWhatAutogradRecords) {
  dispatch::set_handler(Key::kTrace, [](const Operator& op, KeySet keys, Stack& stack) {
    op.redispatch(keys - KeySet(Key::kTrace), stack);
  });
  const Tensor x = tensor({1.0, 2.0}).requires_grad_();
  {
    const IncludeKeys tracing((KeySet(Key::kTrace)));
    (x * x).sum().backward();
  }
  dispatch::set_handler(Key::kTrace, nullptr);
  EXPECT_EQ(number(x.grad().sum()), 6.0);
}

// --- registration ---

Tensor scale(const Tensor& x, double factor, OptInt power) {
  Tensor result = x * factor;
  for (int64_t i = 1; i < power.value_or(1); i++) result = result * factor;
  return result;
}
std::tuple<Tensor, Tensor> both(const TensorList& xs) { return {xs.at(0), xs.at(1)}; }
void fill_ones(const Tensor& x) {
  for (int64_t i = 0; i < x.numel(); i++) x.data<float>()[i] = 1;
}

TD_LIBRARY(operator_test, library) {
  library.define("scale(Tensor x, float factor, int? power=None) -> Tensor");
  library.implement("scale", KernelKind::kComposite, scale);
  library.define("both(Tensor[] xs) -> (Tensor, Tensor)");
  library.implement("both", KernelKind::kCPU, both);
  library.define("fill_ones(Tensor(a!) x) -> ()");
  library.implement("fill_ones", KernelKind::kCPU, fill_ones);
}

TEST(Library, RegistersWhileTheProgramIsLoaded) {
  const Tensor x = tensor({1.0, 2.0});
  EXPECT_EQ(number(call("operator_test::scale", "", {x, 3}).sum()), 9.0);
  EXPECT_EQ(number(call("operator_test::scale", "", {x, 3.0, 2}).sum()), 27.0);
}

TEST(Library, CompositeKernelsAreDifferentiable) {
  const Tensor x = tensor({1.0, 2.0}).requires_grad_();
  call("operator_test::scale", "", {x, 3.0}).sum().backward();
  EXPECT_EQ(number(x.grad().sum()), 6.0);
}

TEST(Library, OthersSayThatTheirGradientIsMissing) {
  const Tensor x = tensor({1.0}).requires_grad_();
  Stack stack = {TensorList{x * 2.0, x}};
  find_operator("operator_test::both")->call(stack);
  EXPECT_TRUE(stack[0].tensor().requires_grad());
}

TEST(Library, CountsWhatTheSchemaSaysIsWritten) {
  const Tensor x = zeros({2});
  const uint32_t version = x.version();
  Stack stack = {x};
  find_operator("operator_test::fill_ones")->call(stack);
  EXPECT_EQ(number(x.sum()), 2.0);
  EXPECT_GT(x.version(), version);
  EXPECT_TRUE(stack.empty());
}

TEST(Library, RefusesWhatDoesNotFit) {
  Library library("operator_test_refused");
  library.define("f(Tensor x) -> Tensor");
  EXPECT_THROW(library.define("f(Tensor x) -> Tensor"), Error);
  EXPECT_THROW(library.define("aten::mine(Tensor x) -> Tensor"), Error);
  EXPECT_THROW(library.implement("f", KernelKind::kCPU, scale), Error);  // other types
  EXPECT_THROW(library.implement("g", KernelKind::kCPU, scale), Error);  // not defined
  EXPECT_THROW(Library("aten").implement("aten::relu", KernelKind::kCPU, scale), Error);
  Stack stack = {tensor({1.0})};
  EXPECT_THROW(find_operator("operator_test_refused::f")->call(stack), Error);  // no kernel
}

TEST(Library, ReplacesAKernelOfTheTableUntilItEnds) {
  const Tensor x = ones({2}).requires_grad_();
  {
    Library library("aten");
    library.implement("neg", KernelKind::kCPU,
                      BoxedKernel([](const Operator&, KeySet, Stack& stack) {
                        stack = {stack[0].tensor() * 5};
                      }));
    const Tensor y = -x;
    EXPECT_EQ(number(y.sum()), 10);
    EXPECT_TRUE(y.requires_grad());
    EXPECT_EQ(number(x.detach().clone().neg_().sum()), -2);
  }
  EXPECT_EQ(number((-x).sum()), -2);
  Library library("aten");
  const BoxedKernel kernel = [](const Operator&, KeySet, Stack&) {};
  EXPECT_THROW(library.implement("add.Scalar", KernelKind::kCPU, kernel), Error);
}

TEST(Library, TakesItsOperatorsBack) {
  {
    Library library("operator_test_gone");
    library.define("f(Tensor x) -> Tensor");
    EXPECT_NE(find_operator("operator_test_gone::f"), nullptr);
  }
  EXPECT_EQ(find_operator("operator_test_gone::f"), nullptr);
}

}  // namespace
}  // namespace taeda
