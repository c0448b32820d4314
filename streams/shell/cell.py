"""The loop of one owner: from inputs taken to copies published, in six numbered steps.

1. Take inputs, submissions last; with nothing to do, show life and look for a successor.
2. Set the time, which follows the broker's append clock and never goes back.
3. Decide and fold: each input, due timers, one dispatch pass.
4. Append the entry and wait for its place; elsewhere than expected, let the chain rule decide.
5. Flush all changed rows and the position in one batch.
6. Publish what members wait for, then measure; the rest goes out in the next 4, or idle.

Nothing of an entry leaves before 4 has ended (requirements R163), so a process that stops between
any two of them loses nothing: whoever comes next folds the journal and publishes from `published`.
Each step is a method and names the next one; none waits longer than a few milliseconds.
"""

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from schemas.codec import encode
from schemas.journal import Entry, EntryEvent
from schemas.topics import ENTRY_BYTES_MAX
from streams.core.decider import CORE_VERSION, Acted, step
from streams.shell.alarms import Alarms
from streams.shell.backpressure import Backpressure
from streams.shell.clock import BrokerClock, Reading
from streams.shell.copies import copies, runs_of
from streams.shell.decided import Decided
from streams.shell.inputs import Place, Taken
from streams.shell.journal import AppendFailed, JournalError, JournalRecreated, Landing, Record
from streams.shell.life import Life, Replaced
from streams.shell.outbox import PublishFailed
from streams.shell.ports import Gear, Ports
from streams.shell.restore import Fold
from streams.shell.silence import Silence
from streams.shell.walk import Walk
from streams.shell.watch import EntryMeasures

IDLE_WAIT_MS = 5
"""Longest wait of a step for inputs. Idling costs 2 % of a core, at one millisecond 6 %."""
WAIT_MS = 5
"""Longest wait of a step for a report; reports end it early."""


class StepDown(Exception):
    """The term is over. Publish nothing more, drop memory and producers, start as a standby."""


class EntryTooLarge(JournalError):
    """A decision does not fit into one record. Stop with an alert: it would come again."""


