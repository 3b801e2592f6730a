"""A student's folder: `student.safetensors` holds its arrays, `grader.json` the rest. Reading it runs no code."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

import sft_toolkit
from sft_toolkit.choices import ClassifierKind
from sft_toolkit.errors import ToolkitError
from sft_toolkit.json_text import encode
from sft_toolkit.shards.atomic import atomic_path, write_text
from sft_toolkit.shards.whole_folder import whole_folder

DESCRIPTION, _ARRAYS = "grader.json", "student.safetensors"


class _Description(msgspec.Struct, forbid_unknown_fields=True):
    schema: Literal["kolibri-sft grader"]
    schema_version: Literal[2]
    tool_version: str
    student: ClassifierKind
    levels: list[str]
    features: int
    arrays: str
    temperature: float
    report: dict[str, Any]


@dataclass(frozen=True)
class Grader:
    """A fitted student: its kind, levels from the easiest, arrays, what `fit` measured of it, and the temperature at
    which its probabilities are calibrated on data sets that it has not seen."""

    student: ClassifierKind
    levels: tuple[str, ...]
    arrays: dict[str, npt.NDArray[Any]]
    report: dict[str, Any]
    temperature: float = 1.0

    def probabilities(self, texts: list[str]) -> npt.NDArray[np.float64]:
        """P(level) of each prompt: float64[n, levels]. The same for a prompt whatever stands beside it."""
        grading = students()
        from sft_toolkit.labelers.grading_metrics import tempered

        chances = grading.STUDENTS[self.student].probabilities(self.arrays, grading.prompts_of(texts))
        return tempered(chances, self.temperature)

    def write(self, target: Path, *, force: bool = False) -> None:
        """Write the folder, which appears when it is whole. Raises as `whole_folder` does."""
        from safetensors.numpy import save

        data = save(self.arrays)
        description = _Description(
            schema="kolibri-sft grader",
            schema_version=2,
            tool_version=sft_toolkit.__version__,
            student=self.student,
            levels=list(self.levels),
            features=students().VERSION,
            arrays=xxhash.xxh3_128_hexdigest(data),
            temperature=self.temperature,
            report=self.report,
        )
        with whole_folder(target, DESCRIPTION, force=force) as folder:
            with atomic_path(folder / _ARRAYS) as temporary:
                temporary.write_bytes(data)
            write_text(folder / DESCRIPTION, msgspec.json.format(encode(description)).decode() + "\n")


def students() -> ModuleType:
    """labelers.difficulty, which needs scikit-learn. Raises ToolkitError where that is not installed."""
    try:
        from sft_toolkit.labelers import difficulty
    except ModuleNotFoundError as fault:
        if (fault.name or "").split(".")[0] not in ("sklearn", "scipy"):
            raise
        raise ToolkitError("grading needs scikit-learn", "in the checkout: pip install '.[grade]'") from fault
    return difficulty


def read_grader(folder: Path) -> Grader:
    """Read a student's folder. Raises ToolkitError where it is none, is cut, or has features of another version."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = folder / DESCRIPTION
    try:
        description = msgspec.json.decode(path.read_bytes(), type=_Description)
        data = (folder / _ARRAYS).read_bytes()
        if xxhash.xxh3_128_hexdigest(data) != description.arrays:
            raise ToolkitError(f"{folder / _ARRAYS}: not the file that {DESCRIPTION} describes", "copy it again")
        arrays = load(data)
    except OSError as fault:
        raise ToolkitError(f"{fault.filename}: {fault.strerror}", "kolibri-sft grade fit writes it") from fault
    except (msgspec.DecodeError, UnicodeDecodeError, SafetensorError) as fault:
        raise ToolkitError(f"{path}: not a grader of this tool: {fault}", "fit again") from fault
    if description.features != students().VERSION:
        raise ToolkitError(f"{path}: fitted on other features than this version computes", "fit again")
    return Grader(description.student, tuple(description.levels), arrays, description.report, description.temperature)
