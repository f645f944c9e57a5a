import hashlib
import os
import sys
from collections import Counter
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from fairpul.datasets import (
    compas,
    drug_consumption,
    fetch_compas,
    fetch_drug_consumption,
    fetch_german_credit,
    german_credit,
    make_two_groups,
    make_underdiagnosed,
    pu_labels,
)
from fairpul.datasets.published_files import PublishedFile

# Standard errors, a two-sided normal tail of 7e-6: of the few hundred comparisons a
# right implementation fails one in fewer than one of two hundred choices of seeds.
Z = 4.5

FOLDER = os.environ.get("FAIRPUL_DATA")
needs_published_files = pytest.mark.skipif(
    FOLDER is None, reason="FAIRPUL_DATA names no folder with the published files"
)


def assert_share(hits, probability, n_draws):
    """Hits among independent draws agree with their (mean) probability."""
    sd = np.sqrt(probability * (1 - probability) / n_draws)
    assert abs(hits / n_draws - probability) <= Z * sd


# --- simulated data ---


def simulate_two_groups(seed=0):
    return make_two_groups(100_000, label_frequency=(0.3, 0.8), random_state=seed)


def simulate_underdiagnosis(seed=0):
    return make_underdiagnosed(100_000, random_state=seed)


def simulate_without_anchor(seed=0):
    return make_underdiagnosed(
        100_000,
        groups=("x", "y", "z"),
        label_frequency=0.5,
        anchor_share=0,
        random_state=seed,
    )


simulations = pytest.mark.parametrize(
    "simulate", [simulate_two_groups, simulate_underdiagnosis, simulate_without_anchor]
)


def test_two_groups_has_the_sizes_of_the_paper():
    data = make_two_groups(random_state=0)
    cells = {
        (g, y): int(((data.group == g) & (data.y_true == y)).sum())
        for g in "ab"
        for y in (1, 0)
    }
    assert cells == {("a", 1): 1000, ("a", 0): 1000, ("b", 1): 200, ("b", 0): 1000}


@pytest.mark.parametrize("n_samples", [16, 17, 101, 3200])
def test_two_groups_keeps_the_proportions_at_any_size(n_samples):
    data = make_two_groups(n_samples, random_state=0)
    assert len(data.X) == n_samples
    for g, y, share in [("a", 1, 5), ("a", 0, 5), ("b", 1, 1), ("b", 0, 5)]:
        size = ((data.group == g) & (data.y_true == y)).sum()
        assert abs(size - n_samples * share / 16) < 1


def test_posterior_of_two_groups_follows_from_its_densities():
    data = make_two_groups(2000, random_state=1)
    for g, center, variance, prior in [("a", 1, 0.8, 1 / 2), ("b", 0.5, 0.5, 1 / 6)]:
        X = data.X[data.group == g]
        positive = prior * multivariate_normal([-center] * 2, variance).pdf(X)
        negative = (1 - prior) * multivariate_normal([center] * 2, variance).pdf(X)
        expected = positive / (positive + negative)
        # The density route loses digits where both densities are small.
        np.testing.assert_allclose(data.posterior[data.group == g], expected, 1e-9)


def test_posterior_of_underdiagnosis_follows_from_its_densities():
    data = make_underdiagnosed(2000, random_state=1)
    center, scale = np.array([55, 128, 125, 50]), np.array([9, 14, 30, 10])
    anchored = data.X[:, 4] == 1
    assert (data.posterior[anchored] == 1).all()
    for g, prior, symptoms in [("f", 0.15, 0.64), ("m", 0.25, 1.6)]:
        rows = (data.group == g) & ~anchored
        z = (data.X[rows, :4] - center) / scale
        positive = multivariate_normal([1, 0.7, 0.6, symptoms]).pdf(z) * prior * 0.85
        negative = multivariate_normal(np.zeros(4)).pdf(z) * (1 - prior)
        expected = positive / (positive + negative)
        np.testing.assert_allclose(data.posterior[rows], expected, 1e-9)


