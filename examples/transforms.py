"""What torch.func is good for, one topic a function.

Every topic takes the framework as its first argument, `taeda` or `torch`, and returns what it
computed by transforms beside what loops compute, so that both can be compared.

    python examples/transforms.py
"""

import time


def images(torch, count, classes=10):
    torch.manual_seed(0)
    return torch.randn(count, 1, 28, 28), torch.randint(0, classes, (count,))


def convolutional_network(torch):
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, 2), nn.GroupNorm(2, 8), nn.ReLU(), nn.Conv2d(8, 16, 3, 2), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(), nn.Linear(16 * 9, 10),
    )  # fmt: skip


def perceptron(torch, inputs=28 * 28, hidden=64, outputs=10):
    nn = torch.nn
    return nn.Sequential(
        nn.Flatten(0), nn.Linear(inputs, hidden), nn.Tanh(), nn.Linear(hidden, outputs)
    )


def detached(model):
    return {name: p.detach() for name, p in model.named_parameters()}


def per_sample_gradients(torch, count=32):
    """The gradient of each sample's own loss: what private training clips."""
    func, model = torch.func, convolutional_network(torch)
    params, (x, labels) = detached(model), images(torch, count)

    def loss(params, x, label):
        scores = func.functional_call(model, params, (x.unsqueeze(0),))
        return torch.nn.functional.cross_entropy(scores, label.unsqueeze(0))

    together = func.vmap(func.grad(loss), (None, 0, 0))(params, x, labels)
    one_by_one = [func.grad(loss)(params, x[i], labels[i]) for i in range(min(count, 4))]
    norms = torch.stack([g.flatten(1).norm(dim=1) for g in together.values()]).norm(dim=0)
    looped = [torch.stack([g.norm() for g in grads.values()]).norm() for grads in one_by_one]
    return norms, torch.stack(looped)


def ensemble(torch, models=10, count=32):
    """Many models of one kind as one: their parameters are stacked, and vmap runs over them."""
    func = torch.func
    members = [perceptron(torch) for _ in range(models)]
    params, buffers = func.stack_module_state(members)
    x = images(torch, count)[0]

    def scores(params, buffers, x):
        one = lambda sample: func.functional_call(members[0], (params, buffers), (sample,))  # noqa: E731
        return func.vmap(one)(x)

    together = func.vmap(scores, (0, 0, None))(params, buffers, x)
    return together, torch.stack([torch.stack([m(sample) for sample in x]) for m in members])


def jacobians_and_hessians(torch, inputs=32, outputs=16):
    """All first and second derivatives of a layer, by rows, by columns and for a batch."""
    func = torch.func
    torch.manual_seed(1)
    weight, bias = torch.randn(outputs, inputs) / inputs**0.5, torch.randn(outputs)
    x = torch.randn(inputs)
    layer = lambda x: (weight @ x + bias).tanh()  # noqa: E731
    exact = (1 - layer(x) ** 2).unsqueeze(1) * weight
    by_rows, by_columns = func.jacrev(layer)(x), func.jacfwd(layer)(x)
    hessian = func.hessian(lambda x: (layer(x) ** 2).sum())(x)
    batch = func.vmap(func.jacrev(layer))(torch.stack([x, 2 * x, -x]))
    return (by_rows, by_columns, batch[0], hessian), (exact, exact, exact, hessian.t())


def tangent_kernel(torch, left=12, right=8):
    """The neural tangent kernel: products of the Jacobians by the parameters at pairs of inputs."""
    func, model = torch.func, perceptron(torch, inputs=16, hidden=32, outputs=3)
    params = detached(model)
    torch.manual_seed(2)
    x1, x2 = torch.randn(left, 16), torch.randn(right, 16)
    output = lambda params, x: func.functional_call(model, params, (x,))  # noqa: E731

    def by_jacobians(x1, x2):
        j1 = func.vmap(func.jacrev(output), (None, 0))(params, x1)
        j2 = func.vmap(func.jacrev(output), (None, 0))(params, x2)
        return sum(torch.einsum("naf,mbf->nmab", j1[k].flatten(2), j2[k].flatten(2)) for k in j1)

    def by_products(x1, x2):
        def entry(a, b):
            value, back = func.vjp(lambda p: output(p, a), params)
            push = lambda v: func.jvp(lambda p: output(p, b), (params,), back(v))[1]  # noqa: E731
            return func.vmap(push)(torch.eye(len(value))).t()

        return func.vmap(lambda a: func.vmap(lambda b: entry(a, b))(x2))(x1)

    return by_jacobians(x1, x2), by_products(x1, x2).transpose(2, 3)


def forward_mode(torch, inputs=64):
    """Directional derivatives: along one direction, along many, and Hessians times vectors."""
    func = torch.func
    torch.manual_seed(3)
    x, v = torch.randn(inputs), torch.randn(inputs)
    f = lambda x: (x.sin() * x.roll(1) ** 2).sum()  # noqa: E731
    slope = func.jvp(f, (x,), (v,))[1]
    many = func.vmap(lambda v: func.jvp(f, (x,), (v,))[1])(torch.stack([v, 2 * v]))
    product = func.jvp(func.grad(f), (x,), (v,))[1]
    _, push = func.linearize(func.grad(f), x)
    dual = torch.autograd.forward_ad
    with dual.dual_level():
        same = dual.unpack_dual(f(dual.make_dual(x, v))).tangent
    return (slope, many, product), (same, torch.stack([same, 2 * same]), push(v))


TOPICS = [per_sample_gradients, ensemble, jacobians_and_hessians, tangent_kernel, forward_mode]


if __name__ == "__main__":
    import taeda

    for topic in TOPICS:
        start = time.perf_counter()
        topic(taeda)
        print(f"{topic.__name__}: {1000 * (time.perf_counter() - start):.1f} ms")
