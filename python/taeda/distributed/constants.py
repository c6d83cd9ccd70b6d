"""Times that process groups wait unless told otherwise."""

from __future__ import annotations

from datetime import timedelta

default_pg_timeout = timedelta(minutes=30)
default_pg_nccl_timeout: timedelta | None = None