class Cell:
    """One term of one owner, from its accepted takeover on.

    Args:
        fold: stands at the takeover; this loop alone goes on with it.
        gear: primed; its writer has appended the takeover and nothing else.
        clock: begun with the takeover, warm or cold.
        leader_epoch: of the takeover as read back, since reports carry none.
    """

    def __init__(
        self, ports: Ports, fold: Fold, gear: Gear, *, clock: BrokerClock, leader_epoch: int | None
    ) -> None:
        self._ports, self._fold, self._gear, self._clock = ports, fold, gear, clock
        self._leader_epoch = leader_epoch
        self._life = Life(ports, fold, pulses=gear.pulses, inputs=gear.inputs)
        self._silence = Silence(gear.inputs, fold.state, at_ms=ports.monotonic.now_ms())
        self._backpressure = Backpressure(gear.outbox, ports.timing, published=fold.published)
        self._alarms = Alarms(ports.watch, ports.timing)
        self._copies = partial(copies, cell=ports.cell, prefix=ports.prefix)
        self._announced = False
        self._taken: Sequence[Taken] = ()
        self._reading: Reading | None = None
        self._decided: Decided | None = None
        first, end = max(0, fold.published), fold.next_offset
        self._walk: Walk | None = Walk(ports.journal, head=None, first=first, end=end)
        gear.inputs.assign({Place(*place): n for place, n in fold.state.positions.items()})
        self._next: Callable[[], None] = self.publish_owed

    @property
    def next_step(self) -> str:
        """The name of the step that `step` would take now."""
        return self._next.__name__

    def step(self) -> None:
        """Take the next of the six steps; returns within a few milliseconds.

        Raises:
            StepDown: the term is over; nothing may be called but `close`.
            JournalRecreated, EntryTooLarge, InputTrimmed, FutureEntry: stop with an alert.
        """
        try:
            self._next()
        except (AppendFailed, PublishFailed, Replaced) as error:
            raise StepDown(str(error)) from error

    def publish_owed(self) -> None:
        """0. A new owner publishes everything after `published` again; readers drop repeats."""
        walk = self._walk
        assert walk is not None, "Expected the stretch that is owed"
        for record, entry in walk.step():
            self._gear.outbox.publish(record.offset, self._copies(entry, record.offset))
        if walk.is_done:
            self._close_walk()
            self._next = self.take
        else:
            self._rest(self._ports.monotonic.now_ms())

    def take(self) -> None:
        """1. Take inputs; with nothing to do, show life."""
        at_ms = self._ports.monotonic.now_ms()
        if self._backpressure.is_on(at_ms):
            self._rest(at_ms)
            return
        self._silence.before_take(at_ms)
        wait_ms = 0 if self._must_append(at_ms) else IDLE_WAIT_MS
        bounds = self._fold.state.bounds
        self._taken = self._gear.inputs.take(bounds.submissions_per_entry_max, wait_ms)
        at_ms = self._ports.monotonic.now_ms()
        self._silence.after_take(at_ms, len(self._taken))
        if self._taken or self._must_append(at_ms):
            self._next = self.set_time
        else:
            self._rest(at_ms)

    def set_time(self) -> None:
        """2. Read the clock that follows the broker's."""
        silence_ms = self._fold.state.bounds.silence_ms
        self._reading = self._clock.read(self._ports.monotonic.now_ms(), silence_ms)
        self._next = self.decide

    def decide(self) -> None:
        """3. Decide and fold into memory, which is worthless unless the entry is accepted."""
        state, head, reading = self._fold.state, self._fold.head, self._reading
        assert head is not None and reading is not None, "Expected a head and a time"  # noqa: PT018
        header = Entry(
            generation=head.generation,
            previous=head.offset,
            height=head.height + 1,
            epoch=head.epoch,
            owner=head.owner,
            takeover=False,
            time_ms=reading.time_ms,
            clock_shift_ms=reading.shift_ms,
            time_step_ms=reading.step_ms,
            published=self._backpressure.published,
            core_version=CORE_VERSION,
            state_hash=self._fold.state_hash,
            inputs=runs_of(self._taken),
            events=(),
        )
        elapsed_ms, step_ms = header.time_ms - state.now_ms, header.time_step_ms or 0
        silence_ms = self._silence.owed_ms(elapsed_ms, step_ms)
        state.begin(header)
        is_over = self._silence.is_over(self._ports.monotonic.now_ms())
        decided = step(state, self._taken, Acted(is_over, silence_ms))
        recorded = tuple(EntryEvent(cause=d.cause, body=encode(d.event)) for d in decided)
        entry = replace(header, events=recorded)
        value = encode(entry)
        if len(value) > ENTRY_BYTES_MAX:
            made = f"{len(self._taken)} inputs and {len(decided)} events made {len(value)}"
            raise EntryTooLarge(f"Expected at most {ENTRY_BYTES_MAX} bytes, but {made}")
        events = [one.event for one in decided]
        self._decided = Decided(entry=entry, events=events, images=state.drain(), value=value)
        self._next = self.append

    def append(self) -> None:
        """4a. Hand the entry to the journal: one in flight, never two.

        While it is on its way there is time for the copies: those of the entry before it that
        nobody waits for go out, its own are made ready.
        """
        decided = self._in_flight()
        decided.sent_ms = self._ports.monotonic.now_ms()
        self._gear.writer.send(decided.value)
        self._gear.outbox.send_rest()
        decided.outgoing = self._copies(
            decided.entry, self._fold.next_offset, events=decided.events
        )
        self._next = self.wait

    def wait(self) -> None:
        """4b. Wait for its place. Where expected: accepted. No answer: step down."""
        decided = self._in_flight()
        landing = self._gear.writer.landed(WAIT_MS)
        at_ms = self._ports.monotonic.now_ms()
        waited_ms = at_ms - decided.sent_ms
        if landing is None:
            if waited_ms > self._ports.timing.append_timeout_ms:
                raise StepDown(f"Expected a report of the append, but had none in {waited_ms} ms")
            return
        expected = self._fold.next_offset
        if landing.offset < expected:
            raise JournalRecreated(
                f"Expected the entry to land at {expected}, but it landed at {landing.offset}"
            )
        decided.landing, decided.append_ms = landing, waited_ms
        self._learn_time(decided, landing, at_ms)
        if landing.offset == expected:
            self._next = self.flush
            return
        end, head = landing.offset + 1, self._fold.head
        self._walk = Walk(self._ports.journal, head=head, first=expected, end=end)
        self._next = self.read_to_landing

    def read_to_landing(self) -> None:
        """4c. Landed elsewhere: it counts only if the chain rule ends with this very entry."""
        walk, landing = self._walk, self._in_flight().landing
        assert walk is not None and landing is not None, "Expected a landing"  # noqa: PT018
        walk.step()
        if not walk.is_done:
            return
        head = walk.head
        self._close_walk()
        decided = self._in_flight()
        if head is None or head.offset != landing.offset:
            raise StepDown(f"Expected {landing.offset} to be accepted, but the head is {head}")
        decided.outgoing = self._copies(decided.entry, landing.offset, events=decided.events)
        self._next = self.flush

    def flush(self) -> None:
        """5. All changed rows and the position, in one batch."""
        decided = self._in_flight()
        offset, append_ms = decided.landing or Landing(-1, 0)
        record = Record(offset, append_ms, self._leader_epoch, decided.value)
        self._fold.accept(decided.entry, record, decided.images)
        self._life.has_appended(self._ports.monotonic.now_ms())
        self._announced = True
        self._next = self.publish

    def publish(self) -> None:
        """6. Hand the copies over, of which deliveries go out; then tell whoever watches."""
        decided, offset = self._in_flight(), self._fold.next_offset - 1
        self._gear.outbox.publish(offset, decided.outgoing)
        self._ports.watch.entry(
            EntryMeasures(
                offset=offset,
                height=decided.entry.height,
                bytes=len(decided.value),
                inputs=len(self._taken),
                events=len(decided.events),
                append_ms=decided.append_ms,
                lag_entries=self._gear.outbox.lag()[0],
            )
        )
        self._decided = None
        self._next = self.take

    def _in_flight(self) -> Decided:
        assert self._decided is not None, f"Expected an entry on its way in {self.next_step}"
        return self._decided

    def _must_append(self, at_ms: int) -> bool:
        """Whether an entry is due even without inputs."""
        state = self._fold.state
        if not self._announced or state.dirty or self._clock.is_behind(state.bounds.silence_ms):
            return True
        due_ms = state.next_due_ms
        if due_ms is None or due_ms > self._clock.now_ms(at_ms):
            return False
        return self._silence.is_over(at_ms)

    def _rest(self, at_ms: int) -> None:
        """With nothing to decide: publish what is left, and show life."""
        self._gear.outbox.send_rest()
        stalled_ms = self._backpressure.stalled_ms(at_ms)
        self._alarms.stalled(at_ms, stalled_ms)
        self._life.show(at_ms, self._clock.now_ms(at_ms), stalled_ms=stalled_ms)

    def _learn_time(self, decided: Decided, landing: Landing, at_ms: int) -> None:
        jump_ms = self._clock.report(
            sent_ms=decided.sent_ms, at_ms=at_ms, append_ms=landing.append_ms
        )
        self._alarms.appended(
            at_ms,
            append_ms=decided.append_ms,
            jump_ms=jump_ms,
            bound_ms=self._fold.state.bounds.clock_bound_ms,
            is_deaf=self._clock.is_deaf(at_ms),
        )

    def _close_walk(self) -> None:
        if self._walk is not None:
            self._walk.close()
        self._walk = None

    def close(self) -> None:
        """Let go of readers; fold and gear belong to the authority."""
        self._close_walk()
        self._life.close()
