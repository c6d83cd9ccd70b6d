"""torch._logging.set_logs: levels of Python's loggers."""

import logging

import pytest

import taeda


def level(name):
    return logging.getLogger(name).level


def test_levels_are_set_and_taken_back():
    taeda._logging.set_logs(all=logging.ERROR, dynamo=logging.DEBUG, recompiles=True)
    assert level("torch") == logging.ERROR and level("torch._dynamo") == logging.DEBUG
    taeda._logging.set_logs(modules={"torch.fx": logging.INFO})
    assert level("torch") == level("torch._dynamo") == logging.NOTSET
    assert level("torch.fx") == logging.INFO
    taeda._logging.set_logs()
    assert level("torch.fx") == logging.NOTSET


def test_a_level_is_a_number():
    with pytest.raises(ValueError, match="level"):
        taeda._logging.set_logs(dynamo="loud")
