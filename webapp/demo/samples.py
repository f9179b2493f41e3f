"""Samples to start with: a recording, or some minutes of a demo world, that becomes a feed with
regions and queries in one step.

fixtures/samples/samples.json lists them. Some real recordings are next to it; the others are not
part of the project: they are taken from `VEDETTE_DATA`, or the user uploads them. All are loaded
like uploaded files, so users can do the same with their own files.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from django.conf import settings
from django.db import transaction

from engine.model.faults import Fault, Refused, refuse, unknown_name
from engine.model.messages import Message
from webapp.accounts.models import Team, User
from webapp.audit.services import record
from webapp.config.wording import translated
from webapp.demo.simulation.scenarios import read_scenario
from webapp.demo.simulation.world import Place
from webapp.feeds.models import Feed, Upload, UploadState
from webapp.feeds.services import region_create
from webapp.feeds.uploads.inspection import inspect
from webapp.feeds.uploads.store import file_of, folder_of, upload_create, upload_load
from webapp.platform.folders import ROOT
from webapp.queries.services import query_register

SHIPPED = ROOT / "fixtures" / "samples"
SAMPLES = SHIPPED / "samples.json"
MADE_AT = 1_760_000_000_000
"""When the minutes of a demo world begin; loading moves them to now."""
VIEW_KEYS = ("view", "lateness")


@dataclass(frozen=True)
class Sample:
    """A recording or simulated minutes. Texts are English; `in_words` translates them. `queries`
    are as `query_register` takes them.

    A real one has its `file`, shipped or below the folder of recordings, its first and last time
    (ISO 8601), a licence and an origin, and what the live page shows of it at first: a `window` of
    time, the instant `at`, and the `map`'s centre and zoom. A simulated one names in `made` its
    world, its length, and its places and entities.
    """

    name: str
    title: str
    about: str
    rows: int
    queries: list[dict[str, Any]]
    span: tuple[str, str] | None = None
    opens: Mapping[str, Any] | None = None
    file: str = ""
    licence: str = ""
    origin: str = ""
    regions: Mapping[str, Any] = field(default_factory=dict)
    made: Mapping[str, Any] = field(default_factory=dict)

    def in_words(self) -> Sample:
        """The same with title, description and queries in the present language. Names of
        regions stay: queries name them."""
        queries = [query | {key: translated(query[key]) for key in ("name", "description") if key in query} for query in self.queries]
        return replace(self, title=translated(self.title), about=translated(self.about), queries=queries)

    @property
    def path(self) -> Path:
        """The path of a real recording."""
        return SHIPPED / self.file if self.is_shipped else Path(settings.SAMPLES_ROOT) / self.file

    @property
    def is_shipped(self) -> bool:
        return bool(self.file) and (SHIPPED / self.file).is_file()

    @property
    def is_here(self) -> bool:
        return bool(self.made) or self.path.is_file()


@cache
def all_samples() -> list[Sample]:
    """All described samples, whether their files are here or not."""
    return list(_read(json.loads(SAMPLES.read_text(encoding="utf-8"))["samples"]))


def _read(documents: list[dict[str, Any]]) -> Iterator[Sample]:
    for document in documents:
        if "made" not in document:
            yield Sample(**document)
            continue
        scenario = read_scenario(document["made"]["world"])
        ready = {query["name"]: {key: value for key, value in query.items() if key != "truth"} for query in scenario.queries}
        places = [place for place in scenario.places if _is_wanted(place, document["made"].get("places"))]
        regions = {place.name: place.geometry for place in places}
        yield Sample(**{**document, "queries": [ready[name] for name in document["queries"]], "regions": regions})


def _is_wanted(place: Place, tags: list[str] | None) -> bool:
    return tags is None or bool(set(tags) & set(place.tags))


@transaction.atomic
def sample_load(*, name: str, user: User, team: Team | None, uploaded: Upload | None = None) -> Upload:
    """Makes a feed of the sample, with its regions and queries, and has its rows loaded: those of
    the file `uploaded`, or the sample's own. Raises Refused."""
    samples = {sample.name: sample for sample in all_samples()}
    if name not in samples:
        raise refuse("/name", unknown_name(name, samples, what=Message("sample")))
    sample = samples[name].in_words()
    if uploaded is not None:
        return _load_given(sample, uploaded, user, team)
    if not sample.is_here:
        raise refuse(
            "/name",
            Message("The recording is not included: upload its file and name the upload, or put it at {file} below VEDETTE_DATA.", file=sample.file),
        )
    upload = _upload(sample, user)
    try:
        return _load(sample, upload, user, team)
    except BaseException:
        # The row is rolled back with the transaction, and the quota of files no longer counts it:
        # the file must not stay.
        shutil.rmtree(folder_of(upload), ignore_errors=True)
        raise


