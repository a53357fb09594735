#!/usr/bin/env python3
"""Simulates how long one commit takes to a million watchers over the servers of a cluster.

Usage: python3 Tests/Benchmarks/fan_out.py [--watchers 1000000] [--nodes 10,53,100] [--busy 0.3] [--seed 1]

It takes what one server was measured to need, on one of two cores of 2.5 GHz with the clients on the same machine: the page
Benchmarks says how. The servers are independent of each other, so that the simulation adds what differs between them:
when each has the commit, how many watchers it has, and what else it does meanwhile.
"""

import argparse
import random

# Measured: the last of 10,000 long-polls on one server is answered after 119 ms, the last of 10,000 streams has its event
# after 100 ms; a long-poll costs 20 us with the request that follows it. A watcher occupies up to 6 KiB.
ANSWER, NEXT_POLL, EVENT = 11.9e-6, 8.1e-6, 10e-6
WATCHER_BYTES = 6 << 10
# Measured on loopback under 2,000 commits a second, from the acknowledgement at the writer to a stream of another server: a
# tenth of a millisecond as a rule, one in a hundred up to 1 ms; an append before it 3 ms.
VISIBLE, VISIBLE_LATE, LATE_SHARE, APPEND = 0.1e-3, 1e-3, 0.01, 3e-3
# From one machine to another and back.
ROUND_TRIP = 0.5e-3


def server_times(chance, watchers, cost, busy):
    """When each watcher of one server has its answer, from the moment at which the writer has put the commit."""
    now = VISIBLE_LATE if chance.random() < LATE_SHARE else chance.expovariate(1 / VISIBLE)
    for _ in range(watchers):
        # Other requests have their share of the thread, in pieces of ten answers.
        if chance.random() < 0.1 * busy / (1 - busy):
            now += 10 * cost
        now += cost
        yield now + ROUND_TRIP / 2


def simulate(watchers, nodes, cost, busy, seed):
    """The median and the last time of all watchers."""
    chance = random.Random(f"{seed}/{nodes}/{cost}")
    counts = [watchers // nodes] * nodes
    # A balancer gives each connection to a server by chance; the spread is that of a binomial distribution.
    spread = int((watchers / nodes) ** 0.5)
    for index in range(0, nodes - 1, 2):
        moved = round(chance.gauss(0, spread))
        counts[index], counts[index + 1] = counts[index] + moved, counts[index + 1] - moved
    times = sorted(APPEND + time for count in counts for time in server_times(chance, count, cost, busy))
    return times[len(times) // 2], times[-1]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--watchers", type=int, default=1_000_000)
    parser.add_argument("--nodes", default="10,53,100,300", help="the numbers of servers, with commas between")
    parser.add_argument("--busy", type=float, default=0.3, help="the share of its thread that a server spends otherwise")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()

    print("| servers | watchers of each | their memory | long-polls: half, last | streams: half, last | commits/s, each seen |")
    print("| --- | --- | --- | --- | --- | --- |")
    for nodes in map(int, options.nodes.split(",")):
        each = -(-options.watchers // nodes)
        cells = [f"{nodes}", f"{each:,}", f"{each * WATCHER_BYTES / (1 << 20):.0f} MiB"]
        for cost in (ANSWER, EVENT):
            half, last = simulate(options.watchers, nodes, cost, options.busy, options.seed)
            cells.append(f"{1000 * half:.0f} ms, {1000 * last:.0f} ms")
        cells.append(f"{(1 - options.busy) / (each * (ANSWER + NEXT_POLL)):.1f}")
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
