"""Zip archives of region files, with limits on their unpacked size."""

from __future__ import annotations

import io
import struct
import zipfile
import zlib
from pathlib import PurePosixPath

from engine.model.faults import refuse
from engine.model.messages import Message

ARCHIVE_FILES = 100
ARCHIVE_BYTES = 100_000_000
"""The maximum decompressed size of all files of an archive."""
ARCHIVE_RATIO = 200
"""The maximum compression ratio of a file of an archive."""
REGION_FILES = {".shp", ".kml", ".gpkg", ".geojson", ".gpx"}


def unpacked(data: bytes) -> tuple[str, list[bytes]]:
    """An archive's content: the KML documents of a KMZ, or `shp` with the archive itself
    when it holds a Shapefile."""
    with open_archive(data) as archive:
        entries = [entry for entry in archive.infolist() if not entry.filename.lower().startswith("__macosx/")]
        kinds = sorted({suffix(entry.filename) for entry in entries} & REGION_FILES)
        if len(kinds) > 1:
            raise refuse("/file", Message("The archive holds regions in several formats ({kinds}): send a file for each.", kinds=", ".join(kinds)))
        if kinds == [".shp"]:
            return "shp", [data]
        documents = [read_entry(archive, entry) for entry in entries if suffix(entry.filename) == ".kml"]
        if not documents:
            raise refuse("/file", Message("The archive holds neither a KML document (KMZ) nor a Shapefile."))
        return "xml", documents


def open_archive(data: bytes) -> zipfile.ZipFile:
    try:
        archive = zipfile.ZipFile(io.BytesIO(data))
    except (zipfile.BadZipFile, ValueError, NotImplementedError, struct.error, EOFError) as error:
        raise refuse("/file", Message("The archive cannot be read: {error}", error=error)) from error
    entries = archive.infolist()
    if len(entries) > ARCHIVE_FILES:
        raise refuse("/file", Message("The archive has more than {most} files.", most=ARCHIVE_FILES))
    for entry in entries:
        path = PurePosixPath(entry.filename.replace("\\", "/"))
        if path.is_absolute() or ".." in path.parts:
            raise refuse("/file", Message("A file of the archive has a name that leads out of it."))
        if entry.file_size > max(ARCHIVE_RATIO * entry.compress_size, 10_000):
            raise refuse("/file", Message("A file of the archive unpacks to more than {most} times its size.", most=ARCHIVE_RATIO))
    if sum(entry.file_size for entry in entries) > ARCHIVE_BYTES:
        raise refuse("/file", Message("The archive unpacks to more than {most} MB.", most=ARCHIVE_BYTES // 1_000_000))
    return archive


def read_entry(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    """A file of the archive, never more bytes than the archive states."""
    try:
        with archive.open(entry) as opened:
            return opened.read(entry.file_size)
    except (zipfile.BadZipFile, zlib.error, RuntimeError, NotImplementedError, ValueError, struct.error, EOFError) as error:
        raise refuse("/file", Message("The archive cannot be read: {error}", error=error)) from error


def suffix(name: str) -> str:
    return PurePosixPath(name).suffix.lower()
