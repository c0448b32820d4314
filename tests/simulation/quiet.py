"""A watcher that keeps the alerts and says nothing."""

from streams.shell.watch import Alert, EntryMeasures


class Quiet:
    """`Watch` for tests."""

    def __init__(self) -> None:
        self.alerts: list[tuple[Alert, str]] = []
        self.roles: list[str] = []
        self.entries: list[EntryMeasures] = []

    def role(self, name: str, epoch: int) -> None:
        self.roles.append(name)

    def progress(self, offset: int, end: int) -> None:
        pass

    def entry(self, measures: EntryMeasures) -> None:
        self.entries.append(measures)

    def alert(self, name: Alert, detail: str) -> None:
        self.alerts.append((name, detail))
