"""This module starts the kernels of notebooks: each a process of its own, forked from one that has the libraries.

To import pandas, SciPy and seaborn takes a process three seconds, and a run starts twenty kernels. On Linux they are
forked from a server of multiprocessing, so that a kernel has all of them from the start; elsewhere forking is not safe
after some of them were imported, and each kernel is a new process.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from lnsim.report.saving import PAGE_VARIABLE

_PRELOADED = ["ipykernel.kernelapp", "ipykernel.ipkernel", "scipy.stats", "lnsim.plots", "lnsim.report.page"]
_INLINE = "module://matplotlib_inline.backend_inline"


def kernel_manager(page_folder: Path) -> type[Any]:
    """Starts the kernel of this interpreter, whatever kernels are installed under whatever names, and wherever."""
    from ipykernel.kernelspec import RESOURCES, get_kernel_dict
    from jupyter_client.connect import KernelConnectionInfo
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager
    from jupyter_client.provisioning.local_provisioner import LocalProvisioner

    class Forked(LocalProvisioner):
        async def launch_kernel(self, cmd: list[str], **kwargs: Any) -> KernelConnectionInfo:
            where = kwargs.get("cwd") or os.getcwd()
            forked: Any = _Process(cmd[cmd.index("-f") :], dict(kwargs["env"]), str(where))
            self.process, self.cwd = forked, where
            self.pid = forked.pid  # it leads a group only when it has begun, so signals go to it alone
            return self.connection_info

    class OwnKernelManager(AsyncKernelManager):
        @property
        def kernel_spec(self) -> KernelSpec:
            return KernelSpec(resource_dir=RESOURCES, **{**get_kernel_dict(), "env": _environment(page_folder)})

        async def _async_pre_start_kernel(self, **given: Any) -> Any:
            if sys.platform == "linux" and self.provisioner is None:
                self.provisioner = Forked(kernel_id="", kernel_spec=self.kernel_spec, parent=self)
            return await super()._async_pre_start_kernel(**given)

        pre_start_kernel = _async_pre_start_kernel

    return OwnKernelManager


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


def _environment(page_folder: Path) -> dict[str, str]:
    """What kernels get besides: the folder of their page; and where Python may not write compiled modules, a cache.

    Every kernel imports the same libraries, and to compile them anew takes each of them five seconds.
    """
    from platformdirs import user_cache_dir

    told = {PAGE_VARIABLE: str(page_folder.absolute()).replace("$", "$$")}  # Jupyter takes one $ for a variable's
    if not os.environ.get("PYTHONDONTWRITEBYTECODE"):
        return told
    prefix = os.environ.get("PYTHONPYCACHEPREFIX") or user_cache_dir("lnsim")
    return told | {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": prefix}
