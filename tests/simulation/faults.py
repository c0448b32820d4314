"""What can go wrong, each as a named probability drawn from the seed."""

from dataclasses import dataclass, fields, replace
from random import Random


class Killed(BaseException):
    """SIGKILL in the middle of a step. No handler of the shell may see it as an error."""


@dataclass(frozen=True)
class Faults:
    """Per chance: one tick of the world, one call of a port, one record sent."""

    kill: float = 0.002
    """a process ends between two steps"""
    die_at_port: float = 0.0015
    """a process ends inside a port call, maybe in the middle of it"""
    pause: float = 0.002
    """a process is frozen, often for longer than the takeover"""
    cut: float = 0.0015
    """a process loses the network for a while"""
    stranger: float = 0.01
    """somebody else writes to the journal"""
    new_leader: float = 0.001
    """the broker's clock steps within its bound"""
    wipe: float = 0.2
    """the tables of a killed process are gone"""
    lose_tail: float = 0.3
    """the last batches of a killed process are gone"""
    slow_report: float = 0.05
    """the entry is readable long before its writer knows"""
    lost_report: float = 0.01
    """the entry landed, and its writer never hears of it"""
    lost_append: float = 0.01
    """the entry did not land, and its writer never hears of it"""
    late_landing: float = 0.01
    """the entry lands after its writer gave up"""
    reader_lag: float = 0.3
    """a reader sees only a part of what is there"""
    lost_pulse: float = 0.1
    """a pulse never arrives"""
    failed_publish: float = 0.002
    """a public record is refused"""
    slow_partition: float = 0.003
    """a public partition stops for long"""
    repeat: float = 0.1
    """a client sends the same record twice"""
    unreadable: float = 0.05
    """an input is not a word"""
    blackout: float = 0.0003
    """every scheduler is frozen, for longer than a lease"""
    member_crash: float = 0.0015
    """a worker process dies with all that it knew, and begins a new life"""
    member_stop: float = 0.0008
    """a worker process is frozen, often past its leases"""
    lost_heartbeats: float = 0.0008
    """a member's heartbeats, and nothing else of it, are lost for a while"""
    old_names: float = 0.3
    """a new process still names the leases of the one before it"""
    late_heartbeat: float = 0.02
    """a heartbeat comes long after it was sent"""
    lost_result: float = 0.03
    """a result is never sent"""
    late_result: float = 0.05
    """a result comes long after the call"""
    late_usage: float = 0.1
    """what was used is told once more, beside the result"""
    ambiguous: float = 0.04
    """a worker cannot tell how its call ended"""
    failed_call: float = 0.08
    """a call fails, for good or for now"""
    throttle: float = 0.02
    """the provider does not take a call"""
    long_call: float = 0.08
    """a call takes its time, maybe longer than a lease"""
    claim_first: float = 0.2
    """a worker claims its lease before it starts"""
    blind: float = 0.2
    """an unknown outcome is looked up by nobody"""
    operator: float = 0.3
    """a person acts where no program can"""

    @classmethod
    def drawn(cls, random: Random) -> "Faults":
        """Each world has its own weather: some faults often, some never."""
        weather = {
            field.name: min(0.9, getattr(cls(), field.name) * random.choice((0, 0.3, 1, 1, 3)))
            for field in fields(cls)
        }
        return replace(cls(), **weather)

    @classmethod
    def none(cls) -> "Faults":
        return cls(**dict.fromkeys((field.name for field in fields(cls)), 0.0))
