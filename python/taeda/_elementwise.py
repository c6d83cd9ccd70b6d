"""The operators whose result's elements depend on the arguments' elements at the same index alone.

Tensors of several parts (`taeda.masked`, `taeda.nested`) put these through to their data.
"""

ELEMENTWISE = frozenset(
    "abs absolute acos arccos acosh arccosh angle asin arcsin asinh arcsinh atan arctan atanh "
    "arctanh bitwise_not ceil clamp clip conj_physical cos cosh deg2rad digamma erf erfc erfinv "
    "exp exp2 expm1 fix floor frac lgamma log log10 log1p log2 logit i0 isnan nan_to_num neg "
    "negative positive pow rad2deg reciprocal round rsqrt sigmoid sign sgn signbit sin sinc sinh "
    "sqrt square tan tanh trunc add atan2 arctan2 bitwise_and bitwise_or bitwise_xor "
    "bitwise_left_shift bitwise_right_shift div divide floor_divide fmod logaddexp logaddexp2 mul "
    "multiply nextafter remainder sub subtract true_divide eq ne le ge greater greater_equal gt "
    "less_equal lt less maximum minimum fmax fmin not_equal rsub relu detach clone _to_copy "
    "ones_like zeros_like full_like fill masked_fill threshold_backward sigmoid_backward "
    "tanh_backward copy logical_and _where clamp_min clamp_max clamp_between _cast".split()
)
