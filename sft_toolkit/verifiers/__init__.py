"""Whether an attempt's answer agrees with a reference: one module per kind of answer, all behind `registry`."""
