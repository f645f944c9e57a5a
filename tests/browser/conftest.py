"""A page in headless Chromium that cannot reach any network."""

import json
import shutil
import subprocess
import tarfile

import pytest

webdriver = pytest.importorskip("selenium.webdriver")

from selenium.webdriver.chrome.service import Service  # noqa: E402

from fairpul import GroupScores, audit  # noqa: E402
from fairpul.datasets import make_underdiagnosed  # noqa: E402
from fairpul.report.exhibits import exhibits  # noqa: E402
from fairpul.report.html import to_html  # noqa: E402


@pytest.fixture(scope="session")
def page(tmp_path_factory):
    data = make_underdiagnosed(4000, groups=("women", "men"), random_state=1)
    scores = GroupScores(data.score, data.labeled, data.group)
    path = tmp_path_factory.mktemp("page") / "audit.html"
    path.write_text(to_html(exhibits(audit(scores, capacity=0.2))), "utf-8")
    return path


@pytest.fixture(scope="session")
def axe(tmp_path_factory):
    """Source text of axe-core, fetched when the tests run."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is needed to fetch axe-core")
    folder = tmp_path_factory.mktemp("axe")
    subprocess.run([npm, "pack", "axe-core@4", "--silent"], cwd=folder, check=True)
    (package,) = folder.glob("*.tgz")
    with tarfile.open(package) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


@pytest.fixture(scope="session")
def chromium():
    binary, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("chromium and chromedriver are needed")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in ("--headless=new", "--no-sandbox", "--hide-scrollbars"):
        options.add_argument(flag)
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    browser = webdriver.Chrome(options=options, service=Service(driver))
    browser.execute_cdp_cmd("Network.enable", {})
    browser.execute_cdp_cmd(
        "Network.emulateNetworkConditions",
        {"offline": True, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0},
    )
    yield browser
    browser.quit()


@pytest.fixture
def opened(chromium, page):
    """Open the page; give the browser once the explorer is ready."""
    from selenium.webdriver.support.ui import WebDriverWait

    chromium.get_log("browser")
    chromium.get_log("performance")
    look(chromium, 1280)
    chromium.get(page.as_uri())
    WebDriverWait(chromium, 20).until(
        lambda b: b.execute_script(
            "return document.documentElement.dataset.explorer === 'ready'"
        )
    )
    return chromium


def look(browser, width, scheme="light", media=""):
    """Set width, color scheme and medium of the page."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600},
    )
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {
            "media": media,
            "features": [
                {"name": "prefers-color-scheme", "value": scheme},
                # Smooth scrolling would move what is about to be clicked.
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ],
        },
    )


def requested(browser):
    """Addresses that the page asked for."""
    messages = [
        json.loads(entry["message"])["message"]
        for entry in browser.get_log("performance")
    ]
    return [
        message["params"]["request"]["url"]
        for message in messages
        if message["method"] == "Network.requestWillBeSent"
    ]
