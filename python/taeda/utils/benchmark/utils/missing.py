"""Names of torch.utils.benchmark that only raise: counts of instructions, random inputs."""

from taeda import _missing

_COUNTS = "taeda does not run programs under Valgrind; use Timer.blocked_autorange for times"
_INPUTS = "taeda makes no inputs at random sizes; use torch.rand and the like"
_MODULE = "torch.utils.benchmark."

CallgrindStats = _missing.class_(_MODULE + "CallgrindStats", _COUNTS)
CopyIfCallgrind = _missing.class_(_MODULE + "CopyIfCallgrind", _COUNTS)
FunctionCounts = _missing.class_(_MODULE + "FunctionCounts", _COUNTS)
FuzzedParameter = _missing.class_(_MODULE + "FuzzedParameter", _INPUTS)
FuzzedSparseTensor = _missing.class_(_MODULE + "FuzzedSparseTensor", _INPUTS)
FuzzedTensor = _missing.class_(_MODULE + "FuzzedTensor", _INPUTS)
Fuzzer = _missing.class_(_MODULE + "Fuzzer", _INPUTS)
ParameterAlias = _missing.class_(_MODULE + "ParameterAlias", _INPUTS)

__all__ = [name for name in globals() if name[0].isupper()]
