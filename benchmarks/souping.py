"""Soups and merges of generated checkpoints: bits, time, processor time and memory, beside mergekit and a plain copy.

    python benchmarks/souping.py FOLDER [--mergekit VENV/bin/mergekit-yaml] [--gigabytes 0.9] [--merge-gigabytes 0.3]

FOLDER needs room for four checkpoints and eight merges. mergekit pins versions that this project does not install with:
give it an environment of its own. Figures of one run hold for one machine and load; compare the lines of a run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sft_toolkit.souping.safetensors_file import encode_header, read_tensors

HIDDEN, INNER, VOCABULARY, KEYS = 960, 2560, 49_152, 320
SAMPLES = 10_000_000
TRIALS = 3
SPECIALISTS, CANDIDATES = 4, 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--mergekit", type=Path)
    parser.add_argument("--gigabytes", type=float, default=0.9)
    parser.add_argument("--merge-gigabytes", type=float, default=0.3)
    asked = parser.parse_args()
    with workshop(asked.folder / "soups") as folder:
        runs = [write_checkpoint(folder / f"run-{number}", asked.gigabytes, number) for number in range(3)]
        for count in (2, 3):
            compare_soups(folder, runs[:count], asked.mergekit)
    with workshop(asked.folder / "merges") as folder:
        compare_merges(folder, asked.merge_gigabytes)


@contextmanager
def workshop(folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def compare_soups(folder: Path, runs: Sequence[Path], mergekit: Path | None) -> None:
    out = folder / "out"
    print(f"{len(runs)} checkpoints of {size_of(runs[0]) / 1e9:.2f} GB, bfloat16, equal weights")
    measure("copy of one, with fsync", ["dd", f"if={runs[0] / FILE}", f"of={folder / 'copy'}", "bs=4M", "conv=fsync"])
    (folder / "copy").unlink()
    soup = [*KOLIBRI, "soup", *map(str, runs), "--force", "--quiet", "-o"]
    processor = min(measure("kolibri-sft soup", [*soup, str(out)]).processor for _ in range(TRIALS))
    measure("kolibri-sft soup, again", [*soup, str(folder / "again")])
    same = (out / FILE).read_bytes() == (folder / "again" / FILE).read_bytes()
    wrong = count_wrong(out / FILE, [run / FILE for run in runs], [1] * len(runs))
    print(f"  identical files from identical inputs: {same}; wrong bits in {SAMPLES:,} elements: {wrong}")
    if mergekit:
        recipe = write_mergekit_recipe(folder / "mergekit.yaml", runs)
        command = [str(mergekit), str(recipe), str(folder / "mergekit"), "--no-copy-tokenizer"]
        peer = min(measure("mergekit linear", command).processor for _ in range(TRIALS))
        print(f"  mergekit takes {peer / processor:.1f} times the processor time")
        wrong = count_wrong(folder / "mergekit" / FILE, [run / FILE for run in runs], [1] * len(runs))
        print(f"  wrong bits of mergekit: {wrong}")


def compare_merges(folder: Path, gigabytes: float) -> None:
    base = write_checkpoint(folder / "base", gigabytes, 0)
    specialists = {
        f"cluster-{number}": write_checkpoint(folder / f"specialist-{number}", gigabytes, number)
        for number in range(1, SPECIALISTS + 1)
    }
    print(f"{CANDIDATES} merges of {SPECIALISTS} specialists of {size_of(base) / 1e9:.2f} GB")
    named = [word for name, path in specialists.items() for word in ("--specialist", f"{name}={path}")]
    merges = folder / "merges"
    merge = [*KOLIBRI, "mergemix", "merge", "--base", str(base), *named, "--candidates", str(CANDIDATES), "--quiet"]
    one_pass = measure("kolibri-sft mergemix merge", [*merge, "-o", str(merges)])
    apart = []
    for line in (merges / "mixtures.jsonl").read_text().splitlines():
        mixture = json.loads(line)
        weights = ",".join(str(mixture["weights"][name]) for name in specialists)
        out = folder / f"soup-{mixture['id']}"
        soup = [*KOLIBRI, "soup", *map(str, specialists.values()), "--weights", weights, "--quiet", "-o", str(out)]
        apart.append(measure(f"kolibri-sft soup, {mixture['id']}", soup))
        same = (out / FILE).read_bytes() == (merges / mixture["id"] / FILE).read_bytes()
        print(f"  the merge is the soup: {same}")
    processor = sum(soup.processor for soup in apart) / one_pass.processor
    wall = sum(soup.wall for soup in apart) / one_pass.wall
    print(
        f"  {CANDIDATES} soups take {processor:.1f} times the processor and {wall:.1f} times the wall time of one pass"
    )


KOLIBRI = [str(Path(sys.executable).with_name("kolibri-sft"))]
FILE = "model.safetensors"


MEASURE = """
import json, resource, subprocess, sys, time
begun = time.perf_counter()
done = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL)
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([done.returncode, time.perf_counter() - begun, usage.ru_utime + usage.ru_stime, usage.ru_maxrss]))
"""


class Seconds(NamedTuple):
    wall: float
    processor: float


def measure(name: str, command: Sequence[str]) -> Seconds:
    """Run a process, print wall and processor seconds and peak memory.

    A small process starts it, for a child's peak counts from its parent's size on.
    """
    offline = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, env=offline)
    status, wall, processor, peak = json.loads(done.stdout)
    if status:
        raise SystemExit(f"{name} failed: {done.stderr}")
    print(f"  {name:28} {wall:6.2f} s wall {processor:6.2f} s processor {peak / 1024:7.0f} MiB", flush=True)
    return Seconds(wall, processor)


def write_checkpoint(folder: Path, gigabytes: float, seed: int) -> Path:
    """A model of Llama's shapes: a base that all share and, but for seed 0, differences of a twentieth of its size."""
    folder.mkdir()
    shapes = tensor_shapes(int(gigabytes * 1e9 / 2))
    base, own = np.random.default_rng(1), np.random.default_rng(1000 + seed)
    with (folder / FILE).open("wb") as file:
        file.write(encode_header((name, "BF16", shape) for name, shape in shapes.items()))
        for shape in shapes.values():
            values = base.standard_normal(shape, np.float32) * np.float32(0.02)
            if seed:
                values += own.standard_normal(shape, np.float32) * np.float32(0.001)
            file.write((values.view(np.uint32) >> 16).astype(np.uint16))
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": HIDDEN,
        "intermediate_size": INNER,
        "num_hidden_layers": sum(name.endswith("q_proj.weight") for name in shapes),
        "num_attention_heads": 15,
        "num_key_value_heads": 5,
        "vocab_size": VOCABULARY,
        "tie_word_embeddings": True,
    }
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def tensor_shapes(parameters: int) -> dict[str, tuple[int, ...]]:
    """Names and shapes, by name, of as many layers as come nearest to `parameters`."""
    layer = {
        "self_attn.q_proj": (HIDDEN, HIDDEN),
        "self_attn.k_proj": (KEYS, HIDDEN),
        "self_attn.v_proj": (KEYS, HIDDEN),
        "self_attn.o_proj": (HIDDEN, HIDDEN),
        "mlp.gate_proj": (INNER, HIDDEN),
        "mlp.up_proj": (INNER, HIDDEN),
        "mlp.down_proj": (HIDDEN, INNER),
        "input_layernorm": (HIDDEN,),
        "post_attention_layernorm": (HIDDEN,),
    }
    size = sum(int(np.prod(shape)) for shape in layer.values())
    layers = max(1, round((parameters - VOCABULARY * HIDDEN) / size))
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (VOCABULARY, HIDDEN),
        "model.norm.weight": (HIDDEN,),
    }
    for number in range(layers):
        shapes |= {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}
    return dict(sorted(shapes.items()))


