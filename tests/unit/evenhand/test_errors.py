"""One class for each code, and messages that explain themselves."""

import pytest

from evenhand import errors
from schemas.codes import CODES, Code


def test_every_code_has_one_class_of_its_name() -> None:
    named = {code: "".join(part.capitalize() for part in code.value.split("-")) for code in Code}
    assert {code: kind.__name__ for code, kind in errors.BY_CODE.items()} == named


@pytest.mark.parametrize("code", list(Code))
def test_a_class_knows_whether_the_key_may_be_kept(code: Code) -> None:
    assert errors.BY_CODE[code]().keep_key is CODES[code].temporary


def test_the_docstring_is_the_default_message() -> None:
    assert str(errors.NeverFits()) == errors.NeverFits.__doc__
    assert str(errors.NeverFits("but 7")) == "but 7"


def test_a_code_of_a_newer_server_is_still_an_error_of_ours() -> None:
    assert errors.kind_of("never-heard-of") is errors.EvenhandError
