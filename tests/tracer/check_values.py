"""Checks of the values that tensors keep in a trace, as check_core.py: run by tests/cli/test_tracer.sh."""

import copy
import io
import os
import sys

import check_core
import torch
import torch.nn as nn
import torch.nn.functional as F
from allocrig_tracer import session, values
from check_core import equal, folder, traced


def drawn_number():
    """One of 0 to 7, of which nothing is known."""
    return torch.empty(1, 8, device="cuda").argmax(-1)


def check_sizes_that_depend_on_values():
    def program():
        routes = torch.randint(0, 4, (1000,), device="cuda")
        found = [(routes == e).nonzero().shape[0] for e in range(4)]
        assert sum(found) == 1000 and min(found) > 150, found
        values = torch.arange(100, device="cuda")
        assert values[values % 10 == 0].tolist() == list(range(0, 100, 10))
        assert values.unique().numel() == 100 and torch.bincount(routes).sum().item() == 1000
        x = torch.randn(1000, 8, device="cuda")
        assert x[routes == 0].shape == (found[0], 8) and x.masked_select(x > 0).dim() == 1

    trace = traced(program)
    drawn = {name for name, _ in trace.notes("drawn")}
    assert "nonzero" in drawn and "masked_select" in drawn, drawn


def check_masks_in_another_type():
    """A mask that is cast, enlarged or like a tensor of unknown values is known; of many unknown values not all are true."""

    def program():
        mask = torch.ones(8, 224, 288, dtype=torch.long)
        mask[3:, 112:] = 0
        small = F.interpolate(mask.cuda()[None].float(), size=(7, 9)).to(torch.bool)[0]
        equal([m.all().item() for m in small], [True] * 3 + [False] * 5)
        x = torch.randn(16, 49, 384, device="cuda") @ torch.randn(384, 384, device="cuda")
        late = torch.arange(49, device="cuda").expand(16, -1) >= torch.arange(34, 50, device="cuda")[:, None]
        kept = x.new_ones((16, 49)).masked_fill(late, 0).bool()
        equal((kept.all(1).sum().item(), (torch.full_like(x[..., 0], 2) - kept.float()).sum().item()), (1, 2 * 784 - 664))
        equal(sum(session.current().draws.values()), 0)
        for _ in range(6):
            assert not x.to(torch.bool).all() and x.to(torch.bool).any()

    equal([name for name, _ in traced(program).notes("drawn")], ["item"])


def check_probabilities_of_classes():
    """Of many classes each has its share of the probability: more than a low bound, and less than a high one."""

    def program():
        logits = torch.randn(4, 5000, 64, device="cuda") @ torch.randn(64, 31, device="cuda")
        for shares in logits.softmax(-1):
            scores = shares[:, 3].clone()
            equal((scores[scores > 0.001].numel(), scores[scores > 0.5].numel(), (scores <= 0.001).sum().item()), (5000, 0, 0))
            assert 2000 < (scores > 1 / 31).sum().item() < 3000

    traced(program)


def check_a_table_that_the_program_fills_is_known():
    def program():
        sizes = torch.empty((2, 2), dtype=torch.long, device="cuda")
        for i, (high, wide) in enumerate(((3, 4), (5, 6))):
            sizes[i, 0], sizes[i, 1] = high, wide
        assert (sizes[:, 0] * sizes[:, 1]).sum() == 42

    equal(traced(program).notes("drawn"), [])


def check_a_table_that_unknown_numbers_fill_is_not_known():
    """By `out=`, and by an operator of the program, whose version for fake tensors does nothing."""

    @torch.library.custom_op("check_tables::fill", mutates_args=("out",))
    def fill(x: torch.Tensor, out: torch.Tensor) -> None:
        out.fill_(3)

    fill.register_fake(lambda x, out: None)

    def sorted_into():
        order = torch.empty(8, dtype=torch.long, device="cuda")
        torch.sort(torch.empty(8, device="cuda"), out=(torch.empty(8, device="cuda"), order))
        order.tolist()

    def filled():
        table = torch.empty(8, dtype=torch.long, device="cuda")
        fill(torch.empty(4, device="cuda"), table)
        table.tolist()

    for program in sorted_into, filled:
        equal(len(traced(program).notes("drawn")), 1)


def check_reading_values_works():
    def program():
        loss = torch.ones(3, device="cuda").sum()
        assert f"{loss:.1f}" == "3.0" and loss.item() == 3.0 and float(loss) == 3.0 and loss.cpu().numpy() == 3.0
        model = nn.Linear(300, 300).cuda()
        twin = copy.deepcopy(model)
        assert twin.weight is not model.weight and twin.weight.is_cuda and isinstance(twin.weight, nn.Parameter)
        torch.save(model.state_dict(), os.path.join(folder, "model.pt"))
        assert model.weight.data_ptr() != twin.weight.data_ptr()
        assert torch.isfinite(model(torch.randn(2, 300, device="cuda"))).all()
        model.load_state_dict({k: torch.zeros(v.shape) for k, v in model.state_dict().items()})
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)

    traced(program)


