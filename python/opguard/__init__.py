"""opguard: what instrumented sources import. `og(id, operand)` stands for the operand during one operator."""

from opguard._rt import og

__all__ = ["og"]
