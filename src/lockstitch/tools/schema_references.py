"""JSON Schemas that others wrote (msgspec, pydantic) without their references."""

from typing import Any, TypeAlias

Schema: TypeAlias = dict[str, Any]


def inlined(schema: Schema) -> Schema:
    """The schema with its ``$defs`` written where they are used, but for what contains itself."""
    definitions: Schema = schema.get("$defs", {})
    kept: Schema = {}

    def walk(node: Any, trail: tuple[str, ...]) -> Any:
        if isinstance(node, list):
            return [walk(item, trail) for item in node]
        if not isinstance(node, dict):
            return node
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/$defs/"):
            name = reference.removeprefix("#/$defs/")
            if name in trail or _contains_itself(name, definitions):
                if name not in kept:
                    kept[name] = {}
                    kept[name] = walk(definitions[name], (*trail, name))
                return node
            beside = {key: walk(value, trail) for key, value in node.items() if key != "$ref"}
            return {**walk(definitions.get(name, {}), (*trail, name)), **beside}
        return {
            key: walk(value, trail)
            for key, value in node.items()
            if key != "$defs" and not (key == "title" and isinstance(value, str))
        }

    plain: Schema = walk({key: value for key, value in schema.items() if key != "$defs"}, ())
    if kept:
        plain = {**plain, "$defs": kept}
    return plain


def _contains_itself(name: str, definitions: Schema) -> bool:
    seen: set[str] = set()
    todo = [name]
    while todo:
        for found in _references(definitions.get(todo.pop(), {})):
            if found == name:
                return True
            if found not in seen:
                seen.add(found)
                todo.append(found)
    return False


def _references(node: Any) -> list[str]:
    if isinstance(node, list):
        return [name for item in node for name in _references(item)]
    if not isinstance(node, dict):
        return []
    own = node.get("$ref")
    here = [own.removeprefix("#/$defs/")] if isinstance(own, str) else []
    return here + [name for value in node.values() for name in _references(value)]
