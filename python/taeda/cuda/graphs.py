"""CUDA graphs: work that is captured once and replayed often, at the cost of one launch.

While a stream is captured, what is queued on it is noted instead of run, and memory comes from the
graph's own pool. Nothing can be waited for meanwhile: `item()`, copies to pageable memory,
`synchronize()`, asking events raise. A replay runs the same work on the same addresses: results are
read from the tensors that the capture made, arguments are copied into those that it read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import taeda
from taeda import _C, _missing
from taeda.cuda import _devices
from taeda.cuda import streams as _streams


def is_current_stream_capturing() -> bool:
    """Whether the current stream is being captured; False before the first use of a device."""
    return _devices.is_initialized() and _C._cuda_is_capturing(_C._cuda_current_device())


def graph_pool_handle() -> tuple[int, int]:
    """The name of a new pool of memory, for `CUDAGraph.capture_begin` and `graph`."""
    _C._cuda_initialize("torch.cuda.graph_pool_handle needs one")
    return _C._cuda_new_pool(True)


class CUDAGraph(_C._CUDAGraph):
    """Work of a stream that can be replayed.

    Args:
        keep_graph: keeps the graph beside what is launched, for `raw_cuda_graph` and `debug_dump`;
            `instantiate` is then called by the program, or by the first `replay`.
    """

    __module__ = "torch.cuda"

    def __new__(cls, keep_graph: bool = False) -> CUDAGraph:
        """A graph of nothing yet."""
        return super().__new__(cls, keep_graph)

    def capture_begin(
        self,
        pool: Any = None,
        capture_error_mode: str = "global",
        check_input_liveness: bool = False,
    ) -> None:
        """Captures the current stream from now on, which must not be the default one.

        Args:
            pool: memory that is shared with other graphs: `graph_pool_handle()`, `other.pool()`.
            capture_error_mode: whose calls that may not be captured end the capture: "global" (of
                all threads), "thread_local" or "relaxed" (nobody's).
            check_input_liveness: not supported.
        """
        if check_input_liveness:
            raise NotImplementedError("torch.cuda.CUDAGraph.capture_begin: check_input_liveness")
        super().capture_begin(pool=pool, capture_error_mode=capture_error_mode)

    def capture_end(self) -> None:
        """Ends the capture, on the stream that it began on."""
        super().capture_end()

    def register_generator_state(self, generator: Any) -> None:
        """Says, before the capture, that the work draws from `generator`, too.

        The default one is known. Each replay draws new numbers from the generators, as many as the
        captured work did.
        """
        super().register_generator_state(generator)

    def instantiate(self) -> None:
        """Makes what is launched of the graph; needed once, where `keep_graph` is set."""
        super().instantiate()

    def replay(self) -> None:
        """Queues the captured work on the current stream."""
        super().replay()

    def reset(self) -> None:
        """Drops the graph, and its hold on the pool."""
        super().reset()

    def pool(self) -> tuple[int, int]:
        """The name of the pool that the graph's memory comes from."""
        return super().pool()

    def enable_debug_mode(self) -> None:
        """Keeps the graph for `debug_dump`; to be called before the capture."""
        super().enable_debug_mode()

    def debug_dump(self, debug_path: str) -> None:
        """Writes the graph to a file in Graphviz's language."""
        super().debug_dump(str(debug_path))

    def raw_cuda_graph(self) -> int:
        """The driver's handle of the graph, where `keep_graph` is set."""
        return super().raw_cuda_graph()

    def raw_cuda_graph_exec(self) -> int:
        """The driver's handle of what is launched."""
        return super().raw_cuda_graph_exec()


class graph:
    """``with torch.cuda.graph(g):`` captures the block into the `CUDAGraph` `g`.

    Args:
        cuda_graph: an empty graph.
        pool: see `CUDAGraph.capture_begin`.
        stream: what is captured; None for a stream that all such blocks share.
        capture_error_mode: see `CUDAGraph.capture_begin`.
        enable_annotations: not supported.
        check_input_liveness: not supported.
    """

    __module__ = "torch.cuda"
    default_capture_stream: _streams.Stream | None = None

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Any = None,
        capture_error_mode: str = "global",
        enable_annotations: bool = False,
        check_input_liveness: bool = False,
    ) -> None:
        if enable_annotations:
            raise NotImplementedError("torch.cuda.graph: enable_annotations")
        if stream is None:
            if graph.default_capture_stream is None:
                graph.default_capture_stream = _streams.Stream()
            stream = graph.default_capture_stream
        self.cuda_graph, self.pool, self.capture_stream = cuda_graph, pool, stream
        self.capture_error_mode = capture_error_mode
        self.check_input_liveness = check_input_liveness
        self.stream_ctx = _streams.StreamContext(stream)

    def __enter__(self) -> None:
        _devices.synchronize()
        taeda.cuda.empty_cache()
        _C._cuda_empty_pinned_cache()
        self.stream_ctx.__enter__()
        try:
            self.cuda_graph.capture_begin(
                self.pool, self.capture_error_mode, self.check_input_liveness
            )
        except BaseException:
            self.stream_ctx.__exit__(None, None, None)
            raise

    def __exit__(self, kind: Any, value: Any, traceback: Any) -> None:
        try:
            self.cuda_graph.capture_end()
        except RuntimeError:
            if value is None:  # else what the block raised says why
                raise
        finally:
            self.stream_ctx.__exit__(kind, value, traceback)


def make_graphed_callables(
    callables: Any,
    sample_args: Any,
    num_warmup_iters: int = 3,
    allow_unused_input: bool = False,
    pool: Any = None,
) -> Any:
    """Functions or modules whose forward and backward passes are graphs.

    Args:
        callables: a function or module, or a tuple of them in the order in which they will run.
        sample_args: for each a tuple of tensors like those of later calls: shapes, dtypes and
            `requires_grad` are those of the graph.
        num_warmup_iters: calls before the capture.
        allow_unused_input: whether gradients of what is not used are None, and no error.
        pool: see `CUDAGraph.capture_begin`.

    Returns what was given, graphed: modules are changed, and returned.
    """
    from taeda.cuda._graphed import make_graphed

    if taeda.is_autocast_enabled() and taeda.is_autocast_cache_enabled():
        raise RuntimeError(
            "make_graphed_callables does not support the autocast caching. Please set "
            "`cache_enabled=False`."
        )
    single = not isinstance(callables, tuple)
    functions: tuple[Callable[..., Any], ...] = (callables,) if single else callables
    samples = (sample_args,) if single else sample_args
    handle = graph_pool_handle() if pool is None else pool
    made = make_graphed(functions, samples, num_warmup_iters, allow_unused_input, handle)
    return made[0] if single else made


__getattr__, __dir__ = _missing.attributes(__name__)
