"""Every fixed bound with its reason; what operators may change is in `CellConfig`, by events."""

from schemas.units import NANOS_PER_MILLI, Millis, Tokens

NAME_BYTES_MAX = 200
"""Names are keys of rows and records, and most events repeat some; longer ones are mistakes."""
DETAIL_CHARS_MAX = 400
"""What is wrong is told in a sentence, and the rest of a sentence that quotes much is cut off."""
REFERENCE_BYTES_MAX = 2_048
SUBMISSIONS_PER_ENTRY_MAX = 128
GRANTS_PER_ENTRY_MAX = 128
TIMERS_PER_ENTRY_MAX = 512
"""The largest that `CellConfig` may ask for: with all of them at once an entry fits a record."""
TOKENS_MAX = Tokens(1_000_000_000)
"""No model takes a context of this size; beyond it an amount is a mistake, not a cost."""
WEIGHT_MAX = 1_000_000
"""Keys are divided by weights; within this range integers lose nothing that matters (R26)."""
PRICE_MAX = 10**9
"""A thousand of any currency for a million tokens, or a call: what a call can cost stays far below
`LIMIT_MAX`, and sums of it within 64 bits."""
USED_MAX = 10**18
"""In a window that counts so much later usage is refused: sums of reports stay within 64 bits."""
LIMIT_MAX = 10**15
"""Above any provider's limit, span and count; keeps instants and products within 64 bits."""
WINDOW_MS_MAX = Millis(366 * 86_400_000)
"""No provider counts over more than a year."""
RESETS_MAX = 64
"""Later resets of a window: a zone that changes its clocks twice a year needs 22 in ten years."""
COST_NS_MAX = WINDOW_MS_MAX * NANOS_PER_MILLI
"""No call costs more than all of the longest window; a broken figure must not overflow an event."""
VISIT_MAX = 2**62
"""Cost of one visit under deficit round robin: the largest weight times the largest cost has more
than the 64 bits of a row."""
BUCKETS_PER_WINDOW = 256
"""Exits are rounded up to W/256: 0.4 % of the budget for bounded state (R48)."""
BUCKET_MS_MIN = Millis(1)
PACE_PERCENT = 10
"""Of a limit at once, the rest at the window's own rate: beside a greedy tenant one of 1 % then
waits seconds, not a minute, for less than 1 % of the budget (scheduling.md section 2)."""
PACED_WINDOW_MS_MAX = Millis(600_000)
"""Longer windows have no pace by themselves: nobody wants to wait hours for what a day allows."""
RHO_PPM = 200
"""Slew of the entry time and drift of the host's clock (scheduling.md section 5)."""
CLOCK_SPREAD_MS = Millis(21)
"""Spread of the broker clock's estimate; with `clock_bound_ms` the takeover term."""
FRONT_MAX = 32
"""Operations of a queue whose order is kept in memory; one scan refills them."""
TIMERS_NEAR = 1_024
"""Timers kept in memory; one scan refills them."""
NOT_SENT_MAX = 32
"""Accepted starts that led to no call before the operation is given up."""
RESULT_DIGEST_BYTES = 8
"""Tells a repeated result from another one; kept for every operation up to the guard's horizon."""
SPEAKERS_NEAR = 4_096
"""Digests of members kept in memory, so that hardly any lifecycle pays for one."""
EARLY_CANCELS_MAX = 10_000
"""Cancellations remembered ahead of their submissions; more are noise."""
PARKED_PER_ENTRY_MAX = 64
"""Parked operations looked at again by one entry after a configuration change."""
HINT_QUEUES_MAX = 8
"""Queues of a tenant that a refusal looks at for its hint; a flood of refusals must stay cheap."""
HOLD_SHARE = 8
"""The estimate of a call's hold moves by an eighth of its error (scheduling.md section 1)."""
LIVES_OVER_MAX = 1_024
"""Lives of members remembered after their end, so that a join that comes again is refused."""
PLACES_MAX = 1_024
"""Places of one member of pool self; a process that runs more calls at once runs two members."""
DIMENSIONS_MAX = 16
"""Dimensions of one level; every grant looks at all of them."""
RENEWALS_MAX = PLACES_MAX
"""Leases that one heartbeat may name; no member holds more."""
RENEWALS_REFUSED_MAX = 8
"""Leases that one heartbeat is told not to hold; the next one is told of the others."""
LEASES_ENDED_MAX = 64
"""Leases of one member that one decision ends; the rest follow while the entry has room."""
EVIDENCE_MAX = 16
"""Steps of reconciliation recorded of one attempt; a look-up without end tells nothing more."""
EVIDENCE_DIGEST_BYTES = 8
"""Tells a repeated piece of evidence; kept while the attempt is uncertain."""
BACKOFF_MS_MAX = Millis(3_600_000)
"""Doubling ends here: who has waited an hour should not wait a day."""
COOLDOWN_MS_MAX = Millis(86_400_000)
"""A provider that asks for more than a day of silence is misread, or needs an operator."""
COUNT_MAX = 10**9
"""Above any sensible count; keeps sums of them within 64 bits."""
LEASE_MS_MIN = Millis(500)
"""A heartbeat takes its way and its turn; a shorter lease ends by accident."""
TOOLS_MAX = 64
"""Tools of a run's allow-list, repeated in its admission and each of its grants."""
SKIPPED_MAX = 64
"""Heads of a domain remembered as passed over; whose turn comes first stays first until it goes."""
