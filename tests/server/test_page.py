"""The page in a real browser, and the demo that fills it."""

import re
import sqlite3
import time
from contextlib import closing, suppress

import pytest

from browser import chromium, open_at, requested
from longterm.server import Client, ServerError
from servers import SERVICE, in_process, in_thread

WebDriverWait = pytest.importorskip("selenium.webdriver.support.ui", reason="needs selenium").WebDriverWait

pytestmark = pytest.mark.slow

SIZES = {"phone": (390, 844), "desktop": (1440, 900)}
HOSTILE = '<img src=x onerror="document.title=1">'
TITLES = "return [...document.querySelectorAll(`[data-object='${arguments[0]}'] figcaption b`)].map(b => b.textContent)"
DRAWN = "return document.querySelectorAll('svg path.curve[d], svg rect').length"
CROWDED = """
const wide = [...document.querySelectorAll('h1, h2, dd, figcaption, svg, button')];
const cut = e => e.clientWidth && e.scrollWidth > e.clientWidth + 1;
const over = e => cut(e) || e.getBoundingClientRect().right > innerWidth + 1;
return wide.filter(over).map(e => e.outerHTML.slice(0, 100));
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory):
    with chromium(tmp_path_factory.mktemp("profile")) as driver:
        yield driver


@pytest.fixture(scope="module")
def busy(tmp_path_factory):
    """A server with some history in every object, and a name that is markup."""
    text = SERVICE.replace('title = "Test"', f"title = '{HOSTILE}'").replace("accounts.team", f"accounts.'{HOSTILE}'")
    text = text.replace('parent = "organisation"}', 'parent = "organisation", period = "day"}')
    text = text.replace("[ledger.money]", 'guide = "https://example.org/guide"\n[ledger.money]', 1)
    with in_thread(tmp_path_factory.mktemp("busy"), text, step=1) as url, Client(url) as client:
        for number in range(12):
            with suppress(ServerError):  # 402 after the eighth
                client.hold("money", "organisation", 120, f"{number}")
            client.settle("models", client.act("models", prompt="x")["token"], reward=1.0, cost=1e-5)
            client.settle("images", client.act("images", context=[1.0, 0.5], costs=[0.0, 0.1])["token"], reward=1.0)
            client.settle("campaign", client.bid("campaign", 0.5)["token"], paid=0.1)
            client.tell("power", client.ask("power")["token"], loss_parameters=[[1.0, 0.0]])
            client.tell("demand", client.ask("demand", prediction=1.0, groups=["a"])["token"], outcome=1.0 + number % 3)
            time.sleep(0.2)
        client.set("campaign", budget=12.0, note="ticket 9")
        for number in range(60):  # they leave what people have changed on the page
            with suppress(ServerError):
                client.hold("money", "organisation", 120, f"more {number}")
        yield url


def ready(driver):
    WebDriverWait(driver, 20).until(lambda d: d.execute_script(DRAWN) > 10)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", SIZES)
def test_the_page_fits_and_asks_no_other_machine(driver, busy, size, scheme):
    open_at(driver, f"{busy}/", *SIZES[size], scheme)
    ready(driver)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= SIZES[size][0]
    assert driver.execute_script(CROWDED) == []
    assert all(address.startswith(busy) for address in requested(driver))
    assert [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_every_object_has_its_charts(driver, busy):
    open_at(driver, f"{busy}/", *SIZES["desktop"])
    ready(driver)
    titles = {name: driver.execute_script(TITLES, name) for name in ("money", "images", "models", "campaign", "power")}
    assert titles["money"] == [
        f"Money: {HOSTILE}, cent, this day (UTC)",
        "Money: organisation, cent, since the start",
        "Refusals",
    ]
    assert titles["images"] == ["Money, since the start", "Price of money", "Actions chosen"]
    assert titles["models"] == ["Money, dollar, since the start", "Price of money", "Actions chosen"]
    assert titles["campaign"] == ["Money, since the start", "Price of money"]
    assert titles["power"] == ["Multiplier", "Violation"]
    assert driver.execute_script(TITLES, "demand") == ["Coverage"]


def test_texts_are_not_parsed(driver, busy):
    open_at(driver, f"{busy}/", *SIZES["desktop"])
    ready(driver)
    assert driver.execute_script("return document.images.length") == 0
    assert driver.title == HOSTILE


def test_the_time_shown_can_be_chosen(driver, busy):
    open_at(driver, f"{busy}/", *SIZES["desktop"])
    ready(driver)
    driver.find_element("css selector", "button[data-seconds='900']").click()
    WebDriverWait(driver, 10).until(lambda d: any("seconds=900" in address for address in requested(d)))
    pressed = driver.find_elements("css selector", "button[aria-pressed=true]")
    assert [button.text for button in pressed] == ["15 min"]


def test_words_are_explained_and_the_last_refusals_listed(driver, busy):
    open_at(driver, f"{busy}/", *SIZES["phone"])
    ready(driver)
    captions = driver.execute_script(
        "return [...document.querySelectorAll('figure')].map(f => f.querySelector('p')?.textContent)"
    )
    assert all(captions)
    read = "return [...document.querySelectorAll(`#${arguments[0]} tbody tr`)].map(r => r.textContent)"
    WebDriverWait(driver, 20).until(lambda d: len(d.execute_script(read, "refusals")) == 50)
    assert all("refused" in row and "money/organisation" in row for row in driver.execute_script(read, "refusals"))
    (change,) = driver.execute_script(read, "changes")
    assert "budgetcampaign10 → 12 ticket 9this machine" in change.replace(".0", "")
    assert driver.find_element("css selector", "#guide a").get_attribute("href") == "https://example.org/guide"


def test_a_week_can_be_shown(driver, busy):
    open_at(driver, f"{busy}/", *SIZES["phone"])
    ready(driver)
    driver.find_element("css selector", "button[data-seconds='604800']").click()
    WebDriverWait(driver, 10).until(lambda d: any("seconds=604800" in address for address in requested(d)))
    WebDriverWait(driver, 10).until(lambda d: "updated" in d.find_element("id", "state").text)
    assert driver.execute_script("return document.querySelectorAll('svg path.curve').length") > 0
    assert driver.execute_script(CROWDED) == []


@pytest.mark.parametrize("size", SIZES)
def test_many_accounts_are_a_table_with_search(driver, tmp_path, size):
    accounts = "".join(f"accounts.team-{k:03} = {{limit = {1000 + k}}}\n" for k in range(200))
    text = f"database = 'a.db'\n[ledger.money]\nunit = 'cent'\n{accounts}"
    with in_thread(tmp_path, text, step=1) as url, Client(url) as client:
        client.hold("money", "team-077", 500, "one")
        client.settle_hold("money", "one", 500)
        open_at(driver, f"{url}/", *SIZES[size])
        rows = "return [...document.querySelectorAll('.accounts tbody tr')].map(r => r.textContent)"
        WebDriverWait(driver, 20).until(lambda d: len(d.execute_script(rows)) == 50)
        assert driver.execute_script(rows)[0].startswith("team-077500")  # the fullest account comes first
        assert len(driver.find_elements("css selector", "figure")) == 1
        driver.find_element("css selector", "input[type=search]").send_keys("-19")
        assert len(driver.execute_script(rows)) == 10
        time.sleep(2.5)  # the page is drawn again, and what was typed stays
        assert len(driver.execute_script(rows)) == 10
        driver.find_element("css selector", ".accounts tbody button").click()
        assert driver.execute_script(TITLES, "money")[0].startswith("Money: team-19")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= SIZES[size][0]
        assert driver.execute_script(CROWDED) == []


def test_the_page_shows_a_pacer_without_money_and_names_what_it_leaves_out(driver, tmp_path):
    with in_thread(tmp_path, step=1) as url, Client(url) as client:
        client.bid("campaign", 1000.0)
        for _ in range(3):
            client.bid("campaign", 1.0)
        client.set("campaign", budget=12.0)
        time.sleep(1.5)
        with closing(sqlite3.connect(tmp_path / "service.db")) as other, other:
            damaged = "UPDATE longterm_objects SET state = x'00', version = version + 1 WHERE name = 'images'"
            other.execute(damaged)
        open_at(driver, f"{url}/", *SIZES["desktop"])
        read = "return document.querySelector(arguments[0])?.textContent"
        WebDriverWait(driver, 20).until(lambda d: d.execute_script(read, "#changes p"))
        assert driver.execute_script(read, "#changes p").endswith(": images")
        assert "refused in this time3" in driver.execute_script(read, "[data-object=campaign]")


def test_the_page_says_that_the_server_is_gone(driver, tmp_path):
    with in_thread(tmp_path, step=1) as url:
        open_at(driver, f"{url}/", *SIZES["desktop"])
        WebDriverWait(driver, 10).until(lambda d: "updated" in d.find_element("id", "state").text)
    WebDriverWait(driver, 20).until(lambda d: "no answer" in d.find_element("id", "state").text)


def test_the_demo_fills_the_page(driver):
    with in_process("--demo", "--workers", "2") as (url, _):
        open_at(driver, f"{url}/", *SIZES["phone"])
        ready(driver)
        requests = "return document.querySelector(\"[data-object='models'] dd\").textContent"
        first = int(re.sub(r"\D", "", driver.execute_script(requests)))
        WebDriverWait(driver, 30).until(lambda d: int(re.sub(r"\D", "", d.execute_script(requests))) > first)
