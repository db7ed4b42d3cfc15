"""Compiles JAX's modules for a card that is not there.

With the CUDA plugin of JAX (`pip install --no-deps jax-cuda13-plugin jax-cuda13-pjrt`, no driver and no CUDA toolkit)
XLA compiles for the card itself, from a description of it: buffers are planned as on the card. What XLA would have
tried out on the card (its autotuner) it decides by rule. Without the plugin the module is compiled for the CPU, which
plans other temporary memory; the trace says so.
"""

import os
import re
import shutil
import tempfile

from . import jax_assignment, jax_autotune, jax_cards
from .jax_autotune import type_bytes


class Program:
    """A compiled module: what an execution asks for. `requests`: (size, output number or None, pinned) in order."""

    def __init__(self, name, allocations, outputs, aliases, donors, shapes):
        self.name, self.shapes = name, shapes
        self.parameters = sum(a.size for a in allocations if a.kind == "parameter")
        self.constants = sum(a.size for a in allocations if a.kind == "constant")
        self.temp = sum(a.size for a in allocations if a.kind == "temp")
        self.aliases = {o: p for o, p in aliases.items() if o < len(shapes)}
        self.donors = donors | set(self.aliases.values())
        output_of = {}
        for number, allocation in outputs.items():
            if number not in self.aliases:
                output_of.setdefault(allocation, number)
        # two outputs that are one value: the second has the first one's buffer
        self.shared = {n: output_of[a] for n, a in outputs.items() if n not in self.aliases and output_of[a] != n}
        self.requests = [
            (a.size, output_of.get(a.number), "temp" if a.kind == "temp" else "output", a.pinned)
            for a in allocations
            if a.kind in ("output", "temp") and a.size
        ]
        placed = {number for _, number, _, _ in self.requests} | set(self.aliases) | set(self.shared)
        self.unplaced = [n for n in range(len(shapes)) if n not in placed]
        self.bytes = self.parameters + sum(r[0] for r in self.requests)
        self.flops = self.accessed = 0.0
        self.unplanned, self.trials = {}, []
        self.runs = 0


class Compiler:
    """Compiles for `card`. `platform` is "cuda", or "cpu" if the plugin cannot be used, and `why` says why not."""

    def __init__(self, card_name, card_bytes, capability):
        self.card_name, self.why, self.topologies = card_name, "", {}
        self.config = jax_cards.target_config(card_name, card_bytes, capability)
        self.workspace = jax_autotune.workspace_bytes(capability)
        self.platform = "cuda"
        try:
            self.devices(1)
        except Exception as error:  # each release of JAX has its own kinds for "there is no such plugin"
            self.platform, self.why = "cpu", str(error).split("\n")[0]

    def advice(self):
        """What to say if the functions are compiled for the CPU."""
        import jax

        version = jax.__version__
        return (
            "JAX's CUDA plugin is not installed, so functions are compiled for the CPU, which plans other temporary "
            "memory; better: python3 -m pip install --no-deps "
            f"jax-cuda13-plugin=={version} jax-cuda13-pjrt=={version}, which needs no driver ({self.why})"
        )

    def devices(self, count):
        """Devices to compile for, of a machine with `count` cards."""
        from jax.experimental import topologies

        if count not in self.topologies:
            self.topologies[count] = topologies.get_topology_desc(
                platform="cuda", target_config=self.config, topology=f"1x1x{count}"
            ).devices
        return self.topologies[count]

    def compile(self, original, backend, module, options, host_callbacks, executable_devices):
        """Compiles a module of MLIR. Returns XLA's executable and the Program. `original` is the function of JAX."""
        from jax._src.lib import xla_client

        folder = tempfile.mkdtemp(prefix="allocrig-xla-")
        try:
            overrides = [o for o in options.env_option_overrides if not o[0].startswith("xla_dump_")]
            overrides += [("xla_dump_to", folder), ("xla_dump_hlo_as_text", True)]
            if self.platform == "cpu":
                overrides.append(("xla_cpu_experimental_ynn_fusion_type", ""))  # a library that hides its memory
            options.env_option_overrides = overrides
            if self.platform == "cuda":
                import numpy

                count = len(executable_devices)
                devices = self.devices(count)[:count]
                backend, executable_devices = devices[0].client, xla_client.DeviceList(tuple(devices))
                host_callbacks = []  # called by their numbers
                options.device_assignment = xla_client.DeviceAssignment.create(numpy.arange(count).reshape(1, count))
            executable = original(backend, module, executable_devices, options, host_callbacks)
            *read, hlo, live_range, temporaries = jax_assignment.read_folder(folder)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        name = os.path.basename(str(module.operation.attributes["sym_name"]).strip('"'))
        trials = []
        if self.platform == "cuda":
            kernels = jax_autotune.kernels(hlo)
            trials = jax_autotune.trials(kernels, self.workspace)
            self.add_workspaces(read[0], kernels, live_range, temporaries)
        program = Program(name.removeprefix("jit_"), *read)
        program.trials = trials
        self.costs(program, executable)
        program.unplanned = unplanned_calls(hlo)
        return executable, program

    def add_workspaces(self, allocations, kernels, live_range, temporaries):
        """Makes room for the workspaces of cuBLAS in the temporary memory."""
        temp = [a for a in allocations if a.kind == "temp" and not a.pinned]
        size = max((a.size for a in temp), default=0)
        wanted = jax_autotune.temp_with_workspaces(size, kernels, self.workspace, live_range, temporaries)
        if wanted > size and temp:
            max(temp, key=lambda a: a.size).size = wanted
        elif wanted > size:
            number = 1 + max((a.number for a in allocations), default=0)
            allocations.append(jax_assignment.Allocation(number, wanted, "temp", None, False))

    def costs(self, program, executable):
        import jax
        from jax._src.lib import _jax

        try:
            cost = _jax.hlo_module_cost_analysis(jax.devices()[0].client, executable.hlo_modules()[0])
            program.flops, program.accessed = cost.get("flops", 0.0), cost.get("bytes accessed", 0.0)
        except Exception:  # a loop whose length is not known, for example
            program.accessed = float(program.bytes)
        if program.flops < 0:
            program.flops = 0.0


# calls whose memory XLA has planned completely
_PLANNED = ("__cublas$", "__gpu$", "__triton", "__cudnn$fmha", "cu_threefry", "cu_lu_pivots", "Sharding")


def unplanned_calls(hlo):
    """{function: [calls, bytes of their results]} of the functions whose own memory is not in XLA's plan: what a
    library's function takes when it runs, and the workspace of a convolution, which is chosen on the card."""
    counts = {}
    for line in hlo.splitlines():
        target = re.search(r'custom_call_target="([^"]+)"', line)
        if target:
            name, call = target[1], line.split(" custom-call(")[0]
        else:
            name, call = "fft", line.split(" fft(")[0]
            if call is line or call == line:
                continue
        if not name.startswith(_PLANNED):
            entry = counts.setdefault(name, [0, 0])
            entry[0] += 1
            entry[1] += type_bytes(call.split(" = ", 1)[-1])
    return counts
