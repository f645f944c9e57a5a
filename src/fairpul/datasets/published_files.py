"""Files of data publishers: found or downloaded, and never used unverified."""

from __future__ import annotations

import hashlib
import importlib
import os
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: Environment variable naming a folder that holds the files; it replaces the network.
FOLDER_VARIABLE = "FAIRPUL_DATA"


@dataclass(frozen=True)
class PublishedFile:
    """A file as its publisher released it.

    Attributes
    ----------
    name : str
        File name, in the cache and in the folder that ``FAIRPUL_DATA`` names.
    url : str
        Address at the publisher.
    sha256 : str
        Digest of the released content.
    is_same_data : callable, optional
        Whether content of another digest still holds the same table.
    """

    name: str
    url: str
    sha256: str
    is_same_data: Callable[[bytes], bool] | None = None

    def read(self) -> str:
        """Return the text from the named folder, else the cache, else the publisher."""
        folder = os.environ.get(FOLDER_VARIABLE)
        content = self._read_folder(folder) if folder else self._read_cached()
        return content.decode("utf-8")

    def _read_folder(self, folder: str) -> bytes:
        path = Path(folder) / self.name
        if not path.is_file():
            raise FileNotFoundError(
                f"{FOLDER_VARIABLE} is set to {folder!r}, which holds no {self.name}. "
                f"Put the file from {self.url} there, or unset {FOLDER_VARIABLE} to "
                "download it."
            )
        content = path.read_bytes()
        self._verify(content, str(path))
        return content

    def _read_cached(self) -> bytes:
        pooch = _import_pooch(self.name)
        path = Path(pooch.os_cache("fairpul")) / self.name
        if path.is_file():
            content = path.read_bytes()
            self._verify(content, str(path))
            return content
        path.parent.mkdir(parents=True, exist_ok=True)
        # Into a folder of its own, so that a failure leaves nothing in the cache.
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            partial = Path(folder) / self.name
            try:
                pooch.HTTPDownloader()(self.url, str(partial), None)
            except OSError as error:
                raise ConnectionError(
                    f"{self.name} could not be downloaded from {self.url} ({error}). "
                    "Connect to the network, or put the file into a folder and set "
                    f"{FOLDER_VARIABLE} to it."
                ) from error
            content = partial.read_bytes()
            self._verify(content, self.url)
            partial.replace(path)
        return content

    def _verify(self, content: bytes, origin: str) -> None:
        digest = hashlib.sha256(content).hexdigest()
        if digest == self.sha256:
            return
        difference = f"{origin} has SHA-256 {digest}, expected was {self.sha256}."
        if self.is_same_data is None or not self.is_same_data(content):
            raise ValueError(
                f"{difference} The file is damaged or another edition: delete it and "
                f"take {self.name} from {self.url}."
            )
        warnings.warn(
            f"{difference} Its table has the expected shape and is used.",
            UserWarning,
            stacklevel=5,  # the caller of the loader
        )


def _import_pooch(name: str) -> Any:
    try:
        return importlib.import_module("pooch")
    except ModuleNotFoundError:
        raise ModuleNotFoundError(
            f"Downloading {name} requires pooch: install fairpul[datasets], or put the "
            f"file into a folder and set {FOLDER_VARIABLE} to it.",
            name="pooch",
        ) from None
