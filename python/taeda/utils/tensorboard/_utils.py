"""Arrays as pictures."""

from ._images import convert_to_HWC, figure_to_image, make_grid

__all__ = ["convert_to_HWC", "figure_to_image", "make_grid"]
