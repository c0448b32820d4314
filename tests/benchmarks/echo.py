"""The other end of two hops: a process that sends every record of one topic to another."""

import sys

from tests.benchmarks import raw


def main(bootstrap: str, heard: str, said: str) -> None:
    """Until it is ended from outside."""
    inbound = raw.consumer(bootstrap, heard)
    outbound = raw.producer(bootstrap)
    outbound.produce(said, b"ready")
    while True:
        message = inbound.poll(1.0)
        if message is not None and not message.error():
            outbound.produce(said, message.value())
        outbound.poll(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
