"""Transformer layers. https://arxiv.org/abs/1706.03762"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import taeda
from taeda import Tensor
from taeda.nn import functional as F
from taeda.nn.init import xavier_uniform_

from .activation import GELU, MultiheadAttention, ReLU
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerEncoder",
    "TransformerDecoder",
    "TransformerEncoderLayer",
    "TransformerDecoderLayer",
]


def _generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
    """-inf above the diagonal, 0 elsewhere: position i sees positions up to i."""
    return taeda.triu(taeda.full((sz, sz), float("-inf"), dtype=dtype, device=device), diagonal=1)


def _get_seq_len(src: Tensor, batch_first: bool) -> int:
    if src.dim() == 2:
        return src.size(0)
    return src.size(1 if batch_first else 0)


def _detect_is_causal_mask(mask: Tensor | None, is_causal: bool | None, size: int | None) -> bool:
    """`is_causal` if given, else whether the mask is the causal one."""
    if is_causal is not None or mask is None:
        return bool(is_causal)
    size = mask.size(-2) if size is None else size
    causal = _generate_square_subsequent_mask(size, device=mask.device, dtype=mask.dtype)
    return mask.size() == causal.size() and bool((mask == causal).all())


def _additive(mask: Tensor | None, dtype: Any) -> Tensor | None:
    """A boolean mask as numbers to add."""
    if mask is None or mask.dtype != taeda.bool:
        return mask
    return taeda.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(
        mask, float("-inf")
    )


def _get_clones(module: Module, n: int) -> ModuleList:
    return ModuleList([copy.deepcopy(module) for _ in range(n)])


def _get_activation_fn(activation: str) -> Callable[[Tensor], Tensor]:
    if activation == "relu":
        return F.relu
    if activation == "gelu":
        return F.gelu
    raise RuntimeError(f"activation should be relu/gelu, not {activation}")


class Transformer(Module):
    """An encoder and a decoder, as in "Attention is all you need". arXiv 1706.03762

    Embeddings, positions and the layer that predicts words are the caller's.

    Args:
        num_encoder_layers, num_decoder_layers: layers of each.
        custom_encoder, custom_decoder: modules in their place, or None.
        d_model: E, the size of a token.
        nhead: the number of heads; must divide ``d_model``.
        dim_feedforward: the width of the feed-forward network.
        dropout: the probability of a zero in training, after each part.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: added to the variance in norms.
        batch_first: whether the batch is the first dimension instead of the second.
        norm_first: norms before each part instead of after, which trains more steadily.
        bias: whether linear layers and norms have biases.
        device, dtype: of the parameters.

    Shape:
        src: ``(S, N, E)``, tgt: ``(T, N, E)``; ``(N, ., E)`` with ``batch_first``.
        src_mask, tgt_mask, memory_mask: ``(S, S)``, ``(T, T)``, ``(T, S)``: true where it must not
            be looked at, or numbers that are added to the scores;
            ``generate_square_subsequent_mask(T)`` hides what comes later.
        output: the shape of tgt.

    >>> model = nn.Transformer(8, 2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
    >>> mask = nn.Transformer.generate_square_subsequent_mask(4)
    >>> model(torch.rand(5, 3, 8), torch.rand(4, 3, 8), tgt_mask=mask).shape
    torch.Size([4, 3, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        layer_arguments = (
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps,
            batch_first, norm_first, bias,
        )  # fmt: skip
        if custom_encoder is not None:
            self.encoder = custom_encoder
        else:
            layer: Module = TransformerEncoderLayer(*layer_arguments, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
            self.encoder = TransformerEncoder(layer, num_encoder_layers, norm)
        if custom_decoder is not None:
            self.decoder = custom_decoder
        else:
            layer = TransformerDecoderLayer(*layer_arguments, **options)
            norm = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
            self.decoder = TransformerDecoder(layer, num_decoder_layers, norm)
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def forward(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batched = src.dim() == 3
        if batched:
            batch_dim = 0 if self.batch_first else 1
            if src.size(batch_dim) != tgt.size(batch_dim):
                raise RuntimeError("the batch number of src and tgt must be equal")
        if src.size(-1) != self.d_model or tgt.size(-1) != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(
            src,
            mask=src_mask,
            src_key_padding_mask=src_key_padding_mask,
            is_causal=src_is_causal,
        )
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Tensor:
        """The mask that hides later positions: -inf above the diagonal, 0 elsewhere."""
        return _generate_square_subsequent_mask(sz, dtype=dtype, device=device)

    def _reset_parameters(self) -> None:
        for p in self.parameters():
            if p.dim() > 1:
                xavier_uniform_(p)


class TransformerEncoder(Module):
    """A stack of copies of an encoder layer.

    Args:
        encoder_layer: a `TransformerEncoderLayer`, copied ``num_layers`` times with its weights, so
            that all begin alike.
        num_layers: how many.
        norm: a module applied at the end, or None.
        enable_nested_tensor: whether inference with ``src_key_padding_mask`` gives zeros where
            there is padding (before ``norm``), as PyTorch's, which packs sequences there: in eval
            mode, where nothing is recorded, of batches first, without ``mask``, with the padding
            behind sequences, for layers with ``norm_first=False`` and an even number of heads.
        mask_check: taken for PyTorch's sake; the padding is always looked at.

    Shape:
        src, mask, src_key_padding_mask: as for the layer (its ``src_mask`` is ``mask``).
        output: the shape of src.

    >>> layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> encoder = nn.TransformerEncoder(layer, num_layers=2)
    >>> encoder(torch.rand(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ["norm"]

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _get_clones(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.use_nested_tensor = enable_nested_tensor and _can_be_packed(encoder_layer)
        self.mask_check = mask_check

    def forward(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool | None = None,
    ) -> Tensor:
        src_key_padding_mask = _additive(src_key_padding_mask, src.dtype)
        mask = _additive(mask, src.dtype)
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        is_causal = _detect_is_causal_mask(mask, is_causal, _get_seq_len(src, batch_first))
        output = src
        for layer in self.layers:
            output = layer(
                output,
                src_mask=mask,
                is_causal=is_causal,
                src_key_padding_mask=src_key_padding_mask,
            )
        if src_key_padding_mask is not None and mask is None and self._packs(src):
            padding = src_key_padding_mask != 0
            if not (padding[:, :-1] & ~padding[:, 1:]).any():
                output = output.masked_fill(padding.unsqueeze(2), 0)
        return output if self.norm is None else self.norm(output)

    def _packs(self, src: Tensor) -> bool:
        """Whether PyTorch would take padded sequences without their padding, its fast path."""
        layer = self.layers[0]
        recorded = src.requires_grad or any(p.requires_grad for p in layer.parameters())
        return (
            getattr(self, "use_nested_tensor", False)
            and not layer.training
            and src.dim() == 3
            and not src.is_nested
            and not (taeda.is_grad_enabled() and recorded)
            and not taeda.is_autocast_enabled()
            and taeda.backends.mha.get_fastpath_enabled()
        )


def _can_be_packed(layer: Module) -> bool:
    """Whether a layer is one that PyTorch's fast path knows."""
    if not isinstance(layer, TransformerEncoderLayer):
        return False
    attention, activation = layer.self_attn, layer.activation
    return (
        not layer.norm_first
        and attention.batch_first
        and attention._qkv_same_embed_dim
        and attention.in_proj_bias is not None
        and (activation in (F.relu, F.gelu) or isinstance(activation, (ReLU, GELU)))
        and layer.norm1.eps == layer.norm2.eps
        and attention.num_heads % 2 == 0
    )


class TransformerDecoder(Module):
    """A stack of copies of a decoder layer.

    Args:
        decoder_layer: a `TransformerDecoderLayer`, copied ``num_layers`` times.
        num_layers: how many.
        norm: a module applied at the end, or None.

    Shape:
        tgt, memory and their masks: as for the layer.
        output: the shape of tgt.

    >>> layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> decoder = nn.TransformerDecoder(layer, num_layers=2, norm=nn.LayerNorm(8))
    >>> decoder(torch.rand(3, 4, 8), torch.rand(3, 5, 8)).shape
    torch.Size([3, 4, 8])
    """

    __constants__ = ["norm"]

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _get_clones(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Tensor:
        batch_first = getattr(getattr(self.layers[0], "self_attn", None), "batch_first", False)
        tgt_is_causal = _detect_is_causal_mask(
            tgt_mask, tgt_is_causal, _get_seq_len(tgt, batch_first)
        )
        output = tgt
        for layer in self.layers:
            output = layer(
                output,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return output if self.norm is None else self.norm(output)


class _TransformerLayer(Module):
    """The activation's bookkeeping that encoder and decoder layers share."""

    activation: Any
    linear1: Module
    linear2: Module
    dropout: Module

    def _set_activation(self, activation: str | Callable[[Tensor], Tensor]) -> None:
        if isinstance(activation, str):
            activation = _get_activation_fn(activation)
        self.activation = activation

    def __setstate__(self, state: dict) -> None:
        super().__setstate__(state)
        if not hasattr(self, "activation"):
            self.activation = F.relu

    def _ff_block(self, x: Tensor, last_dropout: Module) -> Tensor:
        x = self.linear2(self.dropout(self.activation(self.linear1(x))))
        return last_dropout(x)


class TransformerEncoderLayer(_TransformerLayer):
    """Self-attention and a feed-forward network, each with a residual and a norm.

        x = norm1(x + attention(x, x, x))
        x = norm2(x + linear2(dropout(activation(linear1(x)))))

    With ``norm_first`` each part is ``x + part(norm(x))``.

    Args:
        d_model: E, the size of a token.
        nhead: the number of heads; must divide ``d_model``.
        dim_feedforward: the width of the feed-forward network.
        dropout: the probability of a zero in training, after each part.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: added to the variance in norms.
        batch_first: whether the batch is the first dimension instead of the second.
        norm_first: norms before each part instead of after, which trains more steadily.
        bias: whether linear layers and norms have biases.
        device, dtype: of the parameters.

    Shape:
        src: ``(S, N, E)``; ``(N, S, E)`` with ``batch_first``; ``(S, E)`` without a batch.
        src_mask: ``(S, S)``, src_key_padding_mask: ``(N, S)``: true where it must not be looked at,
            or numbers that are added to the scores.
        output: the shape of src.

    >>> layer = nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(torch.rand(3, 5, 8)).shape
    torch.Size([3, 5, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, **options
        )
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self._set_activation(activation)

    def forward(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        src_key_padding_mask = _additive(src_key_padding_mask, src.dtype)
        src_mask = _additive(src_mask, src.dtype)
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal)
            return x + self._ff_block(self.norm2(x), self.dropout2)
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal))
        return self.norm2(x + self._ff_block(x, self.dropout2))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=padding,
            need_weights=False,
            is_causal=is_causal,
        )[0]
        return self.dropout1(x)


class TransformerDecoderLayer(_TransformerLayer):
    """Self-attention, attention to an encoder's output, and a feed-forward network.

        x = norm1(x + attention(x, x, x))
        x = norm2(x + attention(x, memory, memory))
        x = norm3(x + linear2(dropout(activation(linear1(x)))))

    Args:
        d_model: E, the size of a token.
        nhead: the number of heads; must divide ``d_model``.
        dim_feedforward: the width of the feed-forward network.
        dropout: the probability of a zero in training, after each part.
        activation: "relu", "gelu" or a function.
        layer_norm_eps: added to the variance in norms.
        batch_first: whether the batch is the first dimension instead of the second.
        norm_first: norms before each part instead of after, which trains more steadily.
        bias: whether linear layers and norms have biases.
        device, dtype: of the parameters.

    Shape:
        tgt: ``(T, N, E)``, memory: ``(S, N, E)``; the batch first with ``batch_first``.
        tgt_mask: ``(T, T)``, memory_mask: ``(T, S)``, and masks of padding ``(N, T)``, ``(N, S)``.
        output: the shape of tgt.

    >>> layer = nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> layer(torch.rand(3, 4, 8), torch.rand(3, 5, 8)).shape
    torch.Size([3, 4, 8])
    """

    __constants__ = ["norm_first"]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Tensor], Tensor] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        options = {"device": device, "dtype": dtype}
        attention = {"dropout": dropout, "batch_first": batch_first, "bias": bias, **options}
        self.self_attn = MultiheadAttention(d_model, nhead, **attention)
        self.multihead_attn = MultiheadAttention(d_model, nhead, **attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias, **options)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias, **options)
        self.norm_first = norm_first
        self.norm1 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm2 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.norm3 = LayerNorm(d_model, eps=layer_norm_eps, bias=bias, **options)
        self.dropout1 = Dropout(dropout)
        self.dropout2 = Dropout(dropout)
        self.dropout3 = Dropout(dropout)
        self._set_activation(activation)

    def forward(
        self,
        tgt: Tensor,
        memory: Tensor,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        own = (tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        other = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = tgt
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), *own)
            x = x + self._mha_block(self.norm2(x), *other)
            return x + self._ff_block(self.norm3(x), self.dropout3)
        x = self.norm1(x + self._sa_block(x, *own))
        x = self.norm2(x + self._mha_block(x, *other))
        return self.norm3(x + self._ff_block(x, self.dropout3))

    def _sa_block(
        self, x: Tensor, attn_mask: Tensor | None, padding: Tensor | None, is_causal: bool
    ) -> Tensor:
        x = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout1(x)

    def _mha_block(
        self,
        x: Tensor,
        memory: Tensor,
        attn_mask: Tensor | None,
        padding: Tensor | None,
        is_causal: bool,
    ) -> Tensor:
        x = self.multihead_attn(
            x,
            memory,
            memory,
            attn_mask=attn_mask,
            key_padding_mask=padding,
            is_causal=is_causal,
            need_weights=False,
        )[0]
        return self.dropout2(x)
