"""Renders every refusal as RFC 9457: the code's status and type, and what helps to do next."""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from schemas.bodies import IDEMPOTENCY_KEY, POSITION
from schemas.codes import CODES, Code
from schemas.problems import FieldProblem, Problem

MEDIA_TYPE = "application/problem+json"
TYPE_PREFIX = "urn:evenhand:problem:"
PROBE_SECONDS = 1
"""When to come again if nobody knows when it would help."""

_log = logging.getLogger(__name__)


class Refused(Exception):
    """The request ends here with this code; nothing of it was done unless the detail says so."""

    def __init__(
        self,
        code: Code,
        detail: str,
        *,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
        **fields: Any,
    ) -> None:
        """`fields` are those of `Problem`; `status` only where HTTP itself demands another."""
        super().__init__(detail)
        self.code = code
        self.detail = detail
        self.headers = dict(headers or {})
        self.status = CODES[code].status if status is None else status
        self.fields = fields


def not_found(
    detail: str = "Expected something of yours by this name, but there is none",
) -> Refused:
    """The same for what does not exist and for what belongs to another tenant (R132)."""
    return Refused(Code.NOT_FOUND, detail)


def instant(at_ms: int) -> datetime:
    """Milliseconds since 1970 as an instant, exactly."""
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=at_ms)


def retry_fields(retry_at_ms: int | None, now_ms: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Fields and headers that say when to come again: both name the same instant, or a probe."""
    if retry_at_ms is None:
        after = PROBE_SECONDS
        return {"retry_at": None, "confidence": "unknown"}, {"Retry-After": str(after)}
    after = max(0, -(-(retry_at_ms - now_ms) // 1000))
    known = {"retry_at": instant(retry_at_ms), "confidence": "locally_measured"}
    return known, {"Retry-After": str(after)}


def render(request: Request, refused: Refused) -> JSONResponse:
    """The reply to a request that was refused."""
    info = CODES[refused.code]
    fields, headers = dict(refused.fields), dict(refused.headers)
    if info.temporary:
        fields.setdefault("keep_key", True)
        if "Retry-After" not in headers:
            again, after = retry_fields(None, 0)
            fields, headers = {**again, **fields}, {**after, **headers}
    problem = Problem(
        type=f"{TYPE_PREFIX}{refused.code}",
        title=info.title,
        status=refused.status,
        detail=refused.detail,
        instance=request.url.path,
        code=refused.code,
        **fields,
    )
    # A retry_at of null is said aloud: the instant is unknown, not forgotten.
    body = problem.model_dump(mode="json", exclude_unset=True)
    headers.setdefault(POSITION, str(request.app.state.door.views.progress().position))
    return JSONResponse(body, refused.status, headers, media_type=MEDIA_TYPE)


def _refused(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refused)
    return render(request, error)


def _unreadable(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    if any(one["loc"][0] == "path" for one in found):
        return render(request, not_found())
    if any(one["type"] == "json_invalid" for one in found):
        return render(request, Refused(Code.MALFORMED, "Expected JSON, but it could not be read"))
    if any(one["type"] == "missing" and one["loc"] == ("header", IDEMPOTENCY_KEY) for one in found):
        return render(
            request,
            Refused(Code.IDEMPOTENCY_KEY_MISSING, "Expected an Idempotency-Key, but there is none"),
        )
    errors = [
        FieldProblem(
            field=".".join(map(str, one["loc"][1:])) or str(one["loc"][0]), reason=one["msg"]
        )
        for one in found
    ]
    detail = f"Expected every field as documented, but not so {', '.join(e.field for e in errors)}"
    return render(request, Refused(Code.INVALID_FIELD, detail, errors=errors))


def _by_http(request: Request, error: Exception) -> JSONResponse:
    """What the framework refuses: unknown paths and methods, bodies that are no JSON."""
    assert isinstance(error, HTTPException)
    if error.status_code == HTTPStatus.NOT_FOUND:
        return render(request, not_found("Expected a path of this interface, but there is none"))
    refused = Refused(
        Code.MALFORMED,
        f"Expected a request as documented, but: {error.detail}",
        status=error.status_code,
        headers=error.headers,
    )
    return render(request, refused)


def _broken(request: Request, error: Exception) -> JSONResponse:
    _log.error("a request failed", exc_info=error)
    return render(request, Refused(Code.INTERNAL, "Expected to answer, but failed; see the log"))


def install(app: FastAPI) -> None:
    """Every error of the application becomes a problem."""
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _unreadable)
    app.add_exception_handler(HTTPException, _by_http)
    app.add_exception_handler(Exception, _broken)
