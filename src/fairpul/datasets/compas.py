"""COMPAS: criminal defendants and whether they reoffended."""

from __future__ import annotations

import csv

import numpy as np
from numpy.typing import NDArray

from fairpul.datasets.published_files import PublishedFile
from fairpul.datasets.real_data import (
    Columns,
    Preprocessing,
    RealData,
    check_preprocessing,
    design_matrix,
    rows,
    typed,
)

COMPAS = PublishedFile(
    name="compas-scores-two-years.csv",
    url="https://raw.githubusercontent.com/propublica/compas-analysis/master/"
    "compas-scores-two-years.csv",
    sha256="c451db85908b2f7fef1d83203bedf6b71ecda0d5af468d82ae62178f91d0cc7d",
)

# Names of people, dates of birth and case numbers stay in the file.
_COMPAS_TYPES = {
    "sex": "str",
    "age": "int64",
    "age_cat": "str",
    "race": "str",
    "juv_fel_count": "int64",
    "juv_misd_count": "int64",
    "juv_other_count": "int64",
    "priors_count": "int64",
    "c_charge_degree": "str",
    "c_jail_in": "datetime64[us]",
    "c_jail_out": "datetime64[us]",
    "days_b_screening_arrest": "float64",
    "decile_score": "int64",
    "score_text": "str",
    "v_decile_score": "int64",
    "v_score_text": "str",
    "is_recid": "int64",
    "two_year_recid": "int64",
}
_COMPAS_FEATURES = (
    "sex",
    "age",
    "juv_fel_count",
    "juv_misd_count",
    "juv_other_count",
    "priors_count",
    "c_charge_degree",
)


def fetch_compas(*, preprocessing: Preprocessing = None) -> RealData:
    """Criminal defendants of Broward County, Florida, and whether they reoffended.

    Downloads the file on first use; with the environment variable ``FAIRPUL_DATA``, the
    folder of that name is read instead.

    Parameters
    ----------
    preprocessing : None or "paper"
        None: the 7,214 rows as published. "paper": the rows that ProPublica analyzed
        and of these Black and white defendants (5,278), with the features of Zafar et
        al. (2017). Set it to reproduce published results.

    Returns
    -------
    RealData
        Positive: ``two_year_recid``, charged again within two years (47% of the paper's
        rows). Group: ``race``, which is not in ``X``.

    Notes
    -----
    ProPublica keeps rows with a charge within 30 days of the screening, a known
    outcome, more than an ordinary traffic offense and a COMPAS score. 60% of what
    remains are Black defendants; the paper's text has the shares the other way round.
    "paper" takes sex, age category, number of priors and degree of the charge; the
    paper does not list its features. With race appended to ``X``, logistic regression
    on true labels then has F1 .624, AOD .241 and EOD .291 (20 splits) where the paper
    has .621, .236 and .293; without race .622, .210 and .257. Names, dates of birth
    and case numbers are not loaded.

    Published by ProPublica for re-analysis, without a license file.
    """
    check_preprocessing(preprocessing)
    records = list(csv.DictReader(COMPAS.read().splitlines()))
    columns = {
        name: typed([record[name] for record in records], dtype)
        for name, dtype in _COMPAS_TYPES.items()
    }
    if preprocessing == "paper":
        columns = rows(columns, _is_in_paper(columns))
        X, names = _paper_features_of_compas(columns)
    else:
        X, names = design_matrix(columns, _COMPAS_FEATURES)
    return RealData(
        columns=columns,
        X=X,
        feature_names=names,
        y_true=columns["two_year_recid"],
        group=columns["race"],
        target="two_year_recid",
        sensitive="race",
        license="none stated; published by ProPublica for re-analysis",
        source=COMPAS.url,
    )


def _is_in_paper(columns: Columns) -> NDArray[np.bool_]:
    """ProPublica's filters, then Black and white defendants."""
    # A missing number of days is NaN and fails the comparison, as it should.
    kept = np.abs(columns["days_b_screening_arrest"]) <= 30
    kept &= columns["is_recid"] != -1
    kept &= columns["c_charge_degree"] != "O"
    kept &= columns["score_text"] != "N/A"
    return kept & np.isin(columns["race"], ("African-American", "Caucasian"))


def _paper_features_of_compas(
    columns: Columns,
) -> tuple[NDArray[np.float64], tuple[str, ...]]:
    """Sex, age category, priors and charge, as in Zafar et al. (2017)."""
    ages = ("Less than 25", "25 - 45", "Greater than 45")
    features = {
        "sex=Male": columns["sex"] == "Male",
        **{f"age_cat={age}": columns["age_cat"] == age for age in ages},
        "priors_count": columns["priors_count"],
        "c_charge_degree=F": columns["c_charge_degree"] == "F",
    }
    return np.column_stack(list(features.values())).astype(np.float64), tuple(features)
