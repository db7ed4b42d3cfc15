"""torchrun, torch.distributed.run, accelerate launch and mp.spawn run the rank that is traced in this process, alone."""

import functools
import os
import runpy
import sys

from . import after_import
from .distributed import rank_and_world, set_environment


def install(current):
    """Puts the functions in place of PyTorch's. `current` returns the running session or None."""
    import torch.multiprocessing as mp

    def spawn(fn, args=(), nprocs=1, join=True, daemon=False, start_method="spawn"):
        session = current()
        if session is None:
            return started(fn, args, nprocs, join, daemon, start_method)
        os.environ.setdefault("ALLOCRIG_TRACE_WORLD", str(nprocs))
        rank = rank_and_world()[0] or 0
        fn(rank % nprocs, *args)

    started = mp.start_processes
    for module in (mp, sys.modules["torch.multiprocessing.spawn"]):
        module.spawn = module.start_processes = spawn
    after_import("torch.distributed.launcher.api", lambda: _launcher_api(current))
    after_import("accelerate.commands.launch", lambda: _accelerate(current))


def _launcher_api(current):
    """elastic_launch of torchrun: the script runs here, as the rank that is traced."""
    from torch.distributed.launcher import api

    launch = api.launch_agent

    @functools.wraps(launch)
    def launch_agent(config, entrypoint, args):
        session = current()
        if session is None:
            return launch(config, entrypoint, args)
        world = config.max_nodes * config.nproc_per_node
        os.environ.setdefault("ALLOCRIG_TRACE_WORLD", str(world))
        os.environ["LOCAL_WORLD_SIZE"] = str(config.nproc_per_node)
        os.environ["LOCAL_RANK"] = str((rank_and_world()[0] or 0) % config.nproc_per_node)
        set_environment(session)
        if callable(entrypoint):
            return {rank_and_world()[0] or 0: entrypoint(*args)}
        run_here(session, entrypoint, [str(a) for a in args])
        return {}

    api.launch_agent = launch_agent


def _accelerate(current):
    """accelerate launch of one process: the script runs here."""
    from accelerate.commands import launch

    plain = launch.simple_launcher

    @functools.wraps(plain)
    def simple_launcher(args):
        session = current()
        if session is None:
            return plain(args)
        command, environment = launch.prepare_simple_launcher_cmd_env(args)
        os.environ.update({name: str(value) for name, value in environment.items()})
        run_here(session, command[0], [str(part) for part in command[1:]])

    launch.simple_launcher = simple_launcher


def run_here(session, entrypoint, args):
    """Runs `python [-u] SCRIPT ARGUMENTS`, `python -m MODULE ARGUMENTS` or a script in this process."""
    if os.path.basename(entrypoint).startswith("python"):
        while args and args[0] == "-u":
            args = args[1:]
    else:
        args = [entrypoint, *args]
    if args[0] == "-m":
        sys.argv = args[1:]
        runpy.run_module(args[1], run_name="__main__", alter_sys=True)
        return
    session.trace.header["name"] = os.path.splitext(os.path.basename(args[0]))[0]
    sys.argv = args
    sys.path.insert(0, os.path.dirname(os.path.abspath(args[0])))
    runpy.run_path(args[0], run_name="__main__")
