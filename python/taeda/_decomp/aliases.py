"""Other names of operators, which PyTorch's table has as operators of their own."""

from __future__ import annotations

from typing import Any

from taeda import _C

from . import registry as registry  # defines what comes first

_ALIASES = """
absolute=abs arccos=acos arccosh=acosh arcsin=asin arcsinh=asinh arctan=atan arctan2=atan2
arctanh=atanh clip=clamp divide=div fix=trunc greater=gt greater_equal=ge less=lt less_equal=le
multiply=mul negative=neg not_equal=ne row_stack=vstack subtract=sub true_divide=div
linalg_matmul=matmul linalg_matrix_exp=matrix_exp matrix_exp=linalg_matrix_exp
orgqr=linalg_householder_product trapz=trapezoid
special_digamma=digamma special_psi=digamma special_erf=erf special_erfc=erfc special_erfinv=erfinv
special_exp2=exp2 special_expit=sigmoid special_expm1=expm1 special_gammainc=igamma
special_gammaincc=igammac special_gammaln=lgamma special_i0=i0 special_log1p=log1p
special_logit=logit special_logsumexp=logsumexp special_multigammaln=mvlgamma
special_polygamma=polygamma special_round=round special_sinc=sinc special_xlogy=xlogy
special_softmax=softmax special_log_softmax=log_softmax
"""
#: Overloads of an alias that are called otherwise than those of its operator.
_OVERLOADS = {
    "special_xlogy": {"Scalar_Self": "self_scalar", "Scalar_Other": "other_scalar", "Tensor": ""},
    "trapz": {"x": "x", "dx": "dx"},
    "special_round": {"decimals": ""},
    "special_softmax": {"int": ""},
    "special_log_softmax": {"int": ""},
    "true_divide": {"Tensor": "Tensor", "Scalar": "Scalar", "out": "out"},
}


def _define(alias: str, op: Any) -> None:
    names = _OVERLOADS.get(alias)
    if names is not None and op._overload not in names:
        return
    overload = op._overload if names is None else names[op._overload]
    full = f"aten::{alias}"
    if _C._operator(full, overload) is None:
        arguments = str(op._schema).partition("(")[2]
        name = f"{full}.{overload}" if overload else full
        _C._define_composite(f"{name}({arguments}", lambda *args, **kwargs: op(*args, **kwargs))


for _pair in _ALIASES.split():
    _alias, _target = _pair.split("=")
    for _inplace in ("", "_"):
        for _op in _C._operators(f"aten::{_target}{_inplace}"):
            _define(_alias + _inplace, _op)
