"""Validation whose work is bounded whatever a schema says: each subschema meets each value of the instance once.

Native validation is fast and is used wherever a schema, with its references written out, is small. One that refers to
itself, or doubles with every reference, can take native code exponential time, and building the errors of all branches
exponential memory. Here the keywords that lead to other subschemas are walked with a memory of what was found; what a
keyword says of one value alone is left to native code, one subschema at a time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, TypeVar

from sft_toolkit.tool_calls.native_validation import (
    LETTERS_A_STEP,
    MOST_STEPS,
    TooMuchWork,
    compiled,
    is_valid,
    length,
    sentence,
    weight,
)
from sft_toolkit.tool_calls.subschemas import BY_NAME, IN_LISTS, SINGLE, pointer, resolve

_SHOWN = 60
_WALKED = frozenset({"$ref", "items", "minContains", "maxContains", *BY_NAME, *IN_LISTS, *SINGLE})
_NOT_WALKED = frozenset(
    {"unevaluatedItems", "unevaluatedProperties", "$dynamicRef", "$recursiveRef", "dependencies", "$id", "id"}
)

_OF_THE_ROOT = frozenset({"$id", "id"})
_LOOKS_INSIDE = frozenset({"enum", "const", "uniqueItems"})

Place = tuple[Any, Any, Any]
"""A step of a JSON pointer (None for none), a subschema, and the value that it is to hold for."""


class BoundedValidator:
    """Of one schema. Its answers depend on schema and value alone, never on time."""

    def __init__(self, schema: Any) -> None:
        self._root = schema
        self.hides_siblings = isinstance(schema, dict) and "draft-0" in str(schema.get("$schema"))
        """Whether a $ref takes the place of what stands beside it, as up to draft 7."""
        self._alone: dict[int, Any] = {}
        self._patterns: dict[str, Any] = {}

    def error(self, value: Any) -> tuple[str, str] | None:
        """JSON pointer and sentence of what is wrong with a value, None where nothing is. Raises TooMuchWork."""
        return self.error_at(self._root, value)

    def error_at(self, schema: Any, value: Any) -> tuple[str, str] | None:
        """As `error`, for a subschema of the schema."""
        walk = _Walk(self)
        return None if walk.valid(schema, value) else walk.explained(schema, value)

    def alone(self, schema: dict[str, Any]) -> Any:
        """Native validator of what a subschema says of a value alone."""
        if id(schema) not in self._alone:
            if schema.keys() & (_NOT_WALKED - _OF_THE_ROOT if schema is self._root else _NOT_WALKED):
                raise TooMuchWork("a keyword that is not walked")
            hidden = self.hides_siblings and "$ref" in schema
            own = {} if hidden else {keyword: said for keyword, said in schema.items() if keyword not in _WALKED}
            if isinstance(self._root, dict) and "$schema" in self._root:
                own["$schema"] = self._root["$schema"]
            self._alone[id(schema)] = compiled(own)
        return self._alone[id(schema)]

    def matches(self, pattern: str, name: str) -> bool:
        if pattern not in self._patterns:
            self._patterns[pattern] = compiled({"pattern": pattern})
        return is_valid(self._patterns[pattern], name)

    def places(self, schema: dict[str, Any], value: Any) -> Iterator[Place]:
        """Where subschemas must hold for a value to be valid, apart from those of which some may hold."""
        if isinstance(schema.get("$ref"), str):
            yield None, resolve(schema["$ref"], self._root), value
            if self.hides_siblings:
                return
        for branch in schema.get("allOf", ()):
            yield None, branch, value
        if isinstance(value, dict):
            yield from self._members(schema, value)
        elif isinstance(value, list):
            yield from self._elements(schema, value)

    def _members(self, schema: dict[str, Any], value: dict[str, Any]) -> Iterator[Place]:
        named, patterns = schema.get("properties", {}), schema.get("patternProperties", {})
        for name, member in value.items():
            found = [named[name]] if name in named else []
            found += [declared for pattern, declared in patterns.items() if self.matches(pattern, name)]
            if not found and "additionalProperties" in schema:
                found = [schema["additionalProperties"]]
            for declared in found:
                yield name, declared, member
            if "propertyNames" in schema:
                yield None, schema["propertyNames"], name
        for name, declared in schema.get("dependentSchemas", {}).items():
            if name in value:
                yield None, declared, value

    def _elements(self, schema: dict[str, Any], value: list[Any]) -> Iterator[Place]:
        items, first = schema.get("items", True), schema.get("prefixItems", [])
        if isinstance(items, list):
            items, first = schema.get("additionalItems", True), items
        for index, element in enumerate(value):
            yield index, first[index] if index < len(first) else items, element


Found = TypeVar("Found")
Asking = Generator[tuple[Any, Any], bool, Found]
"""Work that asks whether a subschema holds for a value, is given the answer, and goes on."""


class _Walk:
    """One value being judged. What is known of a subschema and a value is kept by their identities.

    Questions wait on a stack of its own, not on Python's, whose depth is no matter of schema and value.
    """

    def __init__(self, validator: BoundedValidator) -> None:
        self._validator = validator
        self._known: dict[tuple[int, int], bool | None] = {}
        self._steps = 0

    def valid(self, schema: Any, value: Any) -> bool:
        return self._done(_asked(schema, value))

    def _done(self, work: Asking[Found]) -> Found:
        """What a piece of work comes to, once all that it asks is answered."""
        stack: list[tuple[tuple[int, int] | None, Asking[Any]]] = [(None, work)]
        answer: Any = None
        while True:
            key, asking = stack[-1]
            try:
                schema, value = asking.send(answer)
            except StopIteration as end:
                stack.pop()
                if key is None:
                    found: Found = end.value
                    return found
                answer = self._known[key] = end.value
                continue
            answer = self._answer(schema, value)
            if answer is None:
                stack.append(((id(schema), id(value)), self._holds(schema, value)))

    def _answer(self, schema: Any, value: Any) -> bool | None:
        """What is known, None where it has to be worked out."""
        if not isinstance(schema, dict):
            return schema is not False
        key = id(schema), id(value)
        if key not in self._known:
            self._known[key] = None
            return None
        known = self._known[key]
        if known is None:
            raise TooMuchWork("a reference leads into itself")
        return known

    def _holds(self, schema: dict[str, Any], value: Any) -> Asking[bool]:
        if not self._fits(schema, value):
            return False
        for _, part, found in self._validator.places(schema, value):
            if not (yield part, found):
                return False
        return (yield from self._fault(schema, value)) is None

    def _fits(self, schema: dict[str, Any], value: Any) -> bool:
        """Whether a value is what a subschema says of it alone. Native code gets no more of it than it looks at."""
        looks_inside = bool(schema.keys() & _LOOKS_INSIDE)
        self._steps += weight(value) if looks_inside else 1 + length(value) // LETTERS_A_STEP
        if self._steps > MOST_STEPS:
            raise TooMuchWork(f"more than {MOST_STEPS} steps")
        if not looks_inside and isinstance(value, (dict, list)):
            value = dict.fromkeys(value) if isinstance(value, dict) else [None] * len(value)
        return is_valid(self._validator.alone(schema), value)

    def _fault(self, schema: dict[str, Any], value: Any) -> Asking[str | None]:
        """The keyword, of those under which some subschemas may hold, that a value does not satisfy."""
        if self._validator.hides_siblings and "$ref" in schema:
            return None
        for keyword in ("anyOf", "oneOf"):
            holding = 0
            for branch in schema.get(keyword, ()):
                holding += yield branch, value
                if holding > (keyword == "oneOf"):
                    break
            if keyword in schema and holding != 1:
                return keyword
        if "not" in schema and (yield schema["not"], value):
            return "not"
        if "if" in schema:
            branch = "then" if (yield schema["if"], value) else "else"
            if not (yield schema.get(branch, True), value):
                return branch
        if "contains" in schema and isinstance(value, list):
            count = 0
            for element in value:
                count += yield schema["contains"], element
            if not schema.get("minContains", 1) <= count <= schema.get("maxContains", len(value)):
                return "contains"
        return None

    def explained(self, schema: Any, value: Any) -> tuple[str, str]:
        """The innermost place where an invalid value goes wrong, as far as that is one place, and how."""
        path: list[str | int] = []
        while isinstance(schema, dict):
            if not self._fits(schema, value):
                return pointer(path), sentence(next(self._validator.alone(schema).iter_errors(value)))
            places = self._validator.places(schema, value)
            wrong = next((place for place in places if not self.valid(*place[1:])), None)
            if wrong is not None:
                step, schema, value = wrong
                path += [] if step is None else [step]
                continue
            keyword = self._done(self._fault(schema, value))
            if keyword in ("then", "else"):
                schema = schema[keyword]
                continue
            meant = self._meant(schema[keyword], value) if keyword in ("anyOf", "oneOf") else None
            if meant is None:
                return pointer(path), f"{_shown(value)} does not satisfy {keyword}"
            schema = meant
        return pointer(path), f"{_shown(value)} is not allowed here"

    def _meant(self, branches: list[Any], value: Any) -> Any:
        """The branch that a value comes nearest to: it fits the value itself and fails in the fewest places inside."""
        failing = []
        for branch in branches:
            if isinstance(branch, dict) and self._fits(branch, value):
                places = self._validator.places(branch, value)
                failing.append((sum(not self.valid(part, found) for _, part, found in places), branch))
        least = min((count for count, _ in failing), default=0)
        nearest = [branch for count, branch in failing if count == least]
        return nearest[0] if least and len(nearest) == 1 else None


def _asked(schema: Any, value: Any) -> Asking[bool]:
    return (yield schema, value)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return "an object"
    return "a list" if isinstance(value, list) else str(value)[:_SHOWN]
