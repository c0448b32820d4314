"""What a reader of a cell is told: read once from environment and file, and never changed after."""

import os
from pathlib import Path

from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from schemas.ids import CellId
from schemas.topics import Topic, full_name

FILE_VARIABLE = "EVENHAND_CONFIG"
"""Names the TOML file, shared with the write side, that holds where the environment is silent."""


class FollowerSettings(BaseSettings):
    """`EVENHAND_<NAME>`, else the file's value, else the default.

    Raises:
        pydantic.ValidationError: names every value that is wrong; nothing starts.
    """

    model_config = SettingsConfigDict(
        env_prefix="EVENHAND_", frozen=True, extra="ignore", use_attribute_docstrings=True
    )

    bootstrap: str = "127.0.0.1:9092"
    """Brokers to begin with, `host:port`, separated by commas."""
    prefix: str = "evenhand"
    """First part of every topic's name."""
    cell: CellId = CellId("main")
    """The cell that this process follows."""
    data_dir: Path = Path("data")
    """Where views are kept, unless `views_dir` says otherwise."""
    views_dir: Path | None = None
    """Directory of this process's own views. They may be lost; two processes must not share it."""

    @property
    def journal(self) -> str:
        """Full name of the journal topic."""
        return full_name(self.prefix, self.cell, Topic.JOURNAL)

    @property
    def views_path(self) -> Path:
        """Where the views of this cell are."""
        return self.views_dir or self.data_dir / "views" / f"{self.prefix}.{self.cell}"

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
