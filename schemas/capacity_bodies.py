"""What the HTTP interface tells of what is shared: tenants, queues, budgets, ledgers, members."""

from .body import Instant, Reply


class Tenant(Reply):
    """One tenant: what it was told, what it has in the cell now, and what it used."""

    tenant: str
    weight: int
    offered: int
    """Submissions decided: admitted + rejected + duplicates + conflicts."""
    admitted: int
    rejected: int
    duplicates: int
    conflicts: int
    refusals: dict[str, int]
    """Rejections by code."""
    waiting: int
    waiting_bytes: int
    waiting_count_max: int
    waiting_bytes_max: int
    parked: int
    granted: int
    leased: int = 0
    started: int
    unknown: int = 0
    """Operations whose newest attempt started, and nobody knows whether or how it ended."""
    succeeded: int
    failed: int
    cancelled: int
    expired: int
    dead: int = 0
    unknown_closed: int = 0
    grants: int
    starts: int
    operations_started: int = 0
    retry_amplification: float | None = None
    """starts / operations_started; null before the first start."""
    settled: int
    forfeited: int = 0
    tokens_reserved: int
    """Over all settled and forfeited attempts."""
    tokens_used: int
    """Charged for those; what nobody knows is charged as reserved."""
    estimate_error: float | None = None
    """(reserved - used) / used, over the calls whose use is known; null without any."""
    cost_ns: int
    """Cost charged for those, in nanoseconds of budget."""
    suspected_new_keys: int = 0
    """Admitted payloads that were admitted under another key shortly before: a client that makes a
    new key for each try."""
    residue: int = 0
    """Operations admitted that are neither live nor over: anything but 0 is a fault."""


class Tenants(Reply):
    """All tenants that the credential may see, by name."""

    items: list[Tenant]


class Queue(Reply):
    """One queue of a tenant: first in, first out."""

    lane: str
    pool: str
    """The pool, or `self:<member>`, since each process of pool `self` has queues of its own."""
    domain: str
    waiting: int
    waiting_bytes: int
    head: str | None = None
    """The operation whose turn is next."""
    head_admitted_at: Instant | None = None
    deferred_on: "Binding | None" = None
    """What the head was last told to wait for; null once something was granted from here."""


class Queues(Reply):
    """A tenant's queues."""

    tenant: str
    items: list[Queue]


class Binding(Reply):
    """What stood in the way."""

    domain: str
    level: str
    dimension: str
    held_by: str | None = None
    """budget: no room. pace: room, but too fast. reserve: of bulk, which must leave it free. saver:
    another head, whose cost must stay free. far: it would save for too long, so that it comes first
    at `not_before`."""
    not_before: Instant | None = None


class DimensionUse(Reply):
    """One dimension at one level; its amounts are in its unit, of money in millionths."""

    dimension: str
    unit: str
    kind: str
    limit: int
    window_ms: int | None = None
    held: int
    """Reserved by grants that have not started."""
    in_use: int
    """Reserved by calls that have started and are not settled."""
    unknown: int = 0
    """The part of `in_use` held by calls whose outcome is unknown."""
    counted: int
    """What counts against the limit now, the charges that have not left the window among it."""
    free: int
    """limit - counted; negative after a limit was lowered below use."""
    currency: str | None = None
    """Of unit money."""


class Reserve(Reply):
    """What lane bulk leaves free in a domain, and what became of that."""

    percent: int
    taken: dict[str, int]
    """Grants that took of it, since bulk was owed its floor, by tenant."""
    held_back: dict[str, int]
    """How often it was recorded that nothing else held bulk back, by dimension; sampled."""


class Saver(Reply):
    """A large head for whose whole cost the others of its lane and below leave room."""

    operation: str
    tenant: str
    lane: str
    since: Instant
    skips: int
    """How often others had been granted before it by then."""
    tokens: int
    """That are kept free for it, beside one request and one slot."""


class Budget(Reply):
    """One level of one budget domain; the tenant is null at the domain's own level."""

    domain: str
    tenant: str | None = None
    policy: str | None = None
    config_version: int | None = None
    paused: str | None = None
    """Why nothing is granted at present: throttled, quota_exhausted, reauthentication_required."""
    paused_until: Instant | None = None
    """Null beside a reason: until an operator configures the domain again."""
    outcomes: dict[str, int] | None = None
    """Results by class, `unknown` among them; of a domain, for operators and auditors."""
    bulk_reserve: Reserve | None = None
    """Of a domain, for operators and auditors."""
    saver: Saver | None = None
    """Of a domain, for operators and auditors, and for the saver's own tenant."""
    dimensions: list[DimensionUse]


class Budgets(Reply):
    """Levels of budget domains that the credential may see."""

    items: list[Budget]


class Bound(Reply):
    """What was in the way of a domain's work in one minute."""

    level: str
    dimension: str | None = None
    """Null while the whole domain paused."""
    held_by: str
    """As in `Binding`; or why it paused: throttled, quota_exhausted, reauthentication_required, or
    limit_zero, by the configuration of this dimension."""
    since: Instant
    until: Instant
    """The first and the last instant in the minute at which that is known."""
    samples: int
    """How often it was recorded; 0 for a pause."""
    tenants: list[str]
    """Whose heads the samples named, the first eight."""


class BoundMinute(Reply):
    """One minute of entry time, the most telling first: pauses, then bindings as they came."""

    minute: Instant
    """When it began."""
    bound: list[Bound]
    further: int = 0
    """Samples of still other dimensions, of which no more is kept."""


class BoundMinutes(Reply):
    """Minutes in which something bound, oldest first.

    The owner samples who could not go, and why, when it looks at the domain, and at most once in
    `deferral_sample_ms`. A minute that is not here is one in which nobody was held back, or nothing
    changed since the last sample.
    """

    domain: str
    items: list[BoundMinute]


class Entitlement(Reply):
    """Operations, each counted once however often it is tried."""

    held: int
    """Granted, and not started yet."""
    committed: int
    """Started at least once."""
    released: int
    """Cancelled before any start."""
    expired: int
    """Over before any start, in whatever other way."""


class Pacing(Reply):
    """Started calls, each counted, and what they were charged."""

    grants: int
    starts: int
    settled: int
    returned: int
    """Reported or found never to have been made: nothing was charged."""
    forfeited: int
    """Closed without knowing: charged as reserved."""
    tokens_reserved: int
    tokens_charged: int
    tokens_corrected: int
    """The part of `tokens_charged` that came after settlement; negative for a refund."""
    overdraft_tokens: int
    """Use above the reservations."""
    cost_ns: int
    money_micros: int
    """What those calls were charged in millionths of `currency`, corrections included."""
    currency: str | None = None
    """Null where no prices are configured."""


class Ledger(Reply):
    """The two ledgers of a tenant in one domain."""

    domain: str
    entitlement: Entitlement
    pacing: Pacing


class Ledgers(Reply):
    """A tenant's ledgers, by domain."""

    tenant: str
    items: list[Ledger]


class Member(Reply):
    """One process of a pool."""

    member: str
    member_epoch: str
    pool: str
    tenant: str | None = None
    state: str
    """joining, active, suspect, draining or left."""
    places: int
    granted: int
    leased: int = 0
    started: int
    seen_at: Instant


class Members(Reply):
    """Members of all pools, by name."""

    items: list[Member]
