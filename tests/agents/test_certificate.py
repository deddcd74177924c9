"""Test that the proof that kujifunza is won holds by the literal rules.

refused/certificate.txt has proofs with errors.
"""

from __future__ import annotations

from bao_env import RULESETS
from tests.check_certificate import KUJIFUNZA
from tests.processes import python


def test_shipped_certificate_is_a_proof_without_the_engine() -> None:
    code = """
import sys
from tests.check_certificate import main
assert main([]) == 0
ours = ("bao_agents", "bao_env", "numba", "numpy")
print({name for name in sys.modules if name.partition(".")[0] in ours})
"""
    proved = "whoever begins kujifunza wins within 21 plies (559 positions, 562 replies)"
    assert python(code).stdout.splitlines() == [
        f"proved: {proved}",
        "set()",
    ]


def test_check_plays_by_the_rules_of_the_rule_set() -> None:
    ruleset = RULESETS["kujifunza"]
    for switch, value in vars(KUJIFUNZA).items():
        assert getattr(ruleset, switch) == value, switch