@simulations
def test_posterior_is_the_share_of_positives_in_every_bin(simulate):
    data = simulate()
    for g in data.class_prior:
        posterior = data.posterior[data.group == g]
        y_true = data.y_true[data.group == g]
        bins = np.digitize(posterior, np.linspace(0.05, 0.95, 10))
        for b in range(11):
            p = posterior[bins == b]
            excess = y_true[bins == b].sum() - p.sum()
            assert abs(excess) <= Z * np.sqrt((p * (1 - p)).sum()) + 1e-9


@simulations
@pytest.mark.parametrize("threshold", [0.1, 0.5, 0.9])
def test_population_rates_are_those_of_many_rows(simulate, threshold):
    data = simulate()
    for g, rates in data.population_rates(threshold).items():
        rows = data.group == g
        accepted = data.posterior >= threshold
        for y, rate in [(1, rates["tpr"]), (0, rates["fpr"])]:
            among = rows & (data.y_true == y)
            assert_share(accepted[among].sum(), rate, among.sum())
        assert_share(accepted[rows].sum(), rates["selection_rate"], rows.sum())


def test_population_rates_at_the_ends_of_the_scale():
    data = make_underdiagnosed(100, anchor_share=0.2, random_state=0)
    everybody, anchors = data.population_rates(0), data.population_rates(1)
    assert everybody["f"] == {"tpr": 1, "fpr": 1, "selection_rate": 1}
    assert anchors["f"]["tpr"] == pytest.approx(0.2, rel=1e-15)
    assert anchors["f"]["fpr"] == 0


def test_one_common_threshold_misses_more_of_the_first_group():
    rates = make_underdiagnosed(random_state=0).population_rates(0.5)
    assert rates["m"]["tpr"] - rates["f"]["tpr"] > 0.25
    assert rates["m"]["fpr"] - rates["f"]["fpr"] > 0.02


@simulations
def test_positives_are_labeled_at_the_frequency_of_their_group(simulate):
    data = simulate()
    assert not data.labeled[data.y_true == 0].any()
    for g, frequency in data.label_frequency.items():
        positives = (data.group == g) & (data.y_true == 1)
        assert_share(data.labeled[positives].sum(), frequency, positives.sum())


@simulations
def test_labels_do_not_depend_on_the_features_within_a_group(simulate):
    data = simulate()
    for g in data.class_prior:
        positives = (data.group == g) & (data.y_true == 1)
        X, labeled = data.X[positives], data.labeled[positives] == 1
        gap = X[labeled].mean(axis=0) - X[~labeled].mean(axis=0)
        sd = X.std(axis=0) * np.sqrt(1 / labeled.sum() + 1 / (~labeled).sum())
        assert (np.abs(gap) <= Z * sd).all()


@simulations
def test_score_is_the_probability_of_a_label(simulate):
    data = simulate()
    for g in data.class_prior:
        score = data.score[data.group == g]
        excess = data.labeled[data.group == g].sum() - score.sum()
        assert abs(excess) <= Z * np.sqrt((score * (1 - score)).sum())


def test_groups_prevalence_and_anchors_of_underdiagnosis_have_their_shares():
    data = make_underdiagnosed(
        100_000,
        groups=(10, 20, 30),
        label_frequency={30: 0.9, 10: 0.2, 20: 0.5},
        anchor_share=0.3,
        random_state=2,
    )
    assert data.group.dtype.kind == "i"
    assert data.label_frequency == {10: 0.2, 20: 0.5, 30: 0.9}
    for g, prior in [(10, 0.15), (20, 0.20), (30, 0.25)]:
        rows = data.group == g
        assert data.class_prior[g] == pytest.approx(prior, rel=1e-12)
        assert_share(rows.sum(), 1 / 3, len(rows))
        assert_share(data.y_true[rows].sum(), prior, rows.sum())
        positives = rows & (data.y_true == 1)
        assert_share(data.X[positives, 4].sum(), 0.3, positives.sum())


def test_without_an_anchor_there_is_no_finding_and_nobody_is_certain():
    data = make_underdiagnosed(anchor_share=0, random_state=0)
    assert data.X.shape[1] == len(data.feature_names) == 4
    assert data.posterior.max() < 1


