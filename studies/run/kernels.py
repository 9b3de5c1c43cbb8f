"""This module starts the kernels of a run as forks of one process that has their libraries already.

Each kernel is a process of its own. To import pandas, SciPy and seaborn takes it three seconds, and a run starts
twenty. On Linux they are forked from a server of multiprocessing, so that a kernel has all of them from the start;
elsewhere forking is not safe after some of them were imported, and each kernel is a new process.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from typing import Any

from jupyter_client.connect import KernelConnectionInfo
from jupyter_client.provisioning.local_provisioner import LocalProvisioner

_PRELOADED = ["ipykernel.kernelapp", "ipykernel.ipkernel", "scipy.stats", "lnsim.plots", "lnsim.report.page"]
_INLINE = "module://matplotlib_inline.backend_inline"


class Forked(LocalProvisioner):
    """Starts a kernel by forking."""

    async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
        """Fork a process that becomes the kernel of a command line."""
        where = kwargs.get("cwd") or os.getcwd()
        forked: Any = _Process(cmd[cmd.index("-f") :], dict(kwargs["env"]), str(where))
        self.process, self.cwd = forked, where
        self.pid = forked.pid  # it leads a group only when it has begun, so signals go to it alone
        return self.connection_info


PROVISIONER: type[Any] | None = Forked if sys.platform == "linux" else None
"""What starts the kernels of a run; None for jupyter_client's own."""


class _Process:
    """A forked kernel, as jupyter_client wants a process: with the methods of ``subprocess.Popen``."""

    stdin = stdout = stderr = None

    def __init__(self, words: list[str], environment: dict[str, str], folder: str) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(_PRELOADED)
        self._process: BaseProcess = context.Process(target=_run_kernel, args=(words, environment, folder))
        self._process.start()
        self.pid = int(self._process.pid or 0)
        self.terminate, self.kill = self._process.terminate, self._process.kill

    def poll(self) -> int | None:
        return self._process.exitcode

    def wait(self) -> int | None:
        self._process.join()
        return self._process.exitcode

    def send_signal(self, signum: int) -> None:
        if self._process.is_alive():
            os.kill(self.pid, signum)


def _run_kernel(words: list[str], environment: dict[str, str], folder: str) -> None:
    """What a forked process does: it becomes a kernel, with what that would have found in its environment."""
    import matplotlib as mpl
    from ipykernel.kernelapp import IPKernelApp

    os.setsid()  # an interrupt in the terminal is for who started the kernel
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    mpl.rcParams["backend"] = environment.get("MPLBACKEND", _INLINE)
    IPKernelApp.launch_instance(argv=words)
