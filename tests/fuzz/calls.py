"""Calls of operators, functions, methods and classes as programs of a few lines."""

from __future__ import annotations

import ast
import inspect
import random
from types import ModuleType
from typing import Any

from gen.table import Op
from tests.fuzz.names import Names, resolve
from tests.fuzz.values import Values
from tests.ops import samples as grid

BACKWARD = (
    "[t.sum().backward() for t in (r if isinstance(r, (tuple, list)) else [r]) "
    "if isinstance(t, torch.Tensor) and t.requires_grad]"
)
BINARY = "+ - * / // % ** @ & | ^ << >> == != < <= > >=".split()
UNARY = ("-{}", "+{}", "~{}", "abs({})", "len({})", "bool({})", "int({})", "float({})", "list({})")
UNARY_MORE = (
    *["complex({})", "hash({})", "repr({})", "str({})", "format({}, '.3f')", "format({}, '')"],
    *["round({}, 2)", "divmod({}, 2)", "range(3)[{}]", "reversed({})", "dir({})", "1 in {}"],
    *["copy.copy({})", "copy.deepcopy({})", "pickle.loads(pickle.dumps({}))", "np.asarray({})"],
    *["memoryview({})", "np.array({}, dtype='float16')", "np.sin({})", "sum({})", "max({})"],
)
Argument = tuple[str | None, str]  # keyword or None, text


class SampleText(ast.NodeTransformer):
    """A table entry's sample, whose x(3, 4), i(3), b(2), p(2, 2) make tensors, as expressions."""

    def __init__(self, values: Values, dtype: str):
        self.values, self.dtype = values, dtype

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if not isinstance(node.func, ast.Name) or node.func.id not in "xibp":
            return node
        try:
            shape = tuple(ast.literal_eval(a) for a in node.args)
            options = {k.arg: ast.literal_eval(k.value) for k in node.keywords}
        except ValueError:
            return node
        if node.func.id == "x":
            text = self.values.tensor(shape, options.get("dtype", self.dtype))
        elif node.func.id == "i":
            text = f"torch.randint(0, {options.get('high', 3)}, {shape})"
        elif node.func.id == "p":
            text = f"(torch.rand({shape}) + {shape[-1]} * torch.eye({shape[-1]}))"
        else:
            text = f"(torch.rand({shape}) < 0.5)"
        return ast.parse(text, mode="eval").body


