"""Special functions. Most come from the operator table; others are known by a second name here."""

import taeda
from taeda import _C

# name here -> name in the top-level namespace
_SHARED = {
    "digamma": "digamma",
    "erf": "erf",
    "erfc": "erfc",
    "erfinv": "erfinv",
    "exp2": "exp2",
    "expit": "sigmoid",
    "expm1": "expm1",
    "gammaln": "lgamma",
    "log1p": "log1p",
    "log_softmax": "log_softmax",
    "logit": "logit",
    "logsumexp": "logsumexp",
    "psi": "digamma",
    "round": "round",
    "sinc": "sinc",
    "softmax": "softmax",
    "xlogy": "xlogy",
}
_OWN = _C._functions.get("special", {})

globals().update({name: getattr(taeda, shared) for name, shared in _SHARED.items()})
globals().update(_OWN)
__all__ = sorted({*_SHARED, *_OWN})
