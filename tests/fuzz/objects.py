"""Programs around objects: indexing, modules, optimizers, loaders."""

from __future__ import annotations

import inspect

from tests.fuzz.calls import BACKWARD, Calls
from tests.fuzz.names import resolve

# Parameters of modules that take one size for all dimensions, and a few that must agree.
SIZES = ("1", "2", "2", "3", "3", "4", "(1, 2)", "(2, 2)", "0", "-1", "2**31", "2**62", "[]")
LAYER_SHAPES = ["(2, 3)", "(2, 4)", "(2, 3, 4)", "(1, 4, 4)", "(2, 2, 4, 4)", "(1, 4, 3, 3, 3)"]
DATASETS = (
    "list(range(7))",
    "torch.utils.data.TensorDataset(torch.arange(7), torch.ones(7, 2))",
    "[{'a': i, 'b': [str(i), (float(i), b'x')]} for i in range(5)]",
    "[torch.ones(i % 3) for i in range(6)]",
    "[np.ones(2), np.zeros(2)]",
    "[None, 1]",
    "type('D', (torch.utils.data.IterableDataset,), {'__iter__': lambda s: iter(range(5))})()",
    "type('D', (torch.utils.data.Dataset,), {'__getitem__': lambda s, i: 1 / (i - 2), "
    "'__len__': lambda s: 4})()",
    "[]",
)


