"""Environment to frozen values, once: where the journal is, and where the views are kept."""

from pathlib import Path

from pydantic_settings import BaseSettings, SettingsConfigDict

from schemas.ids import CellId
from schemas.topics import Topic, full_name


class FollowerSettings(BaseSettings):
    """`EVENHAND_<NAME>` in the environment; two followers never share `views_dir`."""

    model_config = SettingsConfigDict(env_prefix="EVENHAND_", frozen=True, extra="ignore")

    bootstrap: str = "127.0.0.1:9092"
    prefix: str = "evenhand"
    cell: CellId = CellId("main")
    data_dir: Path = Path("data")
    views_dir: Path | None = None
    """Where this process keeps its views; below `data_dir` if it is not set."""

    @property
    def journal(self) -> str:
        """Full name of the journal topic."""
        return full_name(self.prefix, self.cell, Topic.JOURNAL)

    @property
    def views_path(self) -> Path:
        """The directory of the views, which may be deleted while no process uses it."""
        return self.views_dir or self.data_dir / f"{self.prefix}.{self.cell}" / "views"
