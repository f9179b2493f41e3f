"""Entity codes agree with a plain dict, for any column type."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.model.dictionary import EntityDictionary
from tests.examples import examples

texts = st.text(st.sampled_from("ab\x00é€🚗 "), max_size=12)
columns = st.lists(st.one_of(st.none(), texts), max_size=30)


@given(st.lists(st.tuples(columns, st.integers(0, 5), st.sampled_from(["string", "large", "dictionary", "chunks"])), max_size=6))
@settings(max_examples=examples(150), deadline=None)
def test_codes_agree_with_a_dict(batches):
    dictionary, model = EntityDictionary(), {}
    for names, skip, form in batches:
        column = pa.array(names, pa.large_string() if form == "large" else pa.string()).slice(skip)
        given_ = column.dictionary_encode() if form == "dictionary" else pa.chunked_array([column]) if form == "chunks" else column
        codes = dictionary.encode(given_)
        expected = [-1 if name is None else model.setdefault(name, len(model)) for name in column.to_pylist()]
        assert codes.tolist() == expected
        assert codes.dtype == np.int32
        assert dictionary.decode(codes).to_pylist() == column.to_pylist()
        dictionary.check()
    assert dictionary.names == list(model)


def test_the_dictionary_grows_with_many_and_long_names():
    names = [f"{'x' * (i % 97)}{i}" for i in range(5000)] + ["y" * 100_000]
    dictionary = EntityDictionary(names[:10])
    assert dictionary.encode(pa.array(names + names)).tolist() == [*range(5001)] * 2
    dictionary.check()
    assert len(dictionary) == 5001


def test_names_are_kept_in_a_new_dictionary():
    dictionary = EntityDictionary(["b", "", "a"])
    again = EntityDictionary(dictionary.names)
    assert again.encode(pa.array(["a", "", "b", "c"])).tolist() == [2, 1, 0, 3]


@pytest.mark.parametrize("codes", [[], [-1], [0, -1, 0]])
def test_missing_names_are_null(codes):
    names = EntityDictionary(["a"]).decode(np.array(codes, np.int32))
    assert names.to_pylist() == ["a" if code == 0 else None for code in codes]
    names.validate(full=True)


def test_threads_that_share_a_dictionary_get_equal_codes():
    dictionary = EntityDictionary()
    columns_ = [pa.array([f"n{(i * step) % 3001}" for i in range(20_000)]) for step in (1, 7, 11, 13)]
    with ThreadPoolExecutor(4) as pool:
        for column, codes in zip(columns_, pool.map(dictionary.encode, columns_), strict=True):
            assert dictionary.decode(codes).equals(column)
    dictionary.check()
    assert len(dictionary) == 3001
