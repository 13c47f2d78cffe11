"""`holdfast serve --root`: a folder for all tenants, or for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.cli.commands.serve import folder_of_root
from holdfast.errors import InputError


def test_root_is_a_folder_for_all_or_names_its_tenant(tmp_path: Path) -> None:
    odd = tmp_path / "a=b"
    odd.mkdir()
    assert folder_of_root("flows") == (None, Path("flows"))
    assert folder_of_root("acme=flows/acme") == ("acme", Path("flows/acme"))
    assert folder_of_root("acme=x=y") == ("acme", Path("x=y"))
    # A folder whose name has the sign.
    assert folder_of_root(str(odd)) == (None, odd)


@pytest.mark.parametrize("wrong", ["=flows", "acme="])
def test_root_without_tenant_or_folder_is_refused(wrong: str) -> None:
    with pytest.raises(InputError, match="TENANT=FOLDER"):
        folder_of_root(wrong)