class Objects(Calls):
    # --- indexing ---

    def index(self) -> str:
        """One index of any kind."""
        rng, values = self.rng, self.values
        kind = rng.randrange(12)
        if kind < 3:
            return values.integer()
        if kind < 5:
            parts = [rng.choice(["", values.integer()]) for _ in range(rng.choice([2, 2, 3]))]
            return ":".join(parts)
        if kind == 5:
            return rng.choice(["None", "...", "True", "False", "np.int64(1)", "np.array([0, 1])"])
        if kind == 6:
            return f"torch.tensor({[rng.randrange(-2, 3) for _ in range(rng.randrange(4))]})"
        if kind == 7:
            return values.tensor(dtype=rng.choice(["int64", "bool", "uint8", "int32"]))
        if kind == 8:
            return rng.choice(["[0, 1]", "[True, False]", "[[0], [1]]", "[]", "(0, 1)", "range(2)"])
        if kind == 9:
            return f"torch.ones({rng.choice(['2', '3', '2, 3', '()'])}, dtype=torch.bool)"
        return values.anything() if kind == 10 else "slice(None)"

    def indexing(self) -> tuple[str, str]:
        count = self.rng.choice([1, 1, 2, 2, 3])
        index = ", ".join(self.index() for _ in range(count)) + ("," if count == 1 else "")
        if self.values.chance(0.3):
            index = index.rstrip(",")
        x = self.values.tensor()
        if self.values.chance(0.5):
            return "x[i]", self.after(f"({x})[{index}]")
        if self.values.chance(0.05):
            return "del x[i]", f"x = {x}\ndel x[{index}]"
        value = self.values.anything() if self.values.chance(0.7) else self.values.number()
        lines = [f"x = {x}", f"x[{index}] = {value}", f"r = x\n{BACKWARD}"]
        return "x[i] =", "\n".join(lines)

    # --- nn ---

    def size_like(self, p: inspect.Parameter) -> str:
        """An argument of a layer's constructor."""
        if isinstance(p.default, (bool, str)) or p.name in ("device", "dtype", "p", "eps"):
            return self.like(p)
        if p.name in ("encoder_layer", "decoder_layer", "module", "modules", "base"):
            name = "torch.nn.TransformerEncoderLayer(4, 2, 8)"
            return self.rng.choice([name, "torch.nn.Linear(4, 4)", self.values.anything()])
        if "layers" in p.name:
            return self.rng.choice(["0", "1", "2", "-1", "None"])
        if isinstance(p.default, float) or p.annotation in (float, "float"):
            return self.values.real()
        return self.rng.choice(SIZES) if self.values.chance(0.95) else self.values.anything()

    def constructed(self, path: str) -> str:
        try:
            signature = inspect.signature(resolve(self.torch, path))
        except (ValueError, TypeError):
            return f"torch.{path}({self.joined(self.blind())})"
        made = []
        for p in signature.parameters.values():
            if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
                made += [self.rng.choice("01223") for _ in range(self.rng.choice([0, 1, 2, 3]))]
            elif p.default is p.empty:
                made.append(self.size_like(p))
            elif self.values.chance(0.25):
                made.append(f"{p.name}={self.size_like(p)}")
        made.sort(key=lambda text: "=" in text.split("(")[0])
        return f"torch.{path}({', '.join(made)})"

    def layer_input(self) -> str:
        if self.values.chance(0.3):
            return self.values.tensor()
        shape = self.rng.choice(LAYER_SHAPES)
        kind = self.rng.choice(["torch.rand({})", "torch.rand({}).requires_grad_()"] * 3 + ["ids"])
        return f"torch.randint(0, 3, {shape})" if kind == "ids" else kind.format(shape)

    def module(self) -> tuple[str, str]:
        path = self.rng.choice(self.names.modules)
        forward = inspect.signature(resolve(self.torch, path).forward).parameters.values()
        count = sum(p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD for p in forward) - 1
        if self.values.chance(0.15):
            count = self.rng.choice([0, 1, 2, 3])
        inputs = ", ".join(self.layer_input() for _ in range(count))
        more = (
            "m.load_state_dict(m.state_dict())",
            "m.load_state_dict({k: v[:1] if v.dim() else v for k, v in m.state_dict().items()})",
            "repr(m)",
            f"m.to(torch.{self.rng.choice(['float64', 'bfloat16', 'int64'])})",
            "m.to('meta')",
            "m.eval()",
            "m.zero_grad()",
            "copy.deepcopy(m)",
            "pickle.loads(pickle.dumps(m))",
            "m.half()(torch.rand(2, 3, 4, 4))",
            "list(m.named_parameters()), list(m.modules())",
        )
        lines = [f"m = {self.constructed(path)}"]
        if self.values.chance(0.2):
            lines.append(self.rng.choice(more))
        lines += [f"r = m({inputs})", BACKWARD]
        if self.values.chance(0.4):
            lines.append(self.rng.choice(more))
        return path, "\n".join(lines)

    # --- optim ---

    def optimizer(self) -> tuple[str, str]:
        path = self.rng.choice(self.names.optimizers)
        made = []
        for p in inspect.signature(resolve(self.torch, path)).parameters.values():
            endless = p.name.startswith("max_")  # as many steps as are asked for
            if p.default is not p.empty and not endless and self.values.chance(0.2):
                value = self.values.real() if isinstance(p.default, (int, float)) else self.like(p)
                made.append(f"{p.name}={self.like(p) if isinstance(p.default, bool) else value}")
        parameters = [
            f"torch.nn.Parameter({self.values.filled((2, 3), 'float32')})",
            f"torch.nn.Parameter({self.values.tensor(dtype='float32')}.detach())",
        ][: self.rng.choice([1, 2])]
        lines = [f"ps = [{', '.join(parameters)}]"]
        lines.append(f"o = torch.{path}({', '.join(['ps', *made])})")
        lines.append("for p in ps: p.grad = torch.ones_like(p)")
        spoil = (
            "s = o.state_dict(); s['param_groups'][0]['lr'] = " + self.values.anything(),
            "s = o.state_dict(); s['state'] = {0: {'step': " + self.values.anything() + "}}",
            "s = o.state_dict(); s['state'][0] = {k: torch.ones(1) for k in s['state'].get(0, {})}",
            "s = o.state_dict(); s['param_groups'][0].popitem()",
            "s = o.state_dict()",
            "s = " + self.values.anything(),
        )
        more = (
            f"{self.rng.choice(spoil)}\no.load_state_dict(s)\no.step()",
            f"ps[0].grad = {self.values.anything()}\no.step()",
            f"o.add_param_group({self.values.anything()})",
            f"ps[0].data = {self.values.tensor()}\no.step()",
            "o.step(lambda: (ps[0] * ps[0]).sum())",
            "o.zero_grad()\no.step()",
            "repr(o)\ncopy.deepcopy(o).step()",
        )
        lines.append("o.step(lambda: (ps[0] * 1).sum())" if "LBFGS" in path else "o.step()")
        lines.append(self.rng.choice(more))
        return path, "\n".join(lines)

    # --- data ---

    def loader(self) -> tuple[str, str]:
        options = {
            "batch_size": self.values.integer,
            "shuffle": lambda: self.rng.choice(["True", "False"]),
            "drop_last": lambda: self.rng.choice(["True", "False"]),
            "collate_fn": lambda: self.values.plain("function"),
            "sampler": lambda: self.rng.choice(["range(3)", "[9, 0]", "torch.randperm(3)", "[[]]"]),
            "batch_sampler": lambda: self.rng.choice(["[[0, 1], [1]]", "[[]]", "[0]", "iter([])"]),
            "generator": lambda: "torch.Generator()",
            "timeout": self.values.real,
            "prefetch_factor": self.values.integer,
            "pin_memory": lambda: "True",
            "worker_init_fn": lambda: self.values.plain("function"),
        }
        chosen = {k: make() for k, make in options.items() if self.values.chance(0.2)}
        if self.values.chance(0.02):
            chosen["num_workers"] = self.rng.choice(["1", "2"])
        text = ", ".join(f"{k}={v}" for k, v in chosen.items())
        dataset = self.rng.choice(DATASETS)
        lines = [
            f"d = torch.utils.data.DataLoader({dataset}, {text})",
            "r = (len(list(d)), repr(d))",
        ]
        return "DataLoader", "\n".join(lines)
