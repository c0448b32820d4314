"""What the door is told besides: where it listens, whom it lets in, how long it waits."""

from pathlib import Path

from pydantic import Field

from projections.settings import FollowerSettings


class ApiSettings(FollowerSettings):
    """`EVENHAND_<NAME>`, else the file's value, else the default; the follower's among them."""

    api_host: str = "127.0.0.1"
    """Loopback, so that only who means to opens the door to a network, behind TLS of its own."""
    api_port: int = Field(default=8080, ge=0, le=65_535)
    """Port of the interface."""
    keys_file: Path | None = None
    """Hashed API keys; `<data_dir>/keys.jsonl` if it is not set. Without it nothing starts."""
    api_admitted_wait_ms: int = Field(default=250, ge=0, le=30_000)
    """How long a submission waits for its admission when the client does not say."""
    api_at_least_wait_ms: int = Field(default=2_000, ge=0, le=30_000)
    """How long a read waits for what the client demands to be reflected."""

    @property
    def keys_path(self) -> Path:
        """Where the keys are."""
        return self.keys_file or self.data_dir / "keys.jsonl"