def _load_given(sample: Sample, upload: Upload, user: User, team: Team | None) -> Upload:
    """Raises Refused with pointers to the file where it does not fit: it stays,
    and can be loaded by hand."""
    if sample.made:
        raise refuse("/upload", Message("A simulated sample takes no file."))
    try:
        return _load(sample, upload, user, team)
    except Refused as refused:
        raise Refused(
            Fault("/upload", Message("The file does not fit the sample: {message}", message=fault.message)) for fault in refused.faults
        ) from None


def _load(sample: Sample, upload: Upload, user: User, team: Team | None) -> Upload:
    inspected = inspect(file_of(upload), upload.name, {})
    made = bool(sample.made)
    view = {key: value for key, value in read_scenario(sample.made["world"]).feed.items() if key in VIEW_KEYS} if made else {}
    # A history is loaded in the order of time: answers that waited for
    # late rows would miss its end.
    values = {
        "name": _free_name(sample.name),
        "title": sample.title,
        "team": team,
        "lateness": inspected["lateness"] if made else 0,
        "tick": 1,
        **view,
    }
    feed = upload_load(upload=upload, user=user, feed=values, reading=inspected["reading"], as_now=made, rate=1.0, ordered=True)
    for region, geometry in sample.regions.items():
        region_create(owner=user, feed=feed, name=region, geometry=geometry, team=team)
    for query in sample.queries:
        query_register(owner=user, feed=feed, team=team, **query)
    record("sample.load", feed, sample=sample.name)
    return Upload.objects.get(pk=upload.pk)


def _free_name(name: str) -> str:
    """The name of the sample, or the first of it with a number that no feed has."""
    taken = set(Feed.objects.filter(name__startswith=name).values_list("name", flat=True))
    return next(free for number in range(1, len(taken) + 2) if (free := name if number == 1 else f"{name}-{number}") not in taken)


def _upload(sample: Sample, user: User) -> Upload:
    """The sample as a file that has been uploaded."""
    rows = _made(sample) if sample.made else None
    name = f"{sample.name}.parquet" if rows is not None else sample.path.name
    upload = upload_create(owner=user, name=name, size=rows.nbytes if rows is not None else sample.path.stat().st_size)
    if rows is not None:
        pq.write_table(rows, file_of(upload))
    else:
        shutil.copyfile(sample.path, file_of(upload))
    upload.size, upload.state = file_of(upload).stat().st_size, UploadState.READY
    upload.save(update_fields=["size", "state"])
    return upload


def _made(sample: Sample) -> pa.Table:
    """The reports of the sample's minutes, of one in this many entities."""
    world, one_in = read_scenario(sample.made["world"]).world, sample.made.get("one_in", 1)
    rows = world.rows(MADE_AT, MADE_AT + 60_000 * sample.made["minutes"])
    kept = pc.unique(rows.column("entity")).sort().take(pa.array(range(0, pc.count_distinct(rows.column("entity")).as_py(), one_in)))
    return rows.filter(pc.is_in(rows.column("entity"), value_set=kept))
