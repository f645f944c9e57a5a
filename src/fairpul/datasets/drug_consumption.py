"""Drug Consumption: respondents of a survey and when they last used heroin."""

from __future__ import annotations

import numpy as np

from fairpul.datasets.published_files import PublishedFile
from fairpul.datasets.real_data import (
    Preprocessing,
    RealData,
    check_preprocessing,
    comma_separated,
    design_matrix,
    table,
)

_DRUG_ROWS, _DRUG_FIELDS = 1885, 32


def _is_drug_table(content: bytes) -> bool:
    rows = comma_separated(content.decode("utf-8", errors="replace"))
    return len(rows) == _DRUG_ROWS and all(len(row) == _DRUG_FIELDS for row in rows)


# Copies of this file differ in a leading blank line, hence the check by content.
DRUG = PublishedFile(
    name="drug_consumption.data",
    url="https://archive.ics.uci.edu/ml/machine-learning-databases/00373/"
    "drug_consumption.data",
    sha256="19b991a2522984d4cc0a3f0b75fecfa6b8fe42ba6f3c5d3d02cebd0cdbdc1ed3",
    is_same_data=_is_drug_table,
)

_DRUG_FEATURES = (
    "age",
    "gender",
    "education",
    "country",
    "ethnicity",
    "neuroticism",
    "extraversion",
    "openness",
    "agreeableness",
    "conscientiousness",
    "impulsiveness",
    "sensation_seeking",
)
_DRUGS = (
    "alcohol",
    "amphetamines",
    "amyl_nitrite",
    "benzodiazepines",
    "caffeine",
    "cannabis",
    "chocolate",
    "cocaine",
    "crack",
    "ecstasy",
    "heroin",
    "ketamine",
    "legal_highs",
    "lsd",
    "methadone",
    "mushrooms",
    "nicotine",
    "semeron",
    "volatile_substances",
)
# Keyed in hundred-thousandths, so that no float is compared.
_ETHNIC_GROUPS = {
    -50212: "asian",
    -110702: "black",
    190725: "mixed black/asian",
    12600: "mixed white/asian",
    -22166: "mixed white/black",
    11440: "other",
    -31685: "white",
}


def fetch_drug_consumption(*, preprocessing: Preprocessing = None) -> RealData:
    """Respondents of a survey on personality, and when they last used heroin.

    Downloads the file on first use; with the environment variable ``FAIRPUL_DATA``, the
    folder of that name is read instead.

    Parameters
    ----------
    preprocessing : None or "paper"
        None: positive are those who ever used heroin (15%); seven ethnic groups.
        "paper": positive are those who never did (85%; the paper says 80%), groups
        "white" (91%) and "not white". Set it to reproduce published results.

    Returns
    -------
    RealData
        1,885 rows, 12 features in the publisher's quantified form: five demographic,
        ethnicity among them, and seven traits. Target: ``heroin``, from "CL0" (never
        used) to "CL6" (used in the last day). Group: ``ethnic_group``.

    Notes
    -----
    The paper's appendix links UCI's *Drug Review* data; what it describes is this set.
    Its "about 9% black" is everyone not white; Black respondents alone are 33 (1.8%).
    A copy whose digest differs is accepted, with a warning, if it holds 1,885 rows of
    32 fields.

    Drug consumption (quantified), UCI id 373, CC BY 4.0.
    """
    check_preprocessing(preprocessing)
    types = {"id": "int64"} | dict.fromkeys(_DRUG_FEATURES, "float64")
    types |= dict.fromkeys(_DRUGS, "str")
    columns = table(comma_separated(DRUG.read()), types)
    codes = np.rint(columns["ethnicity"] * 1e5).astype(np.int64).tolist()
    columns["ethnic_group"] = np.array([_ETHNIC_GROUPS[code] for code in codes])
    X, names = design_matrix(columns, _DRUG_FEATURES)
    never_used = columns["heroin"] == "CL0"
    white = columns["ethnic_group"] == "white"
    paper = preprocessing == "paper"
    return RealData(
        columns=columns,
        X=X,
        feature_names=names,
        y_true=(never_used if paper else ~never_used).astype(np.int64),
        group=np.where(white, "white", "not white")
        if paper
        else columns["ethnic_group"],
        target="heroin",
        sensitive="ethnic_group",
        license="CC BY 4.0",
        source=DRUG.url,
    )
