"""Scenarios of the table of the contract, by the command that ends them and how it ends."""

from collections.abc import Callable

from specbench import Bench

from hw.params.commands import Completion
from hw.params.protocol import Opcode, Status

Scenario = Callable[[Bench], Completion]


class Scenarios(dict[tuple[Opcode, Status], Scenario]):
    """Scenarios, one for each pair of opcode and status."""

    def ends(self, opcode: Opcode, status: Status) -> Callable[[Scenario], Scenario]:
        """This scenario's last command is ``opcode``, and ends with ``status``."""

        def register(scenario: Scenario) -> Scenario:
            self[opcode, status] = scenario
            return scenario

        return register