class Calls:
    def __init__(self, torch: ModuleType, names: Names, rng: random.Random):
        self.torch, self.names, self.rng = torch, names, rng
        self.values = Values(rng)

    # --- arguments ---

    def from_sample(self, op: Op) -> list[Argument] | None:
        """An honest call, of which arguments may then be spoiled."""
        texts = grid.samples(op)
        if not texts:
            return None
        dtype = self.rng.choice(grid.dtypes(op)) if self.values.chance(0.9) else "int16"
        call: Any = ast.parse(f"f({self.rng.choice(texts)})", mode="eval").body
        call = SampleText(self.values, dtype).visit(call)
        made = [(None, ast.unparse(a)) for a in call.args]
        made += [(k.arg, ast.unparse(k.value)) for k in call.keywords]
        types = {a.name: a.type for a in op.sig.args}
        for _ in range(self.rng.choice([0, 0, 1, 1, 2])):
            at = self.rng.randrange(len(made)) if made else 0
            if not made or (made[at][0] is None and at >= len(op.sig.args)):
                break
            keyword = made[at][0]
            kind = types.get(keyword, "Tensor") if keyword else op.sig.args[at].type
            made[at] = (keyword, self.values.of_type(kind))
        return made

    def from_schema(self, op: Op) -> list[Argument]:
        made: list[Argument] = []
        skipped = False
        for a in op.sig.args:
            if a.type == "options" or (a.default is not None and self.values.chance(0.4)):
                skipped = True
                continue
            named = a.keyword_only or skipped or self.values.chance(0.1)
            name = "input" if a.name == "self" else a.name
            made.append((name if named else None, self.values.of_type(a.type)))
            skipped = skipped or named
        return made

    def from_signature(self, target: Any) -> list[Argument]:
        """Arguments of a Python function by the names of its parameters; others blindly."""
        try:
            parameters = list(inspect.signature(target).parameters.values())
        except (ValueError, TypeError):
            return self.blind()
        made: list[Argument] = []
        for p in parameters:
            given = self.values.chance(0.35 if p.default is not p.empty else 0.97)
            if p.kind is p.VAR_POSITIONAL:
                made += self.blind()
            elif given and p.kind is not p.VAR_KEYWORD:
                positional = p.kind is not p.KEYWORD_ONLY and p.default is p.empty
                made.append((None if positional else p.name, self.like(p)))
        return sorted(made, key=lambda m: m[0] is not None)

    def like(self, p: inspect.Parameter) -> str:
        """A value like the default, or one that the parameter's name suggests."""
        by_type = {bool: "bool", int: "int", float: "float", str: "str", tuple: "int[]"}
        kind = by_type.get(type(p.default))
        return self.values.of_type(kind) if kind else self.values.by_name(p.name)

    def blind(self) -> list[Argument]:
        return [(None, self.values.anything()) for _ in range(self.rng.choice([0, 0, 1, 1, 2, 3]))]

    @staticmethod
    def joined(arguments: list[Argument]) -> str:
        return ", ".join(text if name is None else f"{name}={text}" for name, text in arguments)

    # --- programs: (what is called, its lines) ---

    def operator(self) -> tuple[str, str]:
        op, path = self.rng.choice(self.names.table)
        made = (self.from_sample(op) if self.values.chance(0.6) else None) or self.from_schema(op)
        method = path.startswith("Tensor.")
        form = self.rng.random()
        if form < 0.15 and "inplace" in op.variants:
            method, path = True, f"Tensor.{op.name}_"
            if resolve(self.torch, path) is None:
                path = f"Tensor.{op.name}"
        elif form < 0.3 and "out" in op.variants and not method:
            count = len(op.sig.returns)
            outs = ", ".join(self.values.tensor() for _ in range(count))
            made.append(("out", outs if count == 1 else f"({outs})"))
        return path, self.after(self.called(path, made, method))

    def called(self, path: str, made: list[Argument], method: bool) -> str:
        if method and made and made[0][0] in (None, "input"):
            return f"({made[0][1]}).{path.rpartition('.')[2]}({self.joined(made[1:])})"
        return f"torch.{path}({self.joined(made)})"

    def after(self, call: str) -> str:
        lines = [f"r = {call}"]
        if "requires_grad" in call and self.values.chance(0.7):
            lines.append(BACKWARD)
        elif self.values.chance(0.15):
            lines.append("repr(r)")
        return "\n".join(lines)

    def function(self) -> tuple[str, str]:
        path = self.rng.choice(self.names.functions)
        target = resolve(self.torch, path)
        informed = inspect.isfunction(target) and self.values.chance(0.8)
        made = self.from_signature(target) if informed else self.blind()
        return path, self.after(f"torch.{path}({self.joined(made)})")

    def method(self) -> tuple[str, str]:
        name = self.rng.choice(self.names.methods)
        made: list[Argument] = [(None, self.values.tensor()), *self.blind()]
        return f"Tensor.{name}", self.after(self.called(name, made, True))

    def property(self) -> tuple[str, str]:
        name = self.rng.choice(self.names.properties)
        x = self.values.tensor()
        if self.values.chance(0.5):
            return f"Tensor.{name}", self.after(f"({x}).{name}")
        lines = [f"x = {x}", f"x.{name} = {self.values.anything()}", "r = repr(x)"]
        return f"Tensor.{name} =", "\n".join(lines)

    def protocol(self) -> tuple[str, str]:
        """What Python's own syntax and library ask of a tensor."""
        x = self.values.tensor()
        kind = self.rng.randrange(4)
        if kind == 0:
            other = self.values.anything()
            a, b = (x, other) if self.values.chance(0.7) else (other, x)
            symbol = self.rng.choice(BINARY)
            return f"operator {symbol}", self.after(f"({a}) {symbol} ({b})")
        if kind == 1:
            symbol = self.rng.choice(BINARY[:13])
            lines = [f"r = {x}", f"r {symbol}= {self.values.anything()}", BACKWARD]
            return f"operator {symbol}=", "\n".join(lines)
        form = self.rng.choice(UNARY if kind == 2 else UNARY_MORE)
        return form.format("x"), f"r = {form.format(x)}"

    def cls(self) -> tuple[str, str]:
        """An object of a public class and some of its methods."""
        path = self.rng.choice(list(self.names.classes))
        target = resolve(self.torch, path)
        lines = [f"o = torch.{path}({self.joined(self.from_signature(target))})"]
        for name in self.rng.choices(self.names.classes[path] or ["__repr__"], k=2):
            if self.values.chance(0.6):
                method = getattr(target, name, None)
                informed = inspect.isfunction(method) and self.values.chance(0.8)
                made = self.from_signature(method)[1:] if informed else self.blind()
                lines.append(f"r = o.{name}({self.joined(made)})")
        return path, "\n".join(lines)
