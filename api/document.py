"""The OpenAPI document: every refusal is a problem, whatever the framework would say by itself."""

from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi

from schemas.problems import Problem

from .problems import MEDIA_TYPE

_REFERENCE = "#/components/schemas/{model}"
_PROBLEM = {
    "description": "Refused; `code` says why.",
    "content": {MEDIA_TYPE: {"schema": {"$ref": _REFERENCE.format(model="Problem")}}},
}
_FRAMEWORKS_OWN = ("HTTPValidationError", "ValidationError")


def document(app: FastAPI) -> dict[str, Any]:
    """OpenAPI 3.1 of all routes."""
    made = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    for path in made["paths"].values():
        for operation in path.values():
            operation["responses"].pop("422", None)
            operation["responses"]["default"] = _PROBLEM
    schemas = made["components"]["schemas"]
    for name in _FRAMEWORKS_OWN:
        schemas.pop(name, None)
    problem = Problem.model_json_schema(mode="serialization", ref_template=_REFERENCE)
    schemas.update(problem.pop("$defs", {}))
    schemas["Problem"] = problem
    return made
