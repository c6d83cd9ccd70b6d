"""Settings of PyTorch's compilers: kept, and without effect, as programs run eagerly."""

from __future__ import annotations

debug_assert = False
debug_partitioner = False
functionalize_rng_ops = False
fake_tensor_allow_meta = True
activation_memory_budget = 1.0
activation_memory_budget_solver = "dp"
recompute_views = False
donated_buffer = False
enable_autograd_cache = False
bundled_autograd_cache = False
strict_autograd_cache = False
treat_parameters_as_free_to_save = True
view_replay_for_aliased_outputs = True
