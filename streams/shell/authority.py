"""Who decides for a cell: a standby that takes over after silence, an owner that steps down.

            fresh end              silence
    RESTORING ────► STANDBY ───────────────────► CLAIMING
        ▲              ▲    lost, or no report      │ │
        │              └────────────────────────────┘ │ its takeover is the head
        │                  step down                  ▼
        └────────────────────────────────────────── OWNER

    from each of them: CLOSED when asked, HALTED with an alert when going on would be wrong

Safety rests on the chain rule alone; pulses, silence and this machine only decide who tries.
"""

from enum import Enum

from streams.shell.cell import Cell, StepDown
from streams.shell.inputs import InputTrimmed
from streams.shell.journal import JournalError
from streams.shell.ports import Ports
from streams.shell.restore import Fold, Restore
from streams.shell.standby import Standby
from streams.shell.tables import TablesInUse, WrongStore
from streams.shell.takeover import Claim, Outcome


class Role(Enum):
    """What the process is for its cell now."""

    RESTORING = "restoring"
    STANDBY = "standby"
    CLAIMING = "claiming"
    OWNER = "owner"
    HALTED = "halted"
    CLOSED = "closed"


_ENDS = frozenset({Role.HALTED, Role.CLOSED})
LEGAL: dict[Role, frozenset[Role]] = {
    Role.RESTORING: _ENDS | {Role.STANDBY},
    Role.STANDBY: _ENDS | {Role.CLAIMING},
    Role.CLAIMING: _ENDS | {Role.STANDBY, Role.OWNER},
    Role.OWNER: _ENDS | {Role.RESTORING},
    Role.HALTED: frozenset({Role.CLOSED}),
    Role.CLOSED: frozenset(),
}
"""Which role may follow which."""

HALTS = (JournalError, InputTrimmed, TablesInUse, WrongStore)
"""A broken world: nothing that this process does would mend it."""


class Authority:
    """One process's part in one cell; `step` goes on by one short step and never waits long."""

    def __init__(self, ports: Ports) -> None:
        self._ports = ports
        self.role = Role.RESTORING
        self._begin()

    def _begin(self) -> None:
        self._restore = Restore(self._ports)
        self._pulses = self._ports.pulses()
        self._standby: Standby | None = None
        self._claim: Claim | None = None
        self.cell: Cell | None = None

    @property
    def fold(self) -> Fold | None:
        """Where this process stands in the journal; None before the tables are open."""
        return self._restore.fold

    def step(self) -> None:
        """Go on by one short step of the present role.

        Raises:
            JournalError, InputTrimmed, TablesInUse, WrongStore: HALTED. An operator must look.
        """
        try:
            match self.role:
                case Role.RESTORING:
                    self._restoring()
                case Role.STANDBY:
                    self._standing_by()
                case Role.CLAIMING:
                    self._claiming()
                case Role.OWNER:
                    self._owning()
                case Role.HALTED | Role.CLOSED:
                    return
        except HALTS as error:
            self._ports.watch.alert("halted", f"{type(error).__name__}: {error}")
            self._enter(Role.HALTED)
            self._let_go()
            raise

    def close(self) -> None:
        """End in order: let go of everything; what is owed, the next owner publishes."""
        if self.role is not Role.HALTED:
            self._let_go()
        self._enter(Role.CLOSED)

    def _restoring(self) -> None:
        fold, reader = self._restore.fold, self._restore.reader
        if not self._restore.step() or fold is None or reader is None:
            return
        self._pulses.read(0)
        if self._pulses.caught_up():
            self._standby = Standby(self._ports, fold, reader, self._pulses)
            self._enter(Role.STANDBY)

    def _standing_by(self) -> None:
        standby = self._standby
        assert standby is not None, "Expected a standby"
        standby.read_journal()
        standby.read_pulses()
        if standby.may_claim():
            self._enter(Role.CLAIMING)
            self._claim = Claim(self._ports, standby)

    def _claiming(self) -> None:
        claim, standby = self._claim, self._standby
        assert claim is not None, "Expected a claim under way"
        assert standby is not None, "Expected the standby that claims"
        match claim.step():
            case Outcome.OPEN:
                return
            case Outcome.LOST:
                standby.wait_anew()
                self._enter(Role.STANDBY)
            case Outcome.WON:
                self.cell = claim.begin()
                self._enter(Role.OWNER)

    def _owning(self) -> None:
        assert self.cell is not None, "Expected the loop of this term"
        try:
            self.cell.step()
        except StepDown as error:
            self._ports.watch.alert("stepped_down", str(error))
            self._let_go()
            self._enter(Role.RESTORING)
            self._begin()

    def _enter(self, role: Role) -> None:
        assert role in LEGAL[self.role], f"Expected a role after {self.role}, but got {role}"
        self.role = role
        head = None if self.fold is None else self.fold.head
        self._ports.watch.role(role.value, 0 if head is None else head.epoch)

    def _let_go(self) -> None:
        """Drop the memory and purge the producers; abandoned appends may still land."""
        if self.cell is not None:
            self.cell.close()
        if self._standby is not None:
            self._standby.gear.close()
        else:
            self._pulses.close()
        self._restore.close()
