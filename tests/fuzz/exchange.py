"""Programs that exchange tensors with others, read damaged files, and ask for gradients."""

from __future__ import annotations

from tests.fuzz.calls import BACKWARD
from tests.fuzz.objects import Objects

SAVED = (
    "torch.arange(6.).reshape(2, 3)",
    "torch.nn.Linear(2, 2).state_dict()",
    "{'a': torch.ones(2, 2).t(), 'b': [1, 2.5, 'x', None, True, b'x', 2**70, 1j]}",
    "[torch.ones(3, dtype=torch.bfloat16)[1:], torch.nn.Parameter(torch.ones(2))]",
    "torch.optim.Adam([torch.nn.Parameter(torch.ones(3))]).state_dict()",
    "(torch.tensor([True, False]), torch.Size([2]), torch.float32, torch.device('cpu'))",
    "torch.zeros(0, 3, dtype=torch.complex64).conj()",
)


class Programs(Objects):
    # --- exchange with others ---

    def exchange(self) -> tuple[str, str]:
        x = self.values.tensor()
        stream, copy = self.values.anything(), self.values.anything()
        array = self.rng.choice(
            [
                "np.arange(12).reshape(3, 4)[::-1, ::2]",
                "np.arange(3, dtype='>i4')",
                "np.array(['a', 'b'])",
                "np.array([1.5, 2], dtype='float16')",
                "np.zeros((0, 3), dtype=bool)",
                "np.broadcast_to(np.ones(2), (3, 2))",
                "np.zeros(2, dtype=[('a', 'i4'), ('b', 'f8')])",
                "np.frombuffer(bytes(16))",
                "np.array(1 + 2j)",
            ]
        )
        forms = (
            ("from_dlpack", f"r = torch.from_dlpack({x})"),
            ("from_dlpack", f"r = torch.from_dlpack({array})"),
            (
                "from_dlpack",
                f"c = ({x}).__dlpack__()\nr = torch.from_dlpack(c)\ntorch.from_dlpack(c)",
            ),
            ("__dlpack__", f"r = ({x}).__dlpack__(stream={stream})"),
            ("__dlpack__", f"r = ({x}).__dlpack__(max_version={stream}, dl_device={copy})"),
            ("__dlpack__", f"r = ({x}).__dlpack__(copy={copy})"),
            ("np.from_dlpack", f"r = np.from_dlpack({x})\nr.sum()"),
            ("to_dlpack", f"r = torch.utils.dlpack.to_dlpack({x})\ndel r"),
            ("from_numpy", f"a = {array}\nr = torch.from_numpy(a)\nr.add_(1)\na.sum()"),
            ("numpy", f"r = ({x}).numpy(force={copy})"),
            ("as_tensor", f"r = torch.as_tensor({array}, {self.joined(self.blind())})"),
            (
                "frombuffer",
                f"r = torch.frombuffer(bytearray(40), dtype=torch.{self.dtype()}, "
                f"count={self.values.integer()}, offset={self.values.integer()})",
            ),
            ("storage", f"s = ({x}).untyped_storage()\nr = s[{self.index()}]"),
            ("storage", f"s = ({x}).untyped_storage()\ns[{self.index()}] = {stream}"),
            (
                "storage",
                f"x = {x}\nx.untyped_storage().resize_({self.values.integer()})\nr = x.sum()",
            ),
            (
                "storage",
                f"x = {x}\nx.set_(({self.values.tensor()}).untyped_storage(), "
                f"{self.values.integer()}, {self.values.integers()}, {self.values.integers()})\n"
                "r = x + 1",
            ),
            ("storage", f"x = {x}\nx.resize_({self.values.integers()})\nr = x.sum()"),
        )
        return self.rng.choice(forms)

    def dtype(self) -> str:
        return self.rng.choice(["float32", "int64", "uint8", "bool", "complex64"])

    # --- files ---

    def archive(self) -> tuple[str, str]:
        """Honest bytes, then damaged ones."""
        rng = self.rng
        tensors = rng.choice(["{'a': torch.ones(2, 3), 'b': torch.arange(4)}", "{}", "{'x': 1}"])
        safetensors = self.torch.__name__ == "taeda" and self.values.chance(0.4)
        if safetensors:
            lines = ["from taeda import safetensors"]
            lines.append(f"d = bytearray(safetensors.save({tensors}))")
            load = "r = safetensors.load(bytes(d))"
        else:
            lines = ["b = io.BytesIO()", f"torch.save({rng.choice(SAVED)}, b)"]
            lines.append("d = bytearray(b.getvalue())")
            options = rng.choice(["", "", ", map_location='meta'", ", map_location='cpu'"])
            load = f"r = torch.load(io.BytesIO(bytes(d)){options})"
        for _ in range(rng.choice([0, 1, 1, 2, 4])):
            at, n = f"int(len(d) * {rng.random():.6f})", rng.choice([1, 2, 4, 8, 30])
            damage = (
                f"d[{at}] = {rng.randrange(256)}",
                f"d[{at}] ^= {1 << rng.randrange(8)}",
                f"del d[{at}:]",
                f"i = {at}; del d[i:i + {n}]",
                f"i = {at}; d[i:i + {n}] = {rng.choice([b'', bytes(n), bytes([255]) * n])!r}",
                f"i = {at}; j = int(len(d) * {rng.random():.6f}); d[i:i + {n}] = d[j:j + {n}]",
            )
            lines.append(rng.choice(damage))
        return "safetensors" if safetensors else "torch.load", "\n".join([*lines, load])

    # --- graphs ---

    def graph(self) -> tuple[str, str]:
        """Calls of autograd and functorch with functions that may not fit."""
        x = "torch.rand(3).requires_grad_()"
        f = self.values.plain("function")
        change = self.rng.choice(["add_(1)", "resize_(9)", "zero_()", "data.add_(1)"])
        dims = self.rng.choice(["0", "1", "-1", "None", "(0, None)", "2**40"])
        forms: tuple[tuple[str, str], ...] = (
            ("autograd.grad", f"x = {x}\nr = torch.autograd.grad(({f})(x), x, {self.options()})"),
            (
                "backward",
                f"x = {x}\ny = ({f})(x)\ny.backward({self.values.anything()}, {self.options()})",
            ),
            ("func.grad", f"r = torch.func.grad({f})({x})"),
            ("func.vmap", f"r = torch.func.vmap({f}, {dims})({self.values.tensor()})"),
            ("func.jacrev", f"r = torch.func.jacrev({f})({x})"),
            ("func.jvp", f"r = torch.func.jvp({f}, (torch.ones(3),), ({self.values.tensor()},))"),
            ("functional.jacobian", f"r = torch.autograd.functional.jacobian({f}, {x})"),
            ("functional.hessian", f"r = torch.autograd.functional.hessian({f}, {x})"),
            (
                "checkpoint",
                f"r = torch.utils.checkpoint.checkpoint({f}, {x}, use_reentrant="
                f"{self.rng.choice(['True', 'False'])})\n{BACKWARD}",
            ),
            ("hook", f"x = {x}\nx.register_hook({f})\n(x * 2).sum().backward()"),
            (
                "saved",
                f"x = {x}\ny = torch.sigmoid(x)\ny.{change}\ny.sum().backward()",
            ),
            ("grad_fn", f"x = {x}\ng = (x * 2).grad_fn\nr = g({self.values.anything()})"),
        )
        return self.rng.choice(forms)

    def options(self) -> str:
        names = ("retain_graph", "create_graph")
        return ", ".join(f"{n}=True" for n in names if self.values.chance(0.3))
