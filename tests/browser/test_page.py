import pytest
from selenium.webdriver import ActionChains, Keys
from selenium.webdriver.common.by import By

from .conftest import look, requested

pytestmark = pytest.mark.browser

SERIOUS = ("serious", "critical")


def said(browser):
    return browser.find_element(By.ID, "explorer-says").text


def gap(browser):
    return browser.find_element(By.ID, "explorer-gap").text


def first_cut(browser):
    return browser.find_element(By.CSS_SELECTOR, "#explorer-rows td").text


def drawn(browser):
    """Positions of the marks of the explorer's figure."""
    marks = browser.find_elements(By.CSS_SELECTOR, "#explorer-figure .mark-symbol path")
    return [mark.get_attribute("transform") for mark in marks]


def test_the_page_asks_for_nothing_and_logs_no_error(opened, page):
    assert [url for url in requested(opened) if not url.startswith("data:")] == [
        page.as_uri()
    ]
    assert opened.get_log("browser") == []


def test_the_explorer_follows_the_keyboard(opened):
    floor = opened.find_element(By.ID, "recall")
    words, cut, marks = said(opened), first_cut(opened), drawn(opened)
    floor.send_keys(Keys.ARROW_RIGHT)
    assert floor.get_attribute("aria-valuetext") == "85%"
    assert said(opened) != words
    assert first_cut(opened) != cut
    assert drawn(opened) != marks


def shown(browser):
    """All that the explorer says, in words and numbers."""
    return browser.find_element(By.CSS_SELECTOR, ".results").text


@pytest.mark.parametrize("control", ["recall", "capacity", "tolerance", "bias"])
@pytest.mark.parametrize("by", ["keyboard", "mouse"])
def test_every_control_changes_what_is_shown(opened, control, by):
    if control == "capacity":
        opened.find_element(By.CSS_SELECTOR, "input[value=capacity]").click()
    slider = opened.find_element(By.ID, control)
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", slider)
    before, marks = shown(opened), drawn(opened)
    if by == "keyboard":
        slider.send_keys(Keys.END)
    else:
        ActionChains(opened).drag_and_drop_by_offset(
            slider, slider.size["width"] // 2 - 4, 0
        ).perform()
    assert slider.get_attribute("value") == slider.get_attribute("max")
    assert shown(opened) != before
    # A bias that is granted moves no estimate, only what is possible around it.
    assert (drawn(opened) != marks) == (control != "bias")


def test_every_control_can_be_reached_by_tab(opened):
    opened.execute_script("document.querySelector('#controls input').focus()")
    reached = []
    for _ in range(4):
        reached.append(opened.switch_to.active_element.get_attribute("id"))
        ActionChains(opened).send_keys(Keys.TAB).perform()
    assert reached[1:] == ["recall", "tolerance", "bias"]


def test_the_explorer_follows_the_mouse(opened):
    before = gap(opened)
    bias = opened.find_element(By.ID, "bias")
    opened.execute_script("arguments[0].scrollIntoView({block: 'center'})", bias)
    far_right = bias.size["width"] // 2 - 4
    ActionChains(opened).move_to_element_with_offset(
        bias, far_right, 0
    ).click().perform()
    assert bias.get_attribute("aria-valuetext") == "5 to 1"
    assert gap(opened) != before
    assert "with the bias granted" in gap(opened)


def test_a_capacity_takes_the_place_of_the_floor(opened):
    capacity = opened.find_element(By.CSS_SELECTOR, "input[value=capacity]")
    capacity.click()
    assert not opened.find_element(By.ID, "recall").is_displayed()
    assert opened.find_element(By.ID, "capacity").is_displayed()
    assert said(opened).startswith("With ")


def test_the_figure_shows_the_numbers_of_the_table(opened):
    spread = opened.find_elements(By.CSS_SELECTOR, "#explorer-figure .mark-symbol path")
    assert len(spread) == 4  # two rates of two groups


@pytest.mark.parametrize("width", [320, 375, 768, 1280])
def test_nothing_is_wider_than_the_screen(opened, width):
    look(opened, width)
    wide = opened.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [375, 1280])
def test_axe_has_no_serious_finding(opened, axe, scheme, width):
    look(opened, width, scheme)
    opened.execute_script(axe)
    found = opened.execute_async_script(
        "const done = arguments[0]; axe.run(document).then(r => done(r.violations))"
    )
    serious = {
        one["id"]: [node["html"][:120] for node in one["nodes"]][:4]
        for one in found
        if one["impact"] in SERIOUS
    }
    assert serious == {}


def test_print_leaves_out_what_cannot_be_moved(opened):
    look(opened, 800, media="print")
    assert not opened.find_element(By.ID, "controls").is_displayed()
    assert opened.find_element(By.ID, "explorer-rows").is_displayed()
    look(opened, 1280)