def test_groups_may_be_tuples():
    keys = [("f", "old"), ("m", "old")]
    data = make_underdiagnosed(50, groups=keys, random_state=0)
    assert set(data.group.tolist()) == set(keys)
    assert len(data.score) == 50


@pytest.mark.parametrize("make", [make_two_groups, make_underdiagnosed])
def test_a_seed_fixes_the_data(make):
    first, again, other = (make(500, random_state=seed) for seed in (3, 3, 4))
    for name in ("X", "labeled", "group", "y_true", "posterior"):
        assert np.array_equal(getattr(first, name), getattr(again, name))
    assert not np.array_equal(first.X, other.X)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: make_two_groups(15), "At least 16 rows"),
        (lambda: make_two_groups(label_frequency=1.5), r"must lie in \[0, 1\]"),
        (lambda: make_two_groups(label_frequency={"a": 0.5}), r"groups \['b'\]"),
        (lambda: make_underdiagnosed(0), "At least one row"),
        (lambda: make_underdiagnosed(groups=()), "Distinct groups"),
        (lambda: make_underdiagnosed(groups=("f", "f")), "Distinct groups"),
        (lambda: make_underdiagnosed(groups="xyz"), "one value for each"),
        (lambda: make_underdiagnosed(anchor_share=1), "anchor_share"),
        (lambda: make_two_groups().population_rates(1.2), "threshold in"),
    ],
)
def test_simulations_refuse_what_they_cannot_make(call, message):
    with pytest.raises(ValueError, match=message):
        call()


# --- PU labels ---


def test_a_rate_for_each_row_labels_each_row_at_its_rate():
    rate = np.repeat([0.0, 0.1, 0.6, 1.0], 10_000)
    labeled = pu_labels(np.ones(40_000), rate, random_state=0)
    for value in np.unique(rate):
        assert_share(labeled[rate == value].sum(), value, 10_000)


def test_a_rate_by_group_reaches_its_group():
    group = ["f", "m", "f", "m"]
    labeled = pu_labels([1, 1, 0, 1], {"f": 0.0, "m": 1.0}, group=group)
    assert labeled.tolist() == [0, 1, 0, 1]


def test_a_higher_rate_only_adds_labels():
    y = np.ones(1000, dtype=bool)
    few = pu_labels(y, 0.3, random_state=5)
    many = pu_labels(y, 0.7, random_state=5)
    assert (few <= many).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"y": [1, 2], "rate": 0.5}, r"True classes 0 and 1 .* got values \[1, 2\]"),
        ({"y": [[1], [0]], "rate": 0.5}, "one dimension"),
        ({"y": [1, 0], "rate": -0.1}, r"must lie in \[0, 1\]"),
        ({"y": [1, 0], "rate": [0.5, np.nan]}, r"must lie in \[0, 1\]"),
        ({"y": [1, 0], "rate": [0.5]}, "one for each of the 2 rows"),
        ({"y": [1, 0], "rate": {"f": 0.5}}, "without the group"),
        ({"y": [1, 0], "rate": {"f": 0.5}, "group": ["f", "m"]}, r"groups \['m'\]"),
    ],
)
def test_pu_labels_refuse_classes_and_rates_that_make_no_sense(arguments, message):
    with pytest.raises(ValueError, match=message):
        pu_labels(**arguments)


