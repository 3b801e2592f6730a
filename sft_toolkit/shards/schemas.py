"""Arrow schemas of the shards, and the column builders that fill them without a Python object per token."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

SCHEMA_VERSION = 1

RECORDS = pa.schema(
    [
        pa.field(name, pa.string())
        for name in ("id", "dataset", "domain", "difficulty", "effort", "messages", "tools", "provenance", "extra")
    ],
    metadata={"kolibri_sft": "records", "kolibri_sft_version": str(SCHEMA_VERSION)},
)

TOKENS = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("dataset", pa.string()),
        pa.field("effort", pa.string()),
        pa.field("input_ids", pa.list_(pa.int32())),
        pa.field("loss_mask", pa.list_(pa.bool_())),
        pa.field("length", pa.int32()),
        pa.field("loss_tokens", pa.int32()),
    ],
    metadata={"kolibri_sft": "tokens", "kolibri_sft_version": str(SCHEMA_VERSION)},
)

PACKED = pa.schema(
    [
        pa.field("input_ids", pa.list_(pa.int32())),
        pa.field("loss_mask", pa.list_(pa.bool_())),
        pa.field("cu_seqlens", pa.list_(pa.int32())),
        pa.field("ids", pa.list_(pa.string())),
        pa.field("tokens", pa.int32()),
        pa.field("documents", pa.int32()),
        pa.field("loss_tokens", pa.int32()),
        pa.field("cost", pa.int64()),
    ],
    metadata={"kolibri_sft": "packed", "kolibri_sft_version": str(SCHEMA_VERSION)},
)


SCHEMAS = {"records": RECORDS, "tokens": TOKENS, "packed": PACKED}


def kind_of(schema: pa.Schema) -> str | None:
    """`records`, `tokens` or `packed` for a schema of ours, None for anyone else's."""
    kind = (schema.metadata or {}).get(b"kolibri_sft")
    return kind.decode(errors="replace") if kind else None


def record_batch(schema: pa.Schema, rows: list[dict[str, Any]]) -> pa.RecordBatch:
    """Columns from rows. A value of a numeric list column is a one-dimensional numpy array."""
    return pa.record_batch([_column(field, [row[field.name] for row in rows]) for field in schema], schema=schema)


def _column(field: pa.Field, values: list[Any]) -> pa.Array:
    if pa.types.is_list(field.type) and not pa.types.is_string(field.type.value_type):
        offsets = np.zeros(len(values) + 1, np.int32)
        np.cumsum([len(value) for value in values], out=offsets[1:])
        flat = np.concatenate(values) if values else np.empty(0)
        return pa.ListArray.from_arrays(offsets, pa.array(flat, field.type.value_type), type=field.type)
    return pa.array(values, field.type)
