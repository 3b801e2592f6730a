"""A real, misbehaving server for teachers to ask."""

from tests.teacher_fixtures import prompts as prompts
from tests.teacher_fixtures import serve as serve
