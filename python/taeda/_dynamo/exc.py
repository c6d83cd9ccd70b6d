"""What compiling raises in PyTorch: classes for ``except``."""

from __future__ import annotations


class TorchDynamoException(RuntimeError):
    """What compiling raises."""


def _kinds(names: str, base: type) -> None:
    for name in names.split():
        globals()[name] = type(name, (base,), {"__doc__": base.__doc__, "__module__": __name__})


_kinds(
    "InternalTorchDynamoError ResumePrologueTracingError RestartAnalysis "
    "SpeculationRestartAnalysis UnspecializeRestartAnalysis CompileCollectiveRestartAnalysis "
    "TensorifyScalarRestartAnalysis SkipFrame TorchRuntimeError InvalidBackend ResetRequired "
    "ShortenTraceback Unsupported RecompileError ArgsMismatchError AttributeMutationError "
    "UserError UncapturedHigherOrderOpError ObservedException RecompileLimitExceeded "
    "FailOnRecompileLimitHit BackendCompilerFailed PackageError InfiniteGeneratorError",
    TorchDynamoException,
)


class IncorrectUsage(Exception):
    """A call that makes no sense."""
