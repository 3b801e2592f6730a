"""The examples in help and in the reference: for each command lines to copy, which a test runs in this order."""

from __future__ import annotations

_TEACHER = "--teacher http://localhost:8000/v1 --model qwen3"

EXAMPLES: dict[str, tuple[str, ...]] = {
    "convert": (
        "kolibri-sft convert raw.jsonl -o records/",
        "kolibri-sft convert questions.jsonl --map user=question --map assistant=answer -o answered/",
    ),
    "distill": (f"kolibri-sft distill prompts.jsonl {_TEACHER} -o traces/",),
    "backfill": (f"kolibri-sft backfill records/ {_TEACHER} -o backfilled/",),
    "verify": (f"kolibri-sft verify backfilled/ {_TEACHER} -o verified/",),
    "language": ("kolibri-sft language records/ --language de -o judged/",),
    "mask": ("kolibri-sft mask records/ -o masked/", "kolibri-sft mask records/ --repeats strict -o masked.jsonl.gz"),
    "score": ("kolibri-sft score attempts.jsonl --answer-key solution --verifier number -o scored/",),
    "select": ("kolibri-sft select scored/ --per-prompt 1 --prefer shortest -o chosen/",),
    "dedup": ("kolibri-sft dedup answered/ --by prompt --keep longest -o unique/",),
    "decontaminate": ("kolibri-sft decontaminate answered/ --against benchmark.jsonl --field question -o clean/",),
    "effort label": ("kolibri-sft effort label masked/ --tokenizer tokenizer/ -o labelled/",),
    "effort fit": ("kolibri-sft effort fit masked/ --tokenizer tokenizer/ -o edges.json",),
    "effort apply": ("kolibri-sft effort apply masked/ --edges edges.json --tokenizer tokenizer/ -o by_edges/",),
    "effort probe": ("kolibri-sft effort probe http://localhost:8000/v1 prompts.jsonl --model qwen3 -o replies/",),
    "grade collect": (
        "kolibri-sft grade collect prompts.jsonl --label-column level -o labels/",
        f"kolibri-sft grade collect prompts.jsonl {_TEACHER} --votes 3 -o voted/",
    ),
    "grade fit": ("kolibri-sft grade fit labels/ -o grader/",),
    "grade apply": ("kolibri-sft grade apply records/ --model grader/ -o graded/",),
    "mix": ("kolibri-sft mix labelled/ --mixture mixture.toml --tokenizer tokenizer/ -o mixed/",),
    "render": ("kolibri-sft render labelled/ --tokenizer tokenizer/ -o tokens/",),
    "pack": ("kolibri-sft pack tokens/ --capacity 8192 -o packed/",),
    "plan": ("kolibri-sft plan packed/ --ranks 2 --microbatches 1",),
    "stats": ("kolibri-sft stats labelled/ tokens/", "kolibri-sft stats labelled/ --json"),
    "status": ("kolibri-sft status labelled/ tokens/",),
    "inspect": ("kolibri-sft inspect labelled/ --row 0", "kolibri-sft inspect tokens/ --row 0 --tokenizer tokenizer/"),
    "check": ("kolibri-sft check tokenizer/", "kolibri-sft check tokenizer/ labelled/"),
    "train": ("kolibri-sft train packed/ --init config.json --tokenizer tokenizer/ --steps 2 -o run/",),
    "soup": ("kolibri-sft soup runs/a/model runs/b/model -o soup/",),
    "mergemix cluster": ("kolibri-sft mergemix cluster records/ --clusters 2",),
    "mergemix merge": (
        "kolibri-sft mergemix merge --base run/model --specialist maths=runs/a/model --specialist code=runs/b/model "
        "--candidates 8 -o merges/",
    ),
    "mergemix score": ("kolibri-sft mergemix score merges/ --held-out tokens/",),
    "mergemix rank": ("kolibri-sft mergemix rank merges/",),
    "completion": ("kolibri-sft completion bash",),
}