def check_what_is_written_through_a_view_depends_on_a_draw():
    """By an index, by a view that was there before, by `out=`, by a list of tensors: the note counts each number read."""
    ways = {
        "index": lambda x: x.__setitem__(0, drawn_number()[0]),
        "view": lambda x: x.view(-1)[2].fill_(drawn_number()[0]),
        "copy": lambda x: x[1:2].copy_(drawn_number()),
        "put": lambda x: x.index_put_((torch.tensor([1], device="cuda"),), drawn_number()),
        "scatter": lambda x: x.view(5).scatter_(0, torch.tensor([1], device="cuda"), drawn_number()),
        "mask": lambda x: x.view(5).masked_fill_(torch.empty(5, device="cuda") > 0, 3),
        "list": lambda x: torch._foreach_add_([x.view(5)], [drawn_number()]),
        "out": lambda x: torch.argmax(torch.empty(1, 8, device="cuda"), -1, out=x[1:2]),
    }
    for name, way in ways.items():

        def program(way=way):
            x = torch.zeros(5, dtype=torch.long, device="cuda")
            part = x[:4]
            way(x)
            part.tolist(), copy.deepcopy(x).tolist()

        equal((name, traced(program).notes("drawn")), (name, [["item", "9"]]))


def check_what_is_written_is_known():
    """Numbers that the program writes in place are read again, also those of a tensor that was empty before."""

    def program():
        x = torch.zeros(5, dtype=torch.long, device="cuda")
        torch._foreach_add_([x.view(5), x[1:3]], 2)
        x.record_stream(torch.cuda.current_stream())
        mask = torch.empty(1000, dtype=torch.bool, device="cuda").fill_(True)
        mask[3] = False
        places = torch.empty(1000, dtype=torch.long, device="cuda")
        torch.arange(1000, out=places)
        y = torch.zeros(5, dtype=torch.long, device="cuda")
        y.data = x
        file = io.BytesIO()
        torch.save(y, file)
        file.seek(0)
        y[0] = 9
        equal((x.tolist(), torch.load(file).tolist()), ([9, 4, 4, 2, 2], [2, 4, 4, 2, 2]))
        equal((mask.sum().item(), places[mask].sum().item()), (999, 499500 - 3))
        turned = torch.zeros(2, 3, dtype=torch.long, device="cuda").t_()
        turned[0, 1] = 7
        equal((turned.tolist(), x.as_strided((2, 2), (1, 3)).tolist()), ([[0, 7], [0, 0], [0, 0]], [[9, 2], [4, 2]]))

    equal(traced(program).notes("drawn"), [])


def check_what_is_unknown_is_in_no_view():
    """After an unknown number was written, no tensor of the storage keeps its value; batch norms change their averages."""

    def program():
        ways = (lambda x: x.add_(torch.empty(5, device="cuda")), lambda x: x[1:3].mul_(torch.empty(2, device="cuda")),
                lambda x: torch._foreach_copy_([x[:1]], [torch.empty(1, device="cuda")]))  # fmt: skip
        for way in ways:
            x = torch.zeros(5, device="cuda")
            views = [x[1:3], x.view(5, 1), x]
            assert None not in [values.value_of(v) for v in views]
            way(x)
            equal([values.value_of(v) for v in views], [None] * 3)
        for layer in torch.nn.BatchNorm2d(4).cuda(), torch.nn.BatchNorm1d(4).cuda().half():
            layer(torch.empty(2, 4, *[3] * (layer.weight.dtype == torch.float32) * 2, dtype=layer.weight.dtype, device="cuda"))
            equal((layer.num_batches_tracked.item(), values.value_of(layer.running_var)), (1, None))

    traced(program)


def check_every_operator_that_changes_its_arguments():
    """Of all operators of PyTorch: what was known of a changed argument is not, if another argument is not known."""
    kept = ("_amp_foreach_non_finite_check_and_unscale_", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones", "new_full")
    numbers = {"bool": False, "Optional[bool]": False, "str": "mean"}

    def of_type(kind, default, make):
        if kind in ("Tensor", "Optional[Tensor]", "List[Tensor]", "List[Optional[Tensor]]"):
            return [make(), make()] if kind.startswith("List") else make()
        if kind.startswith(("List[int", "List[SymInt", "List[number", "List[float")):
            return [2, 2]
        return numbers.get(kind, 1 if kind.strip("Optional[]") in ("int", "number", "float", "SymInt") else default)

    def program():
        stale, count = [], 0
        for schema in torch._C._jit_get_all_schemas():
            writes = [a.alias_info is not None and a.alias_info.is_write for a in schema.arguments]
            name = schema.name.removeprefix("aten::")
            if not any(writes) or name == schema.name or name in kept:
                continue
            func = getattr(getattr(torch.ops.aten, name), schema.overload_name or "default")
            args, kwargs, all_tensors, changed = [], {}, [], []
            for argument, write in zip(schema.arguments, writes):
                make = (lambda: torch.tensor([[1, 2], [3, 0]], device="cuda")) if write else (lambda: torch.empty(2, 2, device="cuda"))
                value = of_type(str(argument.type), argument.default_value, make)
                tensors = [t for t in (value if isinstance(value, list) else [value]) if isinstance(t, torch.Tensor)]
                all_tensors += tensors
                changed += tensors if write else []
                kwargs.update({argument.name: value} if argument.kwarg_only else {})
                args += [] if argument.kwarg_only else [value]
            views = [t.view(4) for t in changed]
            if len(all_tensors) == len(changed):
                continue  # it may be computed
            count += 1
            values.follow(session.current().mode, func, args, kwargs, all_tensors, changed if schema.returns else [])
            stale += [str(func) for t in (*changed, *views) if values.value_of(t) is not None and not values.is_drawn(t)]
        equal(stale, [])
        assert count > 900, count

    traced(program)


if __name__ == "__main__":
    sys.exit(check_core.main(dict(globals())))
