"""Work of pool self: each member is a place of its own, and all of them stand in one order."""

from schemas.inputs import TenantBudget
from tests.support import cells as s
from tests.support import core as c


def cell_of(members, *dimensions, budgets=()):
    """Members of pool self of tenant a, all with a free place."""
    cell = s.cell(
        *(dimensions or (c.dimension("slots", 100),)),
        tenants=[c.tenant("a", budgets=budgets)],
        cell_bounds={"self_members_max": 10**6},
    )
    for member in members:
        cell.run(c.join(member, pool="self", tenant="a"), c.heartbeat(member))
    return cell


def asked(member, key, tokens=10):
    return c.submitted(
        "a", key, pool="self", member=member, prompt_tokens=tokens, output_tokens_max=0
    )


def members(events):
    return [grant.member for grant in s.grants(events)]


def stands(cell):
    """What the index of the lane holds, items and heads."""
    index = cell.state.config.domains["d"].lanes["interactive"]._index
    return len(index), sum(len(own) for own in index._heads.values())


def test_a_busy_member_holds_up_nobody_and_goes_on_when_it_is_free():
    cell = cell_of("kl")
    first, other = cell.run(asked("k", "1"), asked("k", "2"), asked("l", "3"))[-2:]
    assert (first.member, other.member) == ("k", "l")
    cell.run(c.start(first))
    assert members(cell.run(c.result(first))) == ["k"]


def test_a_member_that_comes_back_finds_its_work():
    cell = cell_of("k", c.dimension("slots", 0))
    cell.run(asked("k", "1"))
    cell.run(s.leave("k"))
    assert members(cell.run(c.domain(c.dimension("slots", 9)))) == []
    life = {"member_epoch": "e2"}
    cell.run(c.join("k", pool="self", tenant="a", **life))
    assert members(cell.run(c.heartbeat("k", "e2"))) == ["k"]


def test_whoever_takes_the_name_of_a_member_that_is_gone_gets_no_work_of_its_tenant():
    cell = cell_of("k", c.dimension("slots", 9))
    cell.run(c.domain(c.dimension("slots", 0)))
    cell.run(asked("k", "1"))
    cell.run(s.leave("k"))
    cell.run(c.domain(c.dimension("slots", 9)))
    other = {"pool": "self", "tenant": "b", "member_epoch": "e2"}
    cell.run(c.join("k", **other))
    assert members(cell.run(c.heartbeat("k", "e2"))) == []
    assert members(cell.run(c.submitted("b", "2", pool="self", member="k"))) == ["k"]
    assert s.same_as_followed(cell)


def test_where_own_caps_have_room_for_one_of_several_alike_heads_that_one_goes():
    cap = TenantBudget(domain="d", dimensions=(c.dimension("tokens", 1_100, window_ms=10**6),))
    cell = cell_of("kxyz", c.dimension("tokens", 10**6, window_ms=10**6), budgets=(cap,))
    assert members(cell.run(asked("k", "1", 30))) == ["k"]
    assert members(cell.run(asked("x", "2", 1_100), asked("y", "3", 1_080))) == []
    assert members(cell.run(asked("z", "4", 1_060))) == ["z"]


def test_of_several_alike_heads_of_which_one_finds_room_that_one_goes_and_names_the_older():
    cell = cell_of("kxy", c.dimension("tokens", 1_100, window_ms=10**6))
    assert members(cell.run(asked("k", "1", 30))) == ["k"]
    older = asked("x", "2", 1_100)
    (grant,) = s.grants(cell.run(older, asked("y", "3", 1_060)))
    assert (grant.member, grant.skipped) == ("y", c.id_of(older))


def test_nothing_is_kept_of_members_that_are_gone():
    cell = cell_of("k")
    sizes = set()
    for n in range(300):
        cell.run(c.join(f"m{n}", pool="self", tenant="a"), c.heartbeat(f"m{n}"))
        late = asked(f"m{n}", f"x{n}")
        grants = s.grants(cell.run(asked(f"m{n}", str(n)), late))
        cell.run(s.cancel(late), *map(c.start, grants))
        cell.run(*map(c.result, grants), s.leave(f"m{n}"))
        pools = cell.state.pools
        sizes.add(stands(cell)[0])
        assert (len(pools._waiting), len(pools._free)) == (0, 2)
    assert max(sizes) <= 100
    cell.run(asked("k", "last"))
    assert stands(cell)[1] <= 1
