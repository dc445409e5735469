"""Checks that every relative link of the documentation names a file, and every anchor a heading of that file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "deploy" / "README.md", *ROOT.glob("docs/**/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_resolve(page: Path) -> None:
    broken = [link for link in links(page.read_text()) if not resolves(page, link)]
    assert not broken


def test_a_broken_link_is_found() -> None:
    page = ROOT / "docs" / "protocol.md"
    assert resolves(page, "#promises") and resolves(page, "../README.md#exit-codes")
    assert not any(resolves(page, link) for link in ("#no-such-heading", "no-such-page.md", "../README.md#promises"))


def links(text: str) -> list[str]:
    """Return the targets of a page's links that are no web addresses, without those in code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    return [found for found in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in found]


def resolves(page: Path, link: str) -> bool:
    """Say whether a page's link names a file that exists and, after `#`, one of its headings."""
    name, _, anchor = link.partition("#")
    target = (page.parent / name).resolve() if name else page
    return target.exists() and (not anchor or anchor in anchors(target.read_text()))


def anchors(text: str) -> set[str]:
    """Return the anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}
