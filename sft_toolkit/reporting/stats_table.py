"""The table of `stats` as Arrow: a row a data set, labels as maps from label to count."""

from __future__ import annotations

import pyarrow as pa

from sft_toolkit.reporting.stats import Statistics

_MAP = pa.map_(pa.string(), pa.int64())


def arrow_table(found: Statistics) -> pa.Table:
    """Counts are int64, percentiles of reasoning float64 columns of their own, counts by label maps."""
    rows = found.to_json()["datasets"]
    columns: dict[str, pa.Array] = {}
    for name in dict.fromkeys(key for row in rows for key in row):
        values = [row.get(name) for row in rows]
        if name == "reasoning":
            for part in dict.fromkeys(key for value in values for key in value or {}):
                lengths = [(value or {}).get(part) for value in values]
                columns[f"reasoning_{part}"] = pa.array(lengths, pa.float64())
        elif isinstance(values[0], dict):
            columns[name] = pa.array([list((value or {}).items()) for value in values], _MAP)
        else:
            columns[name] = pa.array(values, pa.string() if name == "dataset" else pa.int64())
    return pa.table(columns).replace_schema_metadata({"reasoning_unit": found.unit} if found.records else {})