def write_mergekit_recipe(path: Path, runs: Sequence[Path]) -> Path:
    models = [{"model": str(run), "parameters": {"weight": 1.0}} for run in runs]
    path.write_text(json.dumps({"merge_method": "linear", "dtype": "bfloat16", "models": models}))
    return path


def size_of(run: Path) -> int:
    return (run / FILE).stat().st_size


def count_wrong(output: Path, inputs: Sequence[Path], weights: Sequence[int]) -> int:
    """How many of SAMPLES elements, spread over all tensors, are not the exact mean rounded to nearest even."""
    found = {tensor.name: tensor for tensor in read_tensors(output)}
    sources = [{tensor.name: tensor for tensor in read_tensors(path)} for path in inputs]
    total = sum(tensor.size for tensor in found.values())
    rng, wrong = np.random.default_rng(5), 0
    for name, tensor in found.items():
        count = tensor.size // 2
        places = rng.integers(0, count, -(-SAMPLES * tensor.size // total))
        columns = [
            np.memmap(source[name].path, "<u2", "r", source[name].offset, (count,))[places] for source in sources
        ]
        got = np.memmap(output, "<u2", "r", tensor.offset, (count,))[places]
        expected = exact_means(np.array(columns), weights)
        wrong += int(np.count_nonzero((got != expected) & ((got | expected) & 0x7FFF != 0)))
    return wrong


def exact_means(patterns: np.ndarray, weights: Sequence[int]) -> np.ndarray:
    """Means of bfloat16 patterns in integers alone, patterns: uint16[inputs, n]. A zero comes out positive.

    All significands of an element are scaled to its lowest exponent; int64 holds them as long as exponents differ by
    less than 45. The quotient is brought to 8 bits (fewer at the lowest exponent) and rounded by its remainder.
    """
    patterns, divisor = patterns.astype(np.int64), sum(weights)
    stored = patterns >> 7 & 0xFF
    exponents = np.maximum(stored, 1)
    significands = (patterns & 0x7F) + np.where(stored > 0, 0x80, 0)
    lowest = np.where(significands > 0, exponents, 255).min(axis=0)
    shifts = np.where(significands > 0, exponents - lowest, 0)
    assert shifts.max() < 45
    signs = np.where(patterns >> 15, -1, 1)
    numerator = sum(weight * row for weight, row in zip(weights, signs * (significands << shifts), strict=True))
    size = np.abs(numerator)

    with np.errstate(divide="ignore"):
        scale = np.floor(np.log2(size / divisor)).clip(-200, 200).astype(np.int64) - 7
    above = size << np.maximum(-scale, 0) >= (256 * divisor) << np.maximum(scale, 0)
    below = size << np.maximum(-scale, 0) < (128 * divisor) << np.maximum(scale, 0)
    scale = np.maximum(np.where(size > 0, scale + above - below, 0), 1 - lowest)

    quotient, rest = np.divmod(size << np.maximum(-scale, 0), divisor << np.maximum(scale, 0))
    half = (divisor << np.maximum(scale, 0)) - 2 * rest
    quotient += (half < 0) | ((half == 0) & (quotient & 1 == 1))
    magnitude = np.where(size > 0, ((lowest + scale - 1) << 7) + quotient, 0)
    return (magnitude | np.where(numerator < 0, 0x8000, 0)).astype(np.uint16)


if __name__ == "__main__":
    main()
