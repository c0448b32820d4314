"""Environment to frozen values, once: where the door listens, and whom it lets in."""

from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from projections.settings import FollowerSettings


class ApiSettings(BaseSettings):
    """`EVENHAND_<NAME>` in the environment; the follower's settings are read beside it."""

    model_config = SettingsConfigDict(env_prefix="EVENHAND_", frozen=True, extra="ignore")

    follower: FollowerSettings = Field(default_factory=FollowerSettings)
    api_host: str = "127.0.0.1"
    """Loopback, so that only who means to opens the door to a network, behind TLS of its own."""
    api_port: int = 8080
    keys_file: Path | None = None
    """Hashed API keys; `<data_dir>/keys.jsonl` if it is not set. Without it nothing starts."""
    api_admitted_wait_ms: int = Field(default=250, ge=0, le=30_000)
    api_at_least_wait_ms: int = Field(default=2_000, ge=0, le=30_000)

    @property
    def keys_path(self) -> Path:
        """Where the keys are."""
        return self.keys_file or self.follower.data_dir / "keys.jsonl"