# --- published files, from a server on loopback ---


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def publisher(tmp_path, monkeypatch):
    """Folder that a server on loopback publishes, its address, and an empty cache."""
    pooch = pytest.importorskip("pooch")
    monkeypatch.delenv("FAIRPUL_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    folder, cache = tmp_path / "published", tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setattr(pooch, "os_cache", lambda project: cache / project)
    handler = partial(QuietHandler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        Thread(target=server.serve_forever, args=(0.01,)).start()
        try:
            yield folder, f"http://127.0.0.1:{server.server_port}/", cache / "fairpul"
        finally:
            server.shutdown()


def publish(publisher, content, **changes):
    folder, address, _ = publisher
    (folder / "table.txt").write_bytes(content)
    digest = hashlib.sha256(content).hexdigest()
    file = PublishedFile("table.txt", address + "table.txt", digest)
    return replace(file, **changes)


def files_in(folder):
    return [path.name for path in Path(folder).rglob("*")]


def test_a_file_is_downloaded_once_and_then_read_from_the_cache(publisher):
    folder, _, cache = publisher
    file = publish(publisher, b"a b c\n")
    assert file.read() == "a b c\n"
    (folder / "table.txt").unlink()
    assert file.read() == "a b c\n"
    assert files_in(cache) == ["table.txt"]


def test_another_digest_is_refused_and_leaves_nothing(publisher):
    file = publish(publisher, b"tampered", sha256="0" * 64)
    digest = hashlib.sha256(b"tampered").hexdigest()
    with pytest.raises(ValueError, match=f"{digest}, expected was 0000"):
        file.read()
    assert files_in(publisher[2]) == []


def test_a_damaged_file_in_the_cache_is_refused(publisher):
    file = publish(publisher, b"whole")
    file.read()
    (publisher[2] / "table.txt").write_bytes(b"who")
    with pytest.raises(ValueError, match="damaged or another edition: delete it"):
        file.read()


def test_a_missing_page_is_an_error_and_leaves_nothing(publisher):
    file = publish(publisher, b"", url=publisher[1] + "gone.txt")
    with pytest.raises(ConnectionError, match="404"):
        file.read()
    assert files_in(publisher[2]) == []


def test_without_a_network_the_error_names_the_way_out(publisher, monkeypatch):
    # Port 9 of loopback (discard) has no server: the connection is refused at once.
    file = replace(compas.COMPAS, url="http://127.0.0.1:9/")
    monkeypatch.setattr(compas, "COMPAS", file)
    with pytest.raises(ConnectionError, match="set FAIRPUL_DATA to it"):
        fetch_compas()
    assert files_in(publisher[2]) == []


def test_without_pooch_the_error_names_the_extra(monkeypatch):
    monkeypatch.delenv("FAIRPUL_DATA", raising=False)
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(ModuleNotFoundError, match=r"fairpul\[datasets\]"):
        fetch_compas()


def test_the_named_folder_needs_neither_pooch_nor_a_network(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    monkeypatch.setenv("FAIRPUL_DATA", str(tmp_path))
    (tmp_path / "table.txt").write_bytes(b"1,2")
    digest = hashlib.sha256(b"1,2").hexdigest()
    assert PublishedFile("table.txt", "unused", digest).read() == "1,2"


def test_a_file_that_the_named_folder_lacks_is_not_downloaded(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRPUL_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"holds no german\.data\. Put the"):
        fetch_german_credit()


def drug_table(n_rows):
    row = ",".join(["1", *["0.12600"] * 12, *["CL0"] * 19])
    return (row + "\n").encode() * n_rows


def test_drug_is_accepted_by_its_content_with_a_warning(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRPUL_DATA", str(tmp_path))
    (tmp_path / "drug_consumption.data").write_bytes(drug_table(1885))
    with pytest.warns(UserWarning, match="expected shape and is used") as caught:
        data = fetch_drug_consumption()
    assert caught[0].filename == __file__
    assert len(data.X) == 1885
    assert set(data.group) == {"mixed white/asian"}


def test_drug_of_another_shape_is_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRPUL_DATA", str(tmp_path))
    (tmp_path / "drug_consumption.data").write_bytes(drug_table(1884))
    with pytest.raises(ValueError, match="damaged or another edition"):
        fetch_drug_consumption()


# --- the published content ---


@pytest.fixture
def published(monkeypatch):
    monkeypatch.setenv("FAIRPUL_DATA", str(FOLDER))


def counts(values):
    return dict(Counter(values.tolist()))


@needs_published_files
def test_compas_has_the_rows_that_propublica_counts(published):
    data, paper = fetch_compas(), fetch_compas(preprocessing="paper")
    # 3,175 and 2,103 are the counts in ProPublica's notebook.
    assert len(data.X) == 7214
    assert counts(data.group)["African-American"] == 3696
    assert counts(paper.group) == {"African-American": 3175, "Caucasian": 2103}
    assert counts(paper.y_true) == {0: 2795, 1: 2483}
    assert not any("race" in name for name in paper.feature_names + data.feature_names)


@needs_published_files
def test_the_paper_s_compas_features_say_what_the_columns_say(published):
    data = fetch_compas(preprocessing="paper")
    X = dict(zip(data.feature_names, data.X.T, strict=True))
    ages = sum(X[name] for name in data.feature_names if name.startswith("age_cat"))
    assert (ages == 1).all()
    under_25 = X["age_cat=Less than 25"] == 1
    assert data.columns["age"][under_25].max() <= 25
    assert np.array_equal(X["priors_count"], data.columns["priors_count"])


@needs_published_files
def test_german_credit_agrees_with_its_numeric_form(published):
    data, paper = fetch_german_credit(), fetch_german_credit(preprocessing="paper")
    assert counts(data.group) == {"female": 310, "male": 690}
    assert counts(data.y_true) == {0: 700, 1: 300}
    assert paper.X.shape == (1000, 24)
    # Both files list the same borrowers in the same order.
    assert np.array_equal(paper.X[:, 1], data.columns["duration"])
    assert np.array_equal(paper.X[:, 9], data.columns["age"])
    assert np.array_equal(paper.X[:, 6] == 2, data.group == "female")


@needs_published_files
def test_drug_consumption_counts_those_who_never_used_heroin(published):
    data = fetch_drug_consumption()
    paper = fetch_drug_consumption(preprocessing="paper")
    assert counts(data.group)["white"] == 1720
    assert counts(data.group)["black"] == 33
    assert counts(paper.group) == {"not white": 165, "white": 1720}
    assert paper.y_true.sum() == 1605
    assert np.array_equal(paper.y_true, 1 - data.y_true)
    assert np.array_equal(paper.X, data.X)


@needs_published_files
@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_frames_keep_values_and_types(published, backend):
    pytest.importorskip(backend)
    data = fetch_compas()
    frame = data.to_frame(backend)
    assert list(getattr(frame, "column_names", None) or frame.columns) == [
        *data.columns
    ]
    assert list(frame["race"].to_numpy()) == data.group.tolist()
    assert frame["age"].to_numpy().dtype == np.int64
    jailed = frame["c_jail_in"].to_numpy().astype("datetime64[us]")
    assert np.isnat(jailed).sum() == 307
    assert jailed[0] == np.datetime64("2013-08-13T06:03:42")


@needs_published_files
@pytest.mark.parametrize(
    ("fetch", "module", "names"),
    [
        (fetch_compas, compas, ["COMPAS"]),
        (fetch_german_credit, german_credit, ["GERMAN", "GERMAN_NUMERIC"]),
        (fetch_drug_consumption, drug_consumption, ["DRUG"]),
    ],
)
def test_download_and_named_folder_give_the_same_data(
    publisher, monkeypatch, fetch, module, names
):
    folder, address, cache = publisher
    for name in names:
        file = getattr(module, name)
        (folder / file.name).write_bytes((Path(FOLDER) / file.name).read_bytes())
        local = replace(file, url=address + file.name)
        monkeypatch.setattr(module, name, local)
    downloaded = fetch(preprocessing="paper")
    assert len(files_in(cache)) == len(names)
    monkeypatch.setenv("FAIRPUL_DATA", FOLDER)
    named = fetch(preprocessing="paper")
    assert np.array_equal(downloaded.X, named.X)
    assert np.array_equal(downloaded.group, named.group)


@pytest.mark.parametrize(
    "fetch", [fetch_compas, fetch_german_credit, fetch_drug_consumption]
)
def test_an_unknown_preprocessing_is_refused_before_any_download(fetch):
    with pytest.raises(ValueError, match="None or 'paper', got 'Paper'"):
        fetch(preprocessing="Paper")
