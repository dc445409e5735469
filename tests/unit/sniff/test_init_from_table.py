"""`init --from postgresql://…`: which addresses are taken, that no password is repeated, the spec that is written.

tests/integration/test_init_from_table.py has a real server.
"""

from __future__ import annotations

import tomllib

import pytest

from eosingest.errors import SpecError
from eosingest.sources.postgres.connection import check_url
from eosingest.sources.postgres.discover import Address, address_of
from eosingest.spec import spec_for_table

SECRET = "hunter2"


@pytest.mark.parametrize(
    ("text", "url", "table"),
    [
        ("postgresql://me@db:5432/shop/public.orders", "postgresql://me@db:5432/shop", "public.orders"),
        ("postgres://db/shop/orders?sslmode=require", "postgresql://db/shop?sslmode=require", "orders"),
        ("POSTGRESQL://a:1,b:2/s/t", "postgresql://a:1,b:2/s", "t"),
        ("postgresql:///shop/t", "postgresql:///shop", "t"),
        ("postgresql://[::1]:5432/shop/a%20b.c%2Fd", "postgresql://[::1]:5432/shop", "a b.c/d"),
        ("postgresql://db/shop", "postgresql://db/shop", ""),
        ("postgresql://db/shop/", "postgresql://db/shop", ""),
    ],
)
def test_an_address(text: str, url: str, table: str) -> None:
    assert address_of(text) == Address(url, table)


def test_an_address_is_written_as_it_was_given() -> None:
    """Breaks when a comment of the spec names another table than the one that was looked at."""
    text = "postgresql://me@db/shop/a%20b.c%2Fd?sslmode=require"
    assert str(address_of(text)) == text
    assert str(Address("postgresql://db/shop", "a\nb")) == "postgresql://db/shop/a%0Ab"


@pytest.mark.parametrize("text", ["orders.csv", "s3://b/k", "postgresql", "postgres/orders.csv", "kafka://h:1/t"])
def test_what_is_no_address(text: str) -> None:
    """Breaks when a file is taken for a table."""
    assert address_of(text) is None


@pytest.mark.parametrize(
    "text",
    [
        "postgresql://db",
        "postgresql://db/",
        "postgresql://db//orders",
        "postgresql://db/shop/a/b",
        "postgresql://[db/shop/t",
        "postgresql://db/shop/t?host=other",
        "postgresql://db/shop/t?options=-c",
        "postgresql://db/shop/a%00b",
    ],
)
def test_a_wrong_address(text: str) -> None:
    with pytest.raises(SpecError) as refused:
        address_of(text)
    assert (refused.value.code, text in str(refused.value)) == ("bad-address", False)


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://me:{SECRET}@db/shop/t",
        f"postgresql://me:{SECRET}/x@db/shop/t",
        f"postgresql://me:a@{SECRET}@db/shop/t",
        f"postgresql://me:{SECRET}#@db/shop/t",
        f"postgresql://me:{SECRET}[@db/shop/t",
        f"postgresql://me:{SECRET}?x@db/shop/t",
        f"postgresql://me:a/b?{SECRET}@db/shop/t",
        f"postgresql://db/shop/t?password={SECRET}",
        f"postgresql://db/shop/t?sslpassword={SECRET}",
        f"postgresql://db/shop/t?sslmode=require&password={SECRET}",
    ],
)
def test_a_password_in_an_address(text: str) -> None:
    """Breaks when one is taken, or repeated: also one that does not keep to the form of a URL."""
    with pytest.raises(SpecError) as refused:
        address_of(text)
    assert refused.value.code == "credentials-in-address"
    assert SECRET not in f"{refused.value}{refused.value.hint}"


@pytest.mark.parametrize(
    ("url", "taken"),
    [
        ("postgresql://me@db:5432/shop", True),
        ("postgresql://db:5432/shop@1", True),
        ("postgresql://a:1,[::1]:2,c/shop@1?sslmode=require", True),
        ("postgresql:///shop", True),
        (f"postgresql://me:{SECRET}@db/shop", False),
        (f"postgresql://me:{SECRET}?x@db/shop", False),
        (f"postgresql://me:{SECRET}/x@db/shop", False),
        (f"postgresql://db/shop?sslpassword={SECRET}", False),
    ],
)
def test_the_url_of_a_spec(url: str, taken: bool) -> None:
    """Breaks when a password passes that libpq would find, and be shown; or a name with an `@` is taken for one."""
    if taken:
        assert check_url(url) == url
        return
    with pytest.raises(ValueError, match="must") as refused:
        check_url(url)
    assert SECRET not in str(refused.value)


def test_names_that_mean_something_in_a_spec() -> None:
    """Breaks when a name is taken for a reference, or ends a comment or a string."""
    text = spec_for_table(
        address="postgresql://db/s/t\nname = 1",
        url="postgresql://db/${x}",
        password="${env:X}",
        has_password=False,
        table='public."a""${env:X}\n"',
        key=["id", 'odd "${param:y}'],
        record_key="to_json(struct(id))",
        incremental=False,
        notes=["two\nlines"],
    )
    read = tomllib.loads(text)
    assert read["source"]["table"] == 'public."a""$${env:X}\n"'
    assert read["source"]["key"] == ["id", 'odd "$${param:y}']
    assert read["source"]["url"] == "postgresql://db/$${x}"
    assert "password" not in read["source"] and read["name"] == "a-env-X"
