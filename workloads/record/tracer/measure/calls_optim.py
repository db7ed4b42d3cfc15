"""Cases of optimizers, foreach operators, gradient scaling and clipping."""
import torch
from measure_kernels import Case

SIZES = [(1000, 333), (77,), (), (512, 512), (3, 3, 64, 64), (1,), (100000,)] * 3


def parameters(dtype, sizes):
    def setup(x):
        made = []
        for size in sizes:
            p = torch.nn.Parameter(torch.randn(size, dtype=dtype, device=x.device))
            p.grad = torch.randn_like(p)
            made.append(p)
        return made
    return setup


def step(make):
    def call(params):
        opt = make(params)
        opt.step()
        opt.step()
        opt.zero_grad(set_to_none=False)
        for p in params:
            p.grad = torch.randn_like(p)
    return call


def scaler(params):
    s = torch.amp.GradScaler("cuda")
    opt = torch.optim.SGD(params, 0.1)
    s.scale(params[0].sum())
    s.unscale_(opt)
    s.step(opt)
    s.update()


def cases():
    out = []
    o = torch.optim
    for dtype in (torch.float32, torch.bfloat16):
        setup = parameters(dtype, SIZES)
        many = parameters(dtype, [(64,)] * 400)
        for name in ("Adam", "AdamW", "SGD", "RMSprop", "Adagrad", "Adadelta", "NAdam", "RAdam",
                     "Adamax", "Rprop", "ASGD"):
            kind = getattr(o, name)
            for extra in ({"foreach": True}, {"foreach": False}, {"fused": True},
                          {"foreach": True, "weight_decay": 0.1},
                          {"foreach": True, "maximize": True},
                          {"foreach": True, "capturable": True}):
                if "fused" in extra and name not in ("Adam", "AdamW", "SGD", "Adagrad"):
                    continue
                if name == "Rprop" and "weight_decay" in extra:
                    continue
                if "capturable" in extra and name in ("SGD", "Adagrad"):
                    continue
                if name == "SGD":
                    extra = dict(extra, momentum=0.9, lr=0.1)
                out.append(Case("%s %s" % (name, extra), step(
                    lambda p, k=kind, e=extra: k(p, **e)), "f32[1]", setup=setup))
            out.append(Case(name + " many", step(lambda p, k=kind: k(p, lr=0.1, foreach=True)),
                            "f32[1]", setup=many))
        out += [Case("amsgrad", step(lambda p: o.Adam(p, amsgrad=True)), "f32[1]", setup=setup),
                Case("amsgrad_fused", step(lambda p: o.Adam(p, amsgrad=True, fused=True)), "f32[1]",
                     setup=setup),
                Case("centered", step(lambda p: o.RMSprop(p, centered=True, momentum=0.9)),
                     "f32[1]", setup=setup),
                Case("nesterov", step(lambda p: o.SGD(p, 0.1, momentum=0.9, nesterov=True)),
                     "f32[1]", setup=setup),
                Case("scaler", scaler, "f32[1]", setup=setup),
                Case("zero_", lambda p: torch._foreach_zero_([x.grad for x in p]), "f32[1]",
                     setup=setup)]
        if hasattr(o, "Muon"):
            out.append(Case("muon", step(lambda p: o.Muon(p)), "f32[1]",
                            setup=parameters(dtype, [(256, 512), (768, 768), (64, 2048)])))
        for norm in (2.0, 1.0, float("inf"), 3.0):
            for which, label in ((setup, "few"), (many, "many")):
                for each in (True, False):
                    out.append(Case("clip_%s %s %s" % (norm, label, each),
                                    lambda p, n=norm, e=each: torch.nn.utils.clip_grad_norm_(
                                        p, 1.0, norm_type=n, foreach=e), "f32[1]", setup=which))
        out.append(Case("clip_value", lambda p: torch.nn.utils.clip_grad_value_(p, 0.1), "f32[1]",
                        setup=setup))
        for size in ((5000000,), (65536,), (65537,), (1000, 1000)):
            big = parameters(dtype, [size] * 5)
            out.append(Case("clip_big", lambda p: torch.nn.utils.clip_grad_norm_(p, 1.0), "f32[1]",
                            setup=big))
            out.append(Case("foreach_max", lambda p: torch._foreach_max([x.grad for x in p]),
                            "f32[1]", setup=big))
        for name in ("add", "sub", "mul", "div", "sqrt", "abs", "neg", "exp", "lerp", "addcmul",
                     "addcdiv", "pow", "clamp_max", "maximum", "reciprocal", "sign", "copy_"):
            fn = getattr(torch, "_foreach_" + name)

            def call(p, f=fn, n=name):
                g = [x.grad for x in p]
                d = [x.detach() for x in p]
                if n in ("add", "sub", "mul", "div", "pow", "clamp_max", "maximum"):
                    return f(d, 2.0), f(d, g)
                if n == "lerp":
                    return f(d, g, 0.5)
                if n in ("addcmul", "addcdiv"):
                    return f(d, g, g, 0.5)
                return f(d, g) if n == "copy_" else f(d)
            out.append(Case("foreach_" + name, call, "f32[1]", setup=setup))
        out.append(Case("foreach_add_t", lambda p: torch._foreach_add_(
            [x.grad for x in p], [x.grad.t().contiguous().t() if x.dim() == 2 else x.grad
                                  for x in p]), "f32[1]", setup=setup))
        out.append(Case("foreach_mul_tensor", lambda p: torch._foreach_mul_(
            [x.grad for x in p], torch.ones((), device=p[0].device)), "f32[1]", setup=setup))
    return out
