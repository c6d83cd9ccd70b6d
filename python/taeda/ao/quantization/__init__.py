"""Quantization-aware training: observers, fake quantization, configurations, preparing models.

There are no quantized tensors: models train and run with fake quantization, in floating point.

>>> from torch.ao.quantization import get_default_qat_qconfig, prepare_qat
>>> model = torch.nn.Sequential(torch.nn.Linear(2, 2))
>>> model.qconfig = get_default_qat_qconfig("x86")
>>> prepare_qat(model)[0].weight_fake_quant is not None
True
"""

from __future__ import annotations

from . import fake_quantize as fake_quantize
from . import observer as observer
from . import qconfig as qconfig
from . import quantization_mappings as quantization_mappings
from . import stubs as stubs
from .fake_quantize import *  # noqa: F403
from .fuse_modules import fuse_modules as fuse_modules
from .fuse_modules import fuse_modules_qat as fuse_modules_qat
from .observer import *  # noqa: F403
from .qconfig import *  # noqa: F403
from .quantization_mappings import *  # noqa: F403
from .quantize import add_quant_dequant as add_quant_dequant
from .quantize import convert as convert
from .quantize import get_default_custom_config_dict as get_default_custom_config_dict
from .quantize import prepare as prepare
from .quantize import prepare_qat as prepare_qat
from .quantize import propagate_qconfig_ as propagate_qconfig_
from .quantize import quantize as quantize
from .quantize import quantize_qat as quantize_qat
from .quantize import swap_module as swap_module
from .stubs import DeQuantStub as DeQuantStub
from .stubs import QuantStub as QuantStub
from .stubs import QuantWrapper as QuantWrapper

ObserverOrFakeQuantize = observer.ObserverBase | fake_quantize.FakeQuantizeBase

from taeda import _missing  # noqa: E402

__getattr__, __dir__ = _missing.attributes(__name__)
