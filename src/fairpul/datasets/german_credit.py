"""German Credit: borrowers and whether they proved bad credit risks."""

from __future__ import annotations

import numpy as np

from fairpul.datasets.published_files import PublishedFile
from fairpul.datasets.real_data import (
    Preprocessing,
    RealData,
    check_preprocessing,
    design_matrix,
    table,
)

_FOLDER = "https://archive.ics.uci.edu/ml/machine-learning-databases/statlog/german/"
GERMAN = PublishedFile(
    name="german.data",
    url=_FOLDER + "german.data",
    sha256="b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
)
GERMAN_NUMERIC = PublishedFile(
    name="german.data-numeric",
    url=_FOLDER + "german.data-numeric",
    sha256="2752b044394958ab6dd193a0b56ca0f0b3a2d8bc7cb8c008e35a5e84bbec02f8",
)
_GERMAN_TYPES = {
    "checking_status": "str",
    "duration": "int64",
    "credit_history": "str",
    "purpose": "str",
    "credit_amount": "int64",
    "savings": "str",
    "employment_since": "str",
    "installment_rate": "int64",
    "personal_status_and_sex": "str",
    "other_debtors": "str",
    "residence_since": "int64",
    "property": "str",
    "age": "int64",
    "other_installment_plans": "str",
    "housing": "str",
    "existing_credits": "int64",
    "job": "str",
    "dependents": "int64",
    "telephone": "str",
    "foreign_worker": "str",
    "credit_risk": "int64",
}


def fetch_german_credit(*, preprocessing: Preprocessing = None) -> RealData:
    """Borrowers of a German bank and whether they proved bad credit risks.

    Downloads the file on first use; with the environment variable ``FAIRPUL_DATA``, the
    folder of that name is read instead.

    Parameters
    ----------
    preprocessing : None or "paper"
        None: 20 attributes, categories as indicators. "paper": the 24 attributes of
        ``german.data-numeric``. Set it to reproduce published results.

    Returns
    -------
    RealData
        1,000 rows. Positive: ``credit_risk`` 2, a bad risk (30%). Group: ``sex``, read
        from ``personal_status_and_sex`` (31% "female"), which both versions of ``X``
        contain.

    Notes
    -----
    Sex is read off as the publisher's table of codes has it (A92 female). Groemping
    (2019) showed this table to be wrong: A92 also holds single men, so sex cannot be
    recovered. Results on this data set are comparable with published ones and say
    nothing about women and men.

    Statlog (German Credit Data), UCI id 144, CC BY 4.0.
    """
    check_preprocessing(preprocessing)
    records = [line.split() for line in GERMAN.read().splitlines()]
    columns = table(records, _GERMAN_TYPES)
    female = columns["personal_status_and_sex"] == "A92"
    columns["sex"] = np.where(female, "female", "male")
    if preprocessing == "paper":
        numbers = [line.split() for line in GERMAN_NUMERIC.read().splitlines()]
        X = np.array(numbers, dtype=np.float64)[:, :-1]
        names = tuple(f"attribute_{j + 1}" for j in range(X.shape[1]))
    else:
        X, names = design_matrix(columns, list(_GERMAN_TYPES)[:-1])
    return RealData(
        columns=columns,
        X=X,
        feature_names=names,
        y_true=(columns["credit_risk"] == 2).astype(np.int64),
        group=columns["sex"],
        target="credit_risk",
        sensitive="sex",
        license="CC BY 4.0",
        source=GERMAN.url,
    )
