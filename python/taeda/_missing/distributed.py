"""torch.distributed and what is in it, all of which needs processes that exchange tensors."""

from __future__ import annotations

_ONE_PROCESS = "taeda runs in one process; ask torch.distributed.is_available() before"

MODULES = {
    "torch.distributed.rpc": (
        _ONE_PROCESS,
        "init_rpc shutdown rpc_sync rpc_async remote get_worker_info RRef WorkerInfo "
        "TensorPipeRpcBackendOptions RpcBackendOptions BackendType{TENSORPIPE}",
    ),
    "torch.distributed.rpc.functions": (_ONE_PROCESS, "@async_execution"),
}
