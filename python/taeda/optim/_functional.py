"""The function forms of the algorithms, by the names that programs import them by."""

from __future__ import annotations

from taeda import Tensor

from .adadelta import adadelta as adadelta
from .adagrad import adagrad as adagrad
from .adam import adam as adam
from .adamax import adamax as adamax
from .adamw import adamw as adamw
from .asgd import asgd as asgd
from .nadam import nadam as nadam
from .radam import radam as radam
from .rmsprop import rmsprop as rmsprop
from .rprop import rprop as rprop
from .sgd import sgd as sgd
from .sparse_adam import update


def sparse_adam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[int],
    *,
    eps: float,
    beta1: float,
    beta2: float,
    lr: float,
    maximize: bool,
) -> None:
    """One step of `SparseAdam` by lists, in place. `state_steps` are numbers that count this step.

    >>> from torch.optim._functional import sparse_adam
    >>> p, grad = torch.zeros(3), torch.sparse_coo_tensor([[1]], [2.0], (3,))
    >>> mean, square = torch.zeros(3), torch.zeros(3)
    >>> sparse_adam([p], [grad], [mean], [square], [1], eps=1e-8, beta1=0.9, beta2=0.99, lr=0.1,
    ...     maximize=False)
    >>> p
    tensor([ 0.0000, -0.1000,  0.0000])
    """
    rows = zip(params, grads, exp_avgs, exp_avg_sqs, state_steps)
    for p, grad, mean, square, step in rows:
        grad = -grad if maximize else grad
        update(p, grad, mean, square, step, betas=(beta1, beta2), lr=lr, eps=eps)
