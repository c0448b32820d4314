"""What an operator sets: read once from environment and file, checked, and never changed after.

No decision reads a setting; what decides is configuration, which comes as events (R156).
"""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from schemas.ids import CellId
from schemas.topics import PARTITIONS
from streams.shell.ports import Timing

FILE_VARIABLE = "EVENHAND_CONFIG"
"""Names the TOML file whose values hold where the environment is silent."""

_NAME = Field(pattern=r"^[A-Za-z0-9_-]+$", max_length=64)
"""A part of a topic's name, and of positions: neither dots nor colons."""


class Settings(BaseSettings):
    """Settings of the write side: `EVENHAND_<NAME>`, else the file's value, else the default.

    Raises:
        pydantic.ValidationError: names every value that is wrong; nothing starts.
    """

    model_config = SettingsConfigDict(
        env_prefix="EVENHAND_",
        env_nested_delimiter="__",
        frozen=True,
        use_attribute_docstrings=True,
        # The file and the environment are shared with the programs of the read side.
        extra="ignore",
    )

    bootstrap: str = "127.0.0.1:9092"
    """Brokers to begin with, `host:port`, separated by commas."""
    prefix: Annotated[str, _NAME] = "evenhand"
    """First part of every topic's name."""
    cell: Annotated[CellId, _NAME] = CellId("main")
    """The cell that this process schedules."""
    data_dir: Path = Path("data")
    """Where tables are kept. They may be lost; two processes must not share them."""
    timing: Timing = Timing()
    """Spans of the engine, for example EVENHAND_TIMING__TAKEOVER_MS."""
    partitions: Annotated[int, Field(ge=1, le=1_000)] = PARTITIONS
    """Of every input and output topic; only read when they are created, and fixed for ever."""
    replication: Annotated[int, Field(ge=1, le=9)] = 1
    """Copies of every partition; only read when topics are created. Three in production."""
    metrics_host: str = "127.0.0.1"
    """Address on which metrics are served."""
    metrics_port: Annotated[int, Field(ge=0, le=65_535)] | None = None
    """Port of the metrics; none are served without it."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """Least weight of a log line."""

    @property
    def tables_dir(self) -> Path:
        """Where the rows of this cell are."""
        return self.data_dir / "tables" / f"{self.prefix}.{self.cell}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the library's signature
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - as above
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then environment, then file."""
        file = os.environ.get(FILE_VARIABLE)
        if not file:
            return init_settings, env_settings
        # A file that is named is there: without it the defaults would hold, and nobody would know.
        read = TomlConfigSettingsSource(settings_cls, Path(file).resolve(strict=True))
        return init_settings, env_settings, read
