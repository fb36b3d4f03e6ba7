"""Types of options whose help shows neither "(default: None)" nor nested brackets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro

OptionalStr = Annotated[str | None, tyro.conf.arg(help_behavior_hint="")]
OptionalInt = Annotated[int | None, tyro.conf.arg(help_behavior_hint="")]
OptionalFloat = Annotated[float | None, tyro.conf.arg(help_behavior_hint="")]
OptionalFile = Annotated[Path | None, tyro.conf.arg(help_behavior_hint="", metavar="[PATH]")]
OptionalFolder = Annotated[Path | None, tyro.conf.arg(help_behavior_hint="")]
NameList = Annotated[tuple[str, ...], tyro.conf.arg(help_behavior_hint="", metavar="NAME ...")]
IntList = Annotated[tuple[int, ...], tyro.conf.arg(help_behavior_hint="", metavar="INT ...")]
