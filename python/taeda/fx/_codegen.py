"""CodeGen: the Python source of a graph's forward."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import taeda
from taeda._ops import OpOverload
from taeda.fx._names import is_from_torch, qualified_name, type_repr
from taeda.fx._namespace import _custom_builtins, _Namespace
from taeda.fx._pytree import tree_flatten_spec
from taeda.fx.node import Node
from taeda.utils import _pytree as pytree

magic_methods = {
    "eq": "{} == {}", "ne": "{} != {}", "lt": "{} < {}", "gt": "{} > {}", "le": "{} <= {}",
    "ge": "{} >= {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", "add": "{} + {}",
    "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "mod": "{} % {}", "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}",
    "or_": "{} | {}", "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}", "pow": "{} ** {}",
}  # fmt: skip
reflectable_magic_methods = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}",
    "truediv": "{} / {}", "div": "{} / {}", "mod": "{} % {}", "pow": "{} ** {}",
    "lshift": "{} << {}", "rshift": "{} >> {}", "and_": "{} & {}", "or_": "{} | {}",
    "xor": "{} ^ {}", "getitem": "{}[{}]", "matmul": "{} @ {}",
}  # fmt: skip
inplace_methods = {
    "iadd": "{} += {}", "iand": "{} &= {}", "ifloordiv": "{} //= {}", "ilshift": "{} <<= {}",
    "imod": "{} %= {}", "imul": "{} *= {}", "imatmul": "{} @= {}", "ior": "{} |= {}",
    "ipow": "{} **= {}", "irshift": "{} >>= {}", "isub": "{} -= {}", "itruediv": "{} /= {}",
    "ixor": "{} ^= {}", "setitem": "{}[{}] = {}",
}  # fmt: skip


@dataclass
class PythonCode:
    """Source text, the globals it needs, and the index of the node behind each line."""

    src: str
    globals: dict[str, Any]
    _lineno_map: dict[int, int | None] | None
    _prologue_start: int = 0


class _PyTreeInfo(NamedTuple):
    """The names of a traced function's arguments and how they and its result nest."""

    orig_args: list[str]
    in_spec: pytree.TreeSpec
    out_spec: pytree.TreeSpec | None


def _format_target(base: str, target: str) -> str:
    """The expression for the attribute of `base` with a dotted path."""
    for part in target.split("."):
        base = f"{base}.{part}" if part.isidentifier() else f'getattr({base}, "{part}")'
    return base


