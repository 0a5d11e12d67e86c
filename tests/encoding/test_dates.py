"""Dates as people write them."""

from __future__ import annotations

import numpy as np
import pytest

from fewlabel.encoding.columns import plan_column
from fewlabel.encoding.dates import ISO, _far_moment, example, moments_of
from fewlabel.encoding.encoder import TableEncoder

pa = pytest.importorskip("pyarrow")
pd = pytest.importorskip("pandas")

DAYS = pd.date_range("2012-01-01", periods=120, freq="37h")


def planned(cells):
    return plan_column("d", pa.chunked_array([pa.array(cells)]))


@pytest.mark.parametrize(
    "form",
    [
        *("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d", "%m/%d/%Y", "%d/%m/%Y", "%d.%m.%Y", "%d-%m-%Y"),
        *("%m/%d/%y", "%d.%m.%y", "%d %b %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y"),
        *("%m/%d/%Y %H:%M", "%Y/%m/%d %H:%M:%S", "%m/%d/%Y %I:%M %p", "%Y-%m-%dT%H:%M:%SZ"),
    ],
)
def test_formats(form):
    cells = DAYS.strftime(form).tolist()
    column = planned(cells)
    assert column.kind == "date", column
    assert "the other way round" not in column.why
    expected = pd.to_datetime(pd.Series(cells), format=form, utc=True).dt.tz_convert(None)
    days = (expected - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1)
    np.testing.assert_allclose(column.read(pa.chunked_array([cells])), days)


def test_day_or_month_first_is_decided_by_the_column_and_told():
    late = ["01/02/2012"] * 50 + ["13/02/2012", "02/03/2012"]  # one cell tells
    assert planned(late).formats == ("%d/%m/%Y",)
    assert "day first" in planned(late).why
    open_ = ["01/02/2012", "03/04/2012", "11/12/2012"] * 10
    column = planned(open_)
    assert column.formats == ("%m/%d/%Y",)
    assert "may be the other way round" in column.why
    asked = TableEncoder(date={"d": "%d/%m/%Y"}).fit(pd.DataFrame({"d": open_}))
    assert asked.plan_[0].formats == ("%d/%m/%Y",)
    assert example("%d/%m/%Y %H:%M") == "31/01/2012 13:45 (day first)"


def test_mixed_formats_are_read_and_told():
    cells = DAYS.strftime("%Y-%m-%d").tolist()[:60] + DAYS.strftime("%d.%m.%Y").tolist()[60:]
    column = planned(cells)
    assert set(column.formats) == {ISO, "%d.%m.%Y"}
    assert "formats are mixed" in column.why
    np.testing.assert_array_equal(
        moments_of(pa.chunked_array([cells]), column.formats),
        DAYS.normalize().to_numpy().astype("datetime64[ms]"),
    )


@pytest.mark.parametrize(
    "cells",
    [
        ["1.2.13", "1.3.2", "2.0.11"] * 10,
        ["May", "June", "July"] * 10,
        ["room 12", "room 14", "room 7"] * 10,
        ["12:30", "13:45", "09:10"] * 10,
        ["555-1234", "555-9876", "555-4321"] * 10,
    ],
)
def test_what_is_no_date(cells):
    assert planned(cells).kind == "category"


def test_numbers_may_be_asked_to_be_dates():
    table = pd.DataFrame({"d": [20120131, 20120229, 20130301] * 10})
    assert TableEncoder().fit(table, None).plan_[0].kind == "number"
    encoder = TableEncoder(date=["d"])
    X = encoder.fit_transform(table)
    assert X[1, 0] - X[0, 0] == 29


def test_parts_that_come_again_and_differences_between_dates():
    table = pd.DataFrame({"born": DAYS.strftime("%m/%d/%Y"), "seen": DAYS + pd.Timedelta(days=9)})
    table.loc[3, "seen"] = pd.NaT
    encoder = TableEncoder()
    X = pd.DataFrame(encoder.fit_transform(table), columns=encoder.get_feature_names_out())
    gap = X["born to seen (days)"].drop(3)
    assert gap.between(9.0, 10.0).all()
    assert X.loc[3, "seen (missing)"] == 1.0
    assert np.isfinite(X).all(axis=None)
    circle = X["seen (weekday 0)"] ** 2 + X["seen (weekday 1)"] ** 2
    np.testing.assert_allclose(circle.drop(3), 1.0, rtol=1e-5)
    assert "the days from it to 'seen' are features" in encoder.plan_[0].treatment


@pytest.mark.parametrize(
    ("text", "form", "found"),
    [
        ("9999-12-31", "ISO8601", "9999-12-31"),
        ("0001-01-01T01:00:00+02:00", "ISO8601", "0000-12-31T23:00"),
        ("31.12.9999 23:59", "%d.%m.%Y %H:%M", "9999-12-31T23:59"),
        ("31.12.9999", "%m.%d.%Y", "NaT"),
        ("no date", "ISO8601", "NaT"),
    ],
)
def test_moments_beyond_nanoseconds(text: str, form: str, found: str):
    assert str(_far_moment(text, form)) == str(np.datetime64(found, "ms"))
