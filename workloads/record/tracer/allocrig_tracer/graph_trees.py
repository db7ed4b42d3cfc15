"""torch.compile(mode="reduce-overhead"): Inductor's trees of CUDA graphs (_inductor/cudagraph_trees.py).

The first call of a compiled function runs in the trees' private pool, the second is captured into it after its inputs
have been copied there, and later calls replay it: their outputs are the memory of the capture. The tree manager of
PyTorch runs as it is. Here are the functions by which it inspects and restores the allocator.
"""

import torch
from torch._subclasses.fake_tensor import FakeTensor

from . import graphs
from .graphs import Addresses, Checkpoint


def install(current):
    """Called when Inductor has been imported."""
    core, pools = torch._C, graphs.install.pools

    def storage_at(address, device, size):
        """A storage of memory that a capture has allocated: it is in no later request."""
        session = current()
        with core._DisableTorchDispatch():
            storage = torch.empty(size, dtype=torch.uint8, device="meta").untyped_storage()
        Addresses.bind(storage, address)
        session.ledger.storages[storage._cdata] = None
        return storage

    def tensor_at(metadata, storage):
        with core._DisableTorchDispatch():
            elem = torch.empty(0, dtype=metadata["dtype"], device="meta")
            elem.set_(storage, metadata["storage_offset"], metadata["size"], metadata["stride"])
        return FakeTensor(current().mode.fake, elem, metadata["device"])

    def get_state(device, handle):
        return Checkpoint(current().ledger, pools.numbers.get(tuple(handle), 0))

    def set_state(device, state, stale, live):
        state.restore(current().ledger, live, pools.unowned)

    def free(storage):
        current().ledger.destroyed(storage)

    def same_addresses(inputs, addresses, indices):
        return all(inputs[i].data_ptr() == addresses[i] for i in indices)

    core._construct_storage_from_data_pointer = storage_at
    core._construct_CUDA_Tensor_From_Storage_And_Metadata = tensor_at
    core._cuda_getCheckpointState = get_state
    core._cuda_setCheckpointPoolState = set_state
    core._cuda_checkPoolLiveAllocations = lambda device, handle, storages: True
    core._free_And_Remove_DeleterFn = free
    core._has_Standard_Deleter = lambda storage: True
    core._set_storage_access_error_msg = core._set_storage_data_ptr_access_error_msg = lambda *args: None
    core._tensors_data_ptrs_at_indices_equal = same_addresses
