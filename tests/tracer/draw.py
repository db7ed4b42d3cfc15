#!/usr/bin/env python3
"""Draws programs of a blind round by lot: draw.py [--seed N] [--before FOLDER] [--drawn FILE] [--spare]

Prints one line a program: source, what it trains, recipe. The programs are then written as drawn, and not drawn again.
4 are of torchvision (a family is a module of torchvision.models), or as many as are left, 8 with those of timm (a
module of timm.models), 7 of transformers (first a task, then a model type that has a class for it), 5 of KINDS, which
are written out. A family is left out if a program of FOLDER uses it or names it, and if it cannot be built without a
download or has more than 80 million parameters (transformers: any number, its configuration is made small); one of
KINDS if FILE, which earlier draws wrote, has it. Recipes are dealt from decks.
--spare prints, for each task, its model type and the next one in the order of the lot, for one that fails on any card.

FOLDER must hold the programs of earlier rounds alone: with those of this round in it, others are drawn. drawn.tsv says
with which commit its programs were drawn.
"""
import argparse
import os
import random
import re
import signal
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")
import timm  # noqa: E402
import torch  # noqa: E402
import torchvision  # noqa: E402
import transformers  # noqa: E402
from transformers.models.auto import modeling_auto  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
TASKS = {name: name.upper() for name in (
    "causal_lm", "seq_to_seq_causal_lm", "masked_lm", "image_classification", "audio_classification", "ctc",
    "object_detection", "semantic_segmentation", "sequence_classification", "token_classification",
    "question_answering", "image_text_to_text", "depth_estimation", "speech_seq_2_seq", "video_classification")}
KINDS = {
    "nanoGPT-like": ["two heads for two next tokens", "windows of attention", "a learned temperature of each head"],
    "LSTM": ["a forecast of several series", "tags with characters", "a controller with a memory"],
    "MoE": ["experts of pictures", "experts chosen by hashes", "experts with a shared one and a bias for balance"],
    "U-Net": ["noise of sound in one dimension", "nested skips", "a recurrent bottleneck over frames"],
    "ViT": ["tokens merged between layers", "registers and patches dropped", "two scales with crossed attention"],
    "Whisper": ["words with times", "a language head beside the text", "streams of chunks"],
    "Mamba-like": ["both directions over pictures", "heads with scalar decay", "layers between attention"],
    "diffusion": ["tables of numbers", "text by masks", "latents of a frozen encoder"],
    "GNN": ["layers of transformers on graphs", "pooling by scores", "edges as messages with gates"],
}
DECKS = {  # as many cards as programs, or dealt again from the start
    "optimizer": ["SGD nesterov", "AdamW", "AdamW fused", "AdamW foreach=False", "Adam", "RMSprop momentum", "Adagrad",
                  "NAdam", "RAdam", "Adafactor", "Adamax", "Adadelta"],
    "precision": ["float32", "float32 matmul high", "autocast bfloat16", "autocast float16 scaler", "bfloat16 weights"],
    "batch": ["8", "12", "16", "24", "32", "8 to 16", "last one small"],
    "memory": ["plain", "plain", "checkpointing", "accumulate 2", "accumulate 4"],
    "compiled": ["compile"] * 2 + ["eager"] * 18,
    "layout": ["contiguous", "channels_last"],
    "evaluation": ["none", "in between", "at the end, larger batch", "at the end, other sizes", "from averaged weights"],
    "gradients": ["plain", "clip norm", "clip value", "zero_grad set_to_none=False"],
}


def words(text):
    """Names in a text, in small letters: CamelCase and snake_case in parts and whole."""
    names = set(re.findall(r"[A-Za-z][A-Za-z0-9_]*", text))
    parts = {p for n in names for p in re.split(r"_|(?<=[a-z0-9])(?=[A-Z])", n)}
    return {re.sub(r"_", "", n).lower() for n in names | parts}


def module_of(source, name):
    """The family of an architecture; those of pictures and of videos with one name are one."""
    known = timm.model_entrypoint if source == "timm" else torchvision.models.get_model_builder
    return source, known(name).__module__.split(".")[-1]


