#!/usr/bin/env bash
# Submit convert, mask, effort label, render and pack, each once all tasks of the one before have ended well.
# Usage: submit.sh INPUT TOKENIZER OUT [TASKS]      More options of sbatch: SBATCH_OPTIONS="--partition=cpu" submit.sh …
set -euo pipefail
input=$1 tokenizer=$2 out=$3 tasks=${4:-4}
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$out"
before=

# submit NAME TASKS COMMAND...: an array of TASKS tasks after the stage before.
submit() {
    local name=$1 count=$2
    shift 2
    # shellcheck disable=SC2086 # SBATCH_OPTIONS are words
    before=$(sbatch --parsable ${SBATCH_OPTIONS:-} --job-name="$name" --array="0-$((count - 1))" \
        --output="$out/$name-%A_%a.log" ${before:+--dependency=afterok:$before} "$here/stage.sbatch" "$@")
    echo "$name: job $before"
}

submit convert "$tasks" convert "$input" -o "$out/records" --on-error quarantine
submit mask "$tasks" mask "$out/records" -o "$out/masked"
submit label "$tasks" effort label "$out/masked" --tokenizer "$tokenizer" -o "$out/labelled"
submit render "$tasks" render "$out/labelled" --tokenizer "$tokenizer" -o "$out/tokens"
submit pack "$tasks" pack "$out/tokens" -o "$out/packed"
echo "how far it is: kolibri-sft status $out/records $out/masked $out/labelled $out/tokens $out/packed"
