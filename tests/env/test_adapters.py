"""Test what the adapters to other libraries say if a library is missing."""

from __future__ import annotations

import importlib
import sys

import pytest

LIBRARIES = {
    "sb3": ("stable_baselines3", "sb3-contrib"),
    "open_spiel": ("pyspiel", "open_spiel"),
}


@pytest.mark.parametrize("adapter", LIBRARIES)
def test_a_missing_library_raises_with_its_name(
    adapter: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    library, package = LIBRARIES[adapter]
    for name in [name for name in sys.modules if name.split(".")[0] == library]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.delitem(sys.modules, f"bao_env.adapters.{adapter}", raising=False)
    with pytest.raises(ModuleNotFoundError) as caught:
        importlib.import_module(f"bao_env.adapters.{adapter}")
    notes = " ".join(caught.value.__notes__)
    assert f"bao_env.adapters.{adapter} needs" in notes and "pip install" in notes
    assert package in notes
