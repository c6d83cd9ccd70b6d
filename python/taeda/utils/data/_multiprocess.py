"""A pass over a DataLoader whose batches are loaded by worker processes."""

from __future__ import annotations

import os
import select
import time
from typing import Any

from taeda import _C

from ._utils.at_exit import end_at_exit
from ._utils.contexts import worker_context
from ._utils.start import check_descriptors, end_workers, start_workers
from ._utils.task import Task
from ._workers import WorkersIter

__all__ = ["_MultiProcessingDataLoaderIter"]

_SECONDS_TO_LOOK_FOR_ROOM = 0.01  # for tasks, while a worker drops those of other epochs
_SECONDS_TO_LOOK_FOR_DEATH = 0.001  # of a worker that has closed its pipe


class _MultiProcessingDataLoaderIter(WorkersIter):
    """Sleeps on a descriptor that workers write to, and on theirs, which say when they end."""

    def _start(self, loader: Any, task: Task) -> None:
        context = worker_context(loader)
        check_descriptors(self._num_workers)
        self._event = _C._WorkerChannel.event()  # type: ignore[attr-defined]
        try:
            self._processes = start_workers(context, task, self._event, self._most_tasks + 8)
        except BaseException:
            os.close(self._event)
            raise
        self._shutdown = False
        self._workers = [worker.process for worker in self._processes]
        self._poller = select.poll()
        self._poller.register(self._event, select.POLLIN)
        for worker in self._processes:
            self._poller.register(worker.sentinel, select.POLLIN)
        end_at_exit(self)

    def _sleep(self, waiting: list[int], seconds: float) -> None:
        """Until one of the workers has a message, or any has ended."""
        if not all([worker.flush() for worker in self._processes]):
            seconds = _SECONDS_TO_LOOK_FOR_ROOM
        workers = [self._processes[i] for i in waiting]
        pipes = [worker.pipe for worker in workers if worker.pipe >= 0]
        channels = [worker.channel for worker in workers if worker.pipe < 0]
        for channel in channels:
            channel.arm(True)
        for pipe in pipes:
            self._poller.register(pipe, select.POLLIN)
        try:
            if any(channel.has_message() for channel in channels):
                return
            events = self._poller.poll(max(1, seconds * 1000))
        finally:
            for channel in channels:
                channel.arm(False)
            for pipe in pipes:
                self._poller.unregister(pipe)
        if len(events) == 1 and events[0][0] == self._event:
            os.read(self._event, 8)
        elif events and not any(fd in pipes and event & select.POLLIN for fd, event in events):
            self._look_for_deaths(waiting)
            if pipes:
                time.sleep(_SECONDS_TO_LOOK_FOR_DEATH)

    def _look_for_deaths(self, waiting: list[int]) -> None:
        if any(self._processes[i].channel.has_message() for i in waiting):
            return  # what it sent before it died comes first
        for worker in self._processes:
            if not worker.is_alive():
                text = worker.describe_death(self._indices.get)
                self._shutdown_workers()
                raise RuntimeError(text) from None

    def _end_workers(self) -> None:
        try:
            end_workers(self._processes)
        finally:
            os.close(self._event)