def used_by(folder):
    """What earlier programs name, and the modules of the networks that they build."""
    programs = [n for n in sorted(os.listdir(folder)) if n.endswith(".py")]
    text = "".join(open(f"{folder}/{n}").read() + " " + n[:-3] + " " for n in programs)
    modules = {module_of("timm", n) for n in re.findall(r'create_model\("(\w+)', text) if timm.is_model(n)}
    names = re.findall(r"torchvision\.models\.(?:\w+\.)*?([a-z0-9_]+)\(", text)
    modules |= {module_of("torchvision", n) for n in names if n in torchvision.models.list_models()}
    configs = {c for names in re.findall(r"\b((\w+?)(?:Text|Vision)?)Config\b", text) for c in names}
    return words(text), modules, {c.lower() for c in configs}


def plain(family):
    """A family's names, also without a version and "transformer": mobilenetv3, mobilenet; swin_transformer_v2, swin."""
    name = re.sub(r"[^a-z0-9]", "", family.lower())
    bare = re.sub(r"v?\d+$", "", name)
    return {name, bare, bare.removesuffix("transformer") or bare}


def build(make, most=None):
    """Whether it can be built, without data."""
    def late(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, late)
    signal.alarm(60)
    try:
        with torch.device("meta"):
            model = make()
        return most is None or sum(p.numel() for p in model.parameters()) <= most
    except Exception:  # noqa: BLE001  any reason leaves it out
        return False
    finally:
        signal.alarm(0)


def of_registry(source, name):
    if source == "timm":
        return timm.create_model(name)
    whole = re.search("detection|segmentation", torchvision.models.get_model_builder(name).__module__)
    return torchvision.models.get_model(name, weights=None, **({"weights_backbone": None} if whole else {}))


def registries(lot, used):
    """The families of torchvision and timm, in the order of the lot, each with an architecture."""
    known, modules, _ = used
    pictures = [n for n in torchvision.models.list_models() if not n.startswith("quantized")]
    count = 0
    for source, names in (("torchvision", pictures), ("timm", timm.list_models())):
        families = {}
        for n in names:
            families.setdefault(module_of(source, n)[1], []).append(n)
        families = {f: m for f, m in families.items() if (source, f) not in modules and not plain(f) & known}
        most = {"torchvision": 4, "timm": 8}[source]
        for f in lot.sample(sorted(families), len(families)):
            order = lot.sample(families[f], len(families[f]))
            entry = next((n for n in order if build(lambda n=n: of_registry(source, n), 80e6)), None)
            if entry and count < most:
                count += 1
                yield source, f"{f}: {entry}"


def heads(lot, used, most=1):
    """Seven tasks, each with a model type of transformers, and the next ones in the order of the lot."""
    known, _, configs = used
    for task in lot.sample(sorted(TASKS), 7):
        left = most
        mapping = dict(getattr(modeling_auto, f"MODEL_FOR_{TASKS[task]}_MAPPING_NAMES"))
        for family in lot.sample(sorted(mapping), len(mapping)):
            name = mapping[family] if isinstance(mapping[family], str) else mapping[family][0]
            head = getattr(transformers, name, None)
            config = getattr(head, "config_class", None)
            if config is None or plain(family) & (known | configs):
                continue
            if build(lambda: head(config())):
                configs |= plain(family)
                left -= 1
                yield "transformers", f"{task}: {family} {name}"
                if not left:
                    break


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1814, help="1814, that of the fourteenth round")
    p.add_argument("--before", default=HERE + "/programs")
    p.add_argument("--drawn", help="leave out what is written in this file from KINDS")
    p.add_argument("--spare", action="store_true", help="print each task's model type and the next one, nothing else")
    args = p.parse_args()
    lot, used = random.Random(args.seed), used_by(args.before)
    drawn = list(registries(lot, used))
    if args.spare:
        print("\n".join(what for _, what in heads(lot, used, 2)))
        return
    drawn += heads(lot, used)
    before = open(args.drawn).read() if args.drawn else ""
    kinds = {k: left for k, every in KINDS.items() if (left := [e for e in every if f"{k}: {e}" not in before])}
    drawn += [("written", f"{k}: {lot.choice(kinds[k])}") for k in lot.sample(sorted(kinds), 5)]
    decks = {}
    for name, cards in DECKS.items():
        pile = (cards * len(drawn))[:len(drawn)]
        lot.shuffle(pile)
        decks[name] = pile
    for i, (source, what) in enumerate(drawn):
        print(f"{source}\t{what}\t" + ", ".join(f"{name}: {pile[i]}" for name, pile in decks.items()), flush=True)


if __name__ == "__main__":
    main()