def last_uses(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """For each node, the nodes whose results nothing behind it uses."""
    seen: set[Node] = set()
    found: dict[Node, list[Node]] = {}
    for user in reversed(nodes):  # type: ignore[call-overload]
        for node in user.all_input_nodes:
            if node not in seen:
                seen.add(node)
                found.setdefault(user, []).append(node)
    return found


class _Writer:
    """Turns nodes into lines of source, and notes the globals and wrapped functions they name."""

    def __init__(self, root_module: str, namespace: _Namespace, verbose: bool):
        self.root, self.namespace, self.verbose = root_module, namespace, verbose
        self.globals: dict[str, Any] = {}
        self.wrapped: dict[str, None] = {}
        self.parameters: list[str] = []
        self.returns = ""
        for name, builtin in _custom_builtins.items():
            self.add_global(name, builtin.obj)

    def add_global(self, hint: str, found: Any) -> str:
        """The expression for an object: its path below torch, or a global that is added."""
        if is_from_torch(found) and found is not taeda.device:
            return qualified_name(found)
        name = self.namespace.create_name(hint, found)
        self.globals[name] = found
        return name

    def type_name(self, kind: Any) -> str:
        """The expression for an annotation."""
        if kind == ():
            return "()"
        origin, items = getattr(kind, "__origin__", None), getattr(kind, "__args__", ())
        if origin is None or not isinstance(origin, type):
            return self.add_global(type_repr(kind), kind)
        name = self.add_global(type_repr(origin), origin)
        return f"{name}[{','.join(map(self.type_name, items))}]" if items else name

    def repr(self, argument: Any) -> str:
        """The expression for an argument."""
        if isinstance(argument, Node):
            return repr(argument)
        if isinstance(argument, tuple) and hasattr(argument, "_fields"):
            kind = type(argument)
            return f"{self.add_global(qualified_name(kind), kind)}{tuple(argument)!r}"
        if isinstance(argument, OpOverload) or (
            callable(argument) and is_from_torch(argument) and not isinstance(argument, type)
        ):
            return qualified_name(argument)
        if isinstance(argument, enum.Enum):
            return f"{self.add_global(type(argument).__name__, type(argument))}.{argument.name}"
        if isinstance(argument, tuple):
            items = ", ".join(map(self.repr, argument))
            return f"({items},)" if len(argument) == 1 else f"({items})"
        if isinstance(argument, list):
            return f"[{', '.join(map(self.repr, argument))}]"
        if isinstance(argument, dict):
            pairs = (f"{key!r}: {self.repr(item)}" for key, item in argument.items())
            return f"{{{', '.join(pairs)}}}"
        if isinstance(argument, slice):
            ends = (argument.start, argument.stop, argument.step)
            return f"slice({', '.join(map(self.repr, ends))})"
        if isinstance(argument, taeda.Size):
            return f"torch.Size({list(argument)!r})"
        return repr(argument)

    def arguments(self, args: Iterable, kwargs: dict) -> str:
        """The text between the parentheses of a call."""
        keywords = (f"{key} = {self.repr(item)}" for key, item in kwargs.items())
        return ", ".join([*map(self.repr, args), *keywords])

    def _annotation(self, node: Node) -> str:
        meta: Any = node.meta.get(
            "val", node.meta.get("tensor_meta", node.meta.get("example_value"))
        )
        if self.verbose and hasattr(meta, "shape") and hasattr(meta, "dtype"):
            return f': "{_SHORT.get(str(meta.dtype), meta.dtype)}{list(meta.shape)}"'
        return "" if node.type is None else f" : {self.type_name(node.type)}"

    def _placeholder(self, node: Node) -> str:
        default = f" = {self.repr(node.args[0])}" if node.args else ""
        self.parameters.append(f"{node.target}{self._annotation(node)}{default}")
        name = str(node.target).replace("*", "")
        return "" if name == repr(node) else f"{node!r} = {name}"

    def _call_function(self, node: Node) -> str:
        target: Any = node.target
        left = f"{node!r}{self._annotation(node)} = "
        name = getattr(target, "__name__", "")
        if getattr(target, "__module__", "") == "_operator":
            values = [self.repr(a) for a in node.args]
            if name in magic_methods and not node.kwargs:
                return left + magic_methods[name].format(*values)
            if name in inplace_methods:
                return f"{inplace_methods[name].format(*values)};  {left}{values[0]}"
        called = self.add_global(qualified_name(target), target)
        args = node.args
        if called == "getattr" and len(args) == 2 and str(args[1]).isidentifier():
            return left + _format_target(self.repr(args[0]), args[1])
        if node.meta.get("is_wrapped"):
            self.wrapped.setdefault(called)
        return f"{left}{called}({self.arguments(args, node.kwargs)})"

    def line(self, node: Node, output: Callable[..., str]) -> str:
        """The statement of a node."""
        left, target = f"{node!r}{self._annotation(node)} = ", str(node.target)
        if node.op == "placeholder":
            return self._placeholder(node)
        if node.op == "call_function":
            return self._call_function(node)
        if node.op == "call_method":
            method = _format_target(self.repr(node.args[0]), target)
            return f"{left}{method}({self.arguments(node.args[1:], node.kwargs)})"
        if node.op == "output":
            if node.type is not None:
                self.returns = f" -> {self.type_name(node.type)}"
            return output(node.args[0], repr_fn=self.repr)
        value = left + _format_target(self.root, target)
        if node.op == "call_module":
            value += f"({self.arguments(node.args, node.kwargs)})"
        return value


_SHORT = {
    f"torch.{name}": short
    for name, short in zip(
        "float64 float32 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64".split(),
        "f64 f32 f16 bf16 i64 i32 i16 i8 u8 b8 c64".split(),
    )
}


class CodeGen:
    """Writes the forward of a graph; subclasses change its signature and result."""

    def __init__(self) -> None:
        self._body_transformer: Callable[[list[str]], list[str]] | None = None
        self._func_name = "forward"

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, **_: Any) -> str:
        """The line that begins the function."""
        if not free_vars or free_vars[0] != "self":
            free_vars.insert(0, "self")
        return f"def {self._func_name}({', '.join(free_vars)}){maybe_return_annotation}:"

    def generate_output(
        self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        """The return statement."""
        return f"return {repr_fn(output_args)}"

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders, of the function's arguments."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The function's result, of the output node's value."""
        return outputs

    def additional_globals(self) -> list[tuple[str, Any]]:
        """Names and values that the source needs besides."""
        return []

    def _body(self, nodes: Any, writer: _Writer) -> Iterator[str]:
        """The statements; values are let go where they are used last."""
        finished = last_uses(nodes)
        trace = None
        for index, node in enumerate(nodes):
            if writer.verbose and node.stack_trace and node.stack_trace != trace:
                trace = node.stack_trace
                yield f"\n# {_place(trace)}\n"
            yield f"# COUNTER: {index}\n"
            line = writer.line(node, self.generate_output)
            done = finished.get(node, []) + ([] if node.users else [node])
            if node.op in ("placeholder", "output") or not done:
                yield line + "\n" if line else ""
            else:
                yield f"{line};  {' = '.join(map(repr, done))} = None\n"

    def _gen_python_code(
        self,
        nodes: Any,
        root_module: str,
        namespace: _Namespace,
        *,
        verbose: bool = False,
        **_: Any,
    ) -> PythonCode:
        writer = _Writer(root_module, namespace, verbose)
        body = list(self._body(nodes, writer)) or ["pass\n"]
        wraps = ""
        if writer.wrapped:
            wraps = "\n".join(f'torch.fx._symbolic_trace.wrap("{name}")' for name in writer.wrapped)
        if self._body_transformer:
            body = self._body_transformer(body)
        for name, value in self.additional_globals():
            writer.add_global(name, value)
        prologue = self.gen_fn_def(writer.parameters, writer.returns)
        text, numbers = _number_lines("".join(body), prologue.count("\n") + 1)
        source = f"\n{wraps}\n\n{prologue}\n{text}"
        return PythonCode(source, writer.globals, numbers, wraps.count("\n") + 4)


def _place(trace: str) -> str:
    """File, line, function and code of the innermost frame of a formatted stack."""
    found = re.findall(r'File "(.+)", line (\d+), in (.+)\n\s*(.*)', trace)
    if not found:
        return ""
    file, line, name, code = found[-1]
    return f"File: {file}:{line} in {name}, code: {code}"


def _number_lines(body: str, start: int) -> tuple[str, dict[int, int | None]]:
    """The body without its counters, indented, and the index of the node of each line."""
    lines: list[str] = []
    numbers: dict[int, int | None] = {}
    index = None
    for line in body.split("\n"):
        counter = re.match(r"# COUNTER: (\d+)", line)
        if counter:
            index = int(counter[1])
        else:
            numbers[len(lines) + start] = index
            lines.append(line)
    return "\n".join("    " + line for line in "\n".join(lines).lstrip("\n").split("\n")), numbers


class _PyTreeCodeGen(CodeGen):
    """For functions whose arguments are containers with placeholders in them."""

    def __init__(self, pytree_info: _PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info

    def process_inputs(self, *args: Any) -> Any:
        return tree_flatten_spec(args, self.pytree_info.in_spec)

    def process_outputs(self, outputs: Any) -> Any:
        if self.pytree_info.out_spec is None:
            return outputs
        leaves = outputs if isinstance(outputs, list | tuple) else [outputs]
        return pytree.tree_unflatten(leaves, self.pytree_info.out_spec)

    def gen_fn_def(self, free_vars: list[str], maybe_return_annotation: str, **_: Any) -> str:
        names = list(self.pytree_info.orig_args)
        if names[:1] == ["self"]:
            free_vars.insert(0, "self")
        first = super().gen_fn_def(list(names), maybe_return_annotation)
        if not free_vars:
            return first
        plain = [variable.split(":")[0].split("=")[0].strip() for variable in free_vars]
        return (
            f"{first}\n    {', '.join(plain)}, = "
            f"fx_pytree.tree_flatten_spec([{', '.join(names)}], self._in_spec)"
        )

    def generate_output(
        self, output_args: Any, *, descs: Any = None, repr_fn: Callable[[Any], str] = repr
    ) -> str:
        if not self.pytree_info.out_spec:
            return super().generate_output(output_args, repr_fn=repr_fn)
        return f"return pytree.tree_unflatten({repr_fn(output_args)}, self._out_spec)"
