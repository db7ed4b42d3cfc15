"""Objects that ranks exchange. What this rank sends is as on a card; what only another rank has is not known."""

import functools
import os

import torch
from torch._subclasses.fake_tensor import FakeTensor


def install(current):
    """broadcast_object_list and scatter_object_list receive what this process has: there is no other one."""
    dist, c10d = torch.distributed, torch.distributed.distributed_c10d
    broadcast, scatter = c10d.broadcast_object_list, c10d.scatter_object_list

    def source_rank(src, group, group_src):
        if group_src is not None:
            return dist.get_global_rank(group, group_src) if group is not None else group_src
        return src or 0

    @functools.wraps(broadcast)
    def broadcast_object_list(object_list, src=None, group=None, device=None, group_src=None):
        session = current()
        if session is None or dist.get_rank() == source_rank(src, group, group_src):
            return broadcast(object_list, src, group, device, group_src)
        own = list(object_list)
        if any(o is None for o in own):
            session.refuse("an object that another rank broadcasts is not known: trace the rank that sends it")
        rank = dist.get_rank()
        broadcast(object_list, rank, group, device)
        object_list[:] = own

    @functools.wraps(scatter)
    def scatter_object_list(output, inputs=None, src=None, group=None, group_src=None):
        session = current()
        if session is None or (dist.get_rank() == source_rank(src, group, group_src) and inputs):
            if session is None:
                return scatter(output, inputs, src, group, group_src)
            output[0] = inputs[dist.get_rank(group)]
            return
        session.refuse("an object that another rank scatters is not known: trace the rank that sends it")

    send, receive, to_tensor = c10d.send_object_list, c10d.recv_object_list, c10d._object_to_tensor

    def _object_to_tensor(obj, device, group, *rest, **options):
        session = current()
        if session is not None:
            obj = torch.utils._pytree.tree_map_only(FakeTensor, lambda t: _to_pickle(session, t), obj)
        return to_tensor(obj, device, group, *rest, **options)

    @functools.wraps(send)
    def send_object_list(object_list, dst=None, *args, **kwargs):
        session = current()
        if session is not None:
            leaves = torch.utils._pytree.tree_leaves(object_list)
            shapes = [shape_text(t) for t in leaves if isinstance(t, torch.Tensor)]
            if shapes:
                session.trace.note("traced", "sends_shapes", ";".join(shapes))
        return send(object_list, dst, *args, **kwargs)

    @functools.wraps(receive)
    def recv_object_list(object_list, src=None, *args, **kwargs):
        session = current()
        if session is None:
            return receive(object_list, src, *args, **kwargs)
        text = os.environ.get("ALLOCRIG_TRACE_RECEIVES")
        if not text:
            sentence = (
                "rank %d receives an object of another rank, which is not known: set ALLOCRIG_TRACE_RECEIVES to the"
                " shapes of its tensors, for example 4x1024:float32;4x1:int64 (the note sends_shapes in the trace of"
                " the rank that sends it), or give PipelineStage its input_args and output_args"
            )
            raise RuntimeError(sentence % dist.get_rank())
        object_list[0] = tuple(shape_read(part) for part in text.split(";"))
        return src or 0

    c10d._object_to_tensor = _object_to_tensor
    for module in (dist, c10d):
        module.send_object_list = send_object_list
        module.recv_object_list = recv_object_list
        module.broadcast_object_list = broadcast_object_list
        module.scatter_object_list = scatter_object_list


def _to_pickle(session, tensor):
    """A real tensor in place of one without data, which cannot be pickled."""
    device = "meta" if tensor.fake_device.type == "meta" else "cpu"
    with session.paused():
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=device)


def shape_text(tensor):
    """Shape and type of a tensor, such as 4x1024:float32."""
    return "x".join(map(str, tensor.shape)) + ":" + str(tensor.dtype).removeprefix("torch.")


def shape_read(text):
    """A tensor on device meta of a shape and type in the form of shape_text."""
    shape, _, dtype = text.strip().partition(":")
    size = [int(n) for n in shape.split("x") if n]
    return torch.empty(size, dtype=getattr(torch, dtype or "float32"), device="meta")
