"""The table's XML files: odd and damaged documents, encodings, values of each type, options, compression, folders.

What they say is told by lxml (independent_xml.py). Where the run takes another view than libxml2, the rows stand here, with the
words of docs/reading.md.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from random import Random
from typing import Any

from tests.support.compressed import COMPRESS
from tests.support.reading.independent import Columns
from tests.support.reading.table import Case, one
from tests.support.reading.table_rows import in_folders
from tests.support.reading.table_whole import damaged

_ROW = {"rowTag": "row"}
_COLUMNS: Columns = {
    "_id": "STRING",
    "a": "STRING",
    "n": "INT",
    "o": {"_u": "STRING", "_VALUE": "STRING", "m": "INT", "p": {"q": "STRING"}},
    "r": ["STRING"],
    "s": [{"_k": "STRING", "v": "BIGINT"}],
}
_XSI = 'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"'
_GOOD = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<!-- é --><rows>\n<row id="1"><a>x &lt; é</a><n>5</n></row>\n'
    '<row><o u="q">t<m>1</m></o><r>1</r><r/><s k="2"><v>3</v></s></row >\n</rows>\n'
).encode()


def cases() -> Iterator[Case]:
    yield from _documents()
    yield from _damaged()
    yield from _encodings()
    yield from _values()
    yield from _options()
    yield from _compressed()
    yield from _files()


def _case(kind: str, data: str | bytes, columns: Columns = _COLUMNS, **more: Any) -> Case:
    content = data.encode() if isinstance(data, str) else data
    options = _ROW | more.pop("options", {})
    return Case(f"xml/{kind}", "xml", one("a.xml", content), columns, options, **more)


# What stands between <rows> and </rows>.
_INSIDE: dict[str, str] = {
    "nothing": "",
    "rows": "<row/><row></row><row ></row ><row\n/>",
    "deep": "<x><y><row><a>1</a></row></y><row><a>2</a></row></x><row><a>3</a></row>",
    "a space at the end": "<row><a>1</a ></row >",
    "tags over lines": '<row\nid\n=\n"1"\n><a\n>1</a\n></row\n>',
    "names that begin alike": "<rows/><row2/><ro/><row-x/><row.x/><row/>",
    "upper case": "<ROW/><Row><a>1</a></Row><row><A>1</A><a>2</a></row>",
    "a comment": "<!-- <row/> --><row><!-- <a>1</a> --><a>2<!-- 3 -->4</a></row>",
    "cdata": "<![CDATA[<row><a>1</a></row>]]><row><a><![CDATA[<b>&amp;]]>c</a></row>",
    "an instruction": "<?x <row/>?><row><?row <a/>?><a>1<?x?>2</a></row>",
    "entities": "<row><a>&lt;&gt;&amp;&quot;&apos;&#65;&#x41;&#x1F600;&#10;x</a></row>",
    "entities in an attribute": "<row id='&lt;&#65;&quot;&#10;&#9;x'/>",
    "an entity that is none": "<row><a>&foo;</a></row>",
    "an entity that is none, beside": "<x>&foo;</x><row/>",
    "a bare ampersand": "<row><a>a & b</a></row>",
    "a character that is none": "<row><a>&#0;</a></row>",
    "half a pair": "<row><a>&#xD800;</a></row>",
    "a control character": "<row><a>\x01</a></row>",
    "a control character by number": "<row><a>&#1;</a></row>",
    "control characters that are some": "<row><a>x\x7f\x85\x9f&#x85;y</a></row>",
    "no character": "<row><a>\uffff</a></row>",
    "the end of cdata": "<row><a>a]]>b</a></row>",
    "two hyphens": "<!-- a -- b --><row/>",
    "ends of lines": "<row id='a\r\nb\rc\nd\te'><a>a\r\nb\rc\nd</a></row>",
    "white space": "<row><a>  x y\t</a><n>\n5 </n><r> </r><r>  1</r></row>",
    "other space": "<row><a>\u00a0x\u2003</a></row>",
    "an empty element": "<row><a/><n/><o/><r/><r></r><s/></row>",
    "an empty attribute": '<row id=""><o u=""/></row>',
    "attributes of values": '<row><a k="1">x</a><r k="2">y</r></row>',
    "a repeated element": "<row><a>1</a><a>2</a></row>",
    "a repeated element, empty": "<row><a/><a/></row>",
    "a repeated number": "<row><n>1</n><n>1</n></row>",
    "a repeated struct": "<row><o/><o/></row>",
    "repeated further on": "<row><r>1</r><a>x</a><r>2</r></row>",
    "a repeated attribute": '<row id="1" id="2"/>',
    "an element in a value": "<row><a>x<b>y</b></a></row>",
    "an element in a number": "<row><n>5<b/></n></row>",
    "an element in an array": "<row><r>x</r><r><b/></r></row>",
    "text in a row": "<row>text<a>1</a></row>",
    "text between elements": "<row><a>1</a>text<n>2</n></row>",
    "text in cdata between elements": "<row><a>1</a><![CDATA[x]]></row>",
    "text in a struct of elements": "<row><s>x<v>1</v></s></row>",
    "text before elements": "<row><o>t<m>1</m></o></row>",
    "text behind elements": "<row><o><m>1</m>t</o></row>",
    "text around elements": "<row><o>t<m>1</m>u</o></row>",
    "text around an element that is not read": "<row><o>t<x/>u</o></row>",
    "text around a comment": "<row><o>t<!-- x -->u</o></row>",
    "text of an attributes' element": '<row><o u="x">  y  </o></row>',
    "no text of it": '<row><o u="x">  </o></row>',
    "text around rows": "text<row/>more",
    "an element that is not read": "<row><x><a>1</a><n>x</n></x><a>2</a></row>",
    "an attribute that is not read": '<row x="1"><o v="2"/></row>',
    "a row in a row": "<row><a>1</a><row><a>2</a></row></row>",
    "a row deep in a row": "<row><x><y><row/></y></x></row>",
    "a row in a value": "<row><a><row/></a></row>",
    "an attribute's name": "<row><_id>1</_id></row>",
    "the text's name": "<row><o><_VALUE>1</_VALUE></o></row>",
    "nil": f'<x {_XSI}><row><a xsi:nil="true"/><n xsi:nil="1"/><o xsi:nil="true"/><r xsi:nil="true"/><r>1</r></row></x>',
    "nil with attributes": f'<row {_XSI}><o xsi:nil="true" u="1"/><s xsi:nil="true" x="2"/></row>',
    "not nil": f'<row {_XSI}><a xsi:nil="false">x</a><n xsi:nil="0"/></row>',
    "nil of another prefix": '<row xmlns:i="http://www.w3.org/2001/XMLSchema-instance"><a i:nil="true"/></row>',
    "nil of another namespace": '<row xmlns:xsi="urn:x"><a xsi:nil="true"/></row>',
    "nil, declared further out": f'<x {_XSI}><y xmlns:xsi="urn:x"><row><a xsi:nil="1"/></row></y><row><a xsi:nil="1"/></row>'
    "</x>",
    "nil, but not empty": f'<row {_XSI}><a xsi:nil="true">x</a></row>',
    "nil, but not empty, an element": f'<row {_XSI}><o xsi:nil="true"><m>1</m></o></row>',
    "nil, but a word": f'<row {_XSI}><a xsi:nil="yes"/></row>',
    "a nil row": f'<row id="1" {_XSI} xsi:nil="true"/>',
    "a nil row that is not empty": f'<row {_XSI} xsi:nil="true"><a>1</a></row>',
    "not closed": "<row><a>1</row>",
    "closed twice": "<row></row></row>",
    "crossed": "<row><a><b></a></b></row>",
    "a bracket": "<row><a>1 < 2</a></row>",
    "a bracket in an attribute": '<row id="<"/>',
    "no quotes": "<row id=1/>",
    "no value": "<row id/>",
    "no space between attributes": '<row id="1"x="2"/>',
    "a name that is none": "<row><1a/></row>",
    "an empty name": "<row>< a>1</a></row>",
    "a number of many digits": "<row><n>99999999999999999999</n></row>",
    "a comma": "<row><n>1,5</n></row>",
    "two signs": "<row><n>--5</n></row>",
    "a default namespace": '<x xmlns="urn:x"><row><a>1</a></row></x>',
    "a long text": f"<row><a>{'é&amp;x' * 100_000}</a></row>",
    "many rows": "".join(f"<row id='{number}'><a>{'x' * (number * 37 % 90)}</a></row>\n" for number in range(5000)),
    "many, and one that is cut": "<row><a>1</a></row>" * 20000 + "<row><a>1</a>",
    "deep elements": "<x>" * 150 + "<row/>" + "</x>" * 150,
}
# Whole documents. A question mark: the run may refuse what libxml2 takes.
_WHOLE: dict[str, str] = {
    "nothing": "",
    "white space": " \n\t ",
    "the root is a row": '<row id="1"><a>x</a></row>',
    "the root alone": "<rows/>",
    "text": "row",
    "two roots": "<rows><row/></rows><rows><row/></rows>",
    "two rows": "<row/><row/>",
    "text behind": "<rows><row/></rows>x",
    "a tag behind": "<rows><row/></rows></rows>",
    "a comment behind": "<rows><row/></rows><!-- <row/> -->\n<?x?>\n",
    "cdata behind": "<rows><row/></rows><![CDATA[<row/>]]>",
    "text before": "x<rows><row/></rows>",
    "space before": "\n <rows><row/></rows>",
    "space before the declaration": ' <?xml version="1.0"?><rows><row/></rows>',
    "two declarations": '<?xml version="1.0"?><?xml version="1.0"?><rows><row/></rows>',
    "a declaration inside": '<rows><?xml version="1.0"?><row/></rows>',
    "standalone": '<?xml version="1.0" standalone="yes"?><rows><row/></rows>',
    "single quotes": "<?xml version='1.0' encoding='utf-8'?><rows><row/></rows>",
    "no version": '<?xml encoding="UTF-8"?><rows><row/></rows>',
    "?version 1.1": '<?xml version="1.1"?><rows><row/></rows>',
    "a version that is none": '<?xml version="x"?><rows><row/></rows>',
    "an encoding that is none": '<?xml version="1.0" encoding="no-such"?><rows><row/></rows>',
    "a doctype": "<!DOCTYPE rows><rows><row/></rows>",
    "two doctypes": "<!DOCTYPE rows><!DOCTYPE rows><rows><row/></rows>",
    "a doctype behind": "<rows><row/></rows><!DOCTYPE rows>",
    "entities of its own": '<!DOCTYPE rows [<!ENTITY e "x">]><rows><row><a>&e;</a></row></rows>',
    "an unused entity": '<!DOCTYPE rows [<!ENTITY e "x">]><rows><row><a>1</a></row></rows>',
    "?a subset of nothing": "<!DOCTYPE rows []><rows><row/></rows>",
    "?a default attribute": '<!DOCTYPE rows [<!ATTLIST row id CDATA "7">]><rows><row/></rows>',
    "a file of entities": '<!DOCTYPE rows [<!ENTITY e SYSTEM "file:///etc/hostname">]><rows><row><a>&e;</a></row></rows>',
    "a file of declarations": '<!DOCTYPE rows SYSTEM "rows.dtd"><rows><row><a>1</a></row></rows>',
    "a bomb": "<!DOCTYPE rows ["
    + '<!ENTITY e0 "x">'
    + "".join(f'<!ENTITY e{level + 1} "{f"&e{level};" * 10}">' for level in range(9))
    + "]><rows><row><a>&e9;</a></row></rows>",
    "a mark": "\ufeff<rows><row/></rows>",
    "two marks": "\ufeff\ufeff<rows><row/></rows>",
    "a mark alone": "\ufeff",
    "a mark inside": "<rows>\ufeff<row/></rows>",
    "a nul": "<rows><row/>\0</rows>",
    "a nul behind": "<rows><row/></rows>\0",
}


def _documents() -> Iterator[Case]:
    for kind, inside in _INSIDE.items():
        yield _case(f"document/inside/{kind}", f"<rows>{inside}</rows>")
    for kind, whole in _WHOLE.items():
        yield _case(f"document/whole/{kind.lstrip('?')}", whole, may_refuse=kind.startswith("?"))
    columns: Columns = {"row": {"row": {"a": "INT"}, "a": "INT"}, "a": "INT"}
    nested = "<rows><row><a>1</a><row><a>2</a><row><a>3</a></row></row></row></rows>"
    yield _case("document/named/rows in rows", nested, columns)
    yield _case("document/named/one too deep", nested.replace("<a>3</a>", "<row/>"), columns)
    own = "<rows><row id='1'> x </row><row/><row>y<z/></row></rows>"
    yield _case("document/named/the row's own text", own, {"_id": "INT", "_VALUE": "STRING"})
    yield _case("document/named/several", "<rows><row><row/><row/></row></rows>", {"row": [{"a": "INT"}]})
    space = '<x:rows xmlns:x="urn:x"><x:row x:id="1"><x:a>1</x:a><a>2</a></x:row><row/></x:rows>'
    yield _case(
        "document/named/prefixes", space, {"_x:id": "INT", "x:a": "INT", "a": "INT"}, options={"rowTag": "x:row"}
    )
    yield _case(
        "habit/a prefix that is not declared", "<rows><row><x:a>1</x:a></row></rows>", {"x:a": "INT"}, expected=({"x:a": 1},),
        habit="with its prefix as written, declared or not",
    )  # fmt: skip
    yield _case("document/named/é", "<é><ö ä='1'><ü>2</ü></ö></é>", {"_ä": "INT", "ü": "INT"}, options={"rowTag": "ö"})
    yield _case(
        "document/named/odd names",
        "<rows><row><a-b>1</a-b><c.d>2</c.d><e:f xmlns:e='urn:e'>3</e:f></row></rows>",
        {"a-b": "INT", "c.d": "INT", "e:f": "INT"},
    )


def _damaged() -> Iterator[Case]:
    """Cut at every byte, and bytes that are changed, left out or doubled at random."""
    for cut in range(len(_GOOD)):
        yield _case(f"cut/{cut}", _GOOD[:cut])
    for number in range(300):
        random = Random(number)
        data = bytearray(_GOOD)
        for _ in range(random.randint(1, 2)):
            at = random.randrange(len(data))
            kind = random.randrange(4)
            if kind == 0:
                data[at] = random.choice(b"<>/\"'=&; \n!?-[]x1\xe9\x00\x80\xff")
            elif kind == 1:
                data[at] ^= 1 << random.randrange(8)
            elif kind == 2:
                del data[at : at + random.randint(1, 5)]
            else:
                data[at:at] = data[at : at + random.randint(1, 9)]
        # A declaration that was hit: libxml2 passes over some of what it does not know there.
        yield _case(f"random/{number}", bytes(data), may_refuse=not data.startswith(_GOOD[:39]))


def _encodings() -> Iterator[Case]:
    text = "<rows><row id='é'><a>ü\r\nß</a></row></rows>"
    names = {
        "UTF-8": "utf-8", "utf-8": "utf-8", "ISO-8859-1": "latin-1", "US-ASCII": "ascii", "ISO-8859-15": "iso8859-15",
        "windows-1252": "cp1252", "UTF-16": "utf-16", "UTF-16LE": "utf-16-le", "UTF-16BE": "utf-16-be", "KOI8-R": "koi8-r",
        "windows-1251": "cp1251", "EUC-JP": "euc_jp", "UTF-32": "utf-32", "EBCDIC-CP-US": "cp037",
    }  # fmt: skip
    for name, codec in names.items():
        declared = f'<?xml version="1.0" encoding="{name}"?>\n'
        odd = name in ("EUC-JP", "EBCDIC-CP-US", "UTF-32") or "UTF-16" in name
        # US-ASCII, and Cyrillic ones, have none of these letters.
        mine = (
            text
            if codec in ("utf-8", "latin-1", "iso8859-15", "cp1252") or "utf" in codec
            else "<rows><row><a>x</a></row></rows>"
        )
        yield _case(f"encoding/{name}/declared", (declared + mine).encode(codec), may_refuse=odd)
        yield _case(f"encoding/{name}/not declared", mine.encode(codec), may_refuse=odd)
        yield _case(f"encoding/{name}/declared and utf-8", (declared + text).encode(), may_refuse=odd)
        yield _case(
            f"encoding/{name}/declared and marked utf-8", ("\ufeff" + declared + text).encode(), may_refuse=True
        )
        yield _case(
            f"encoding/{name}/undecodable",
            declared.encode() + b"<rows><row><a>\x81\xff\x00</a></row></rows>",
            refused=True,
        )
    for codec, mark in itertools.product(("utf-16-le", "utf-16-be"), ("\ufeff", "")):
        declared = '<?xml version="1.0" encoding="UTF-16"?>'
        yield _case(
            f"encoding/{codec}/{bool(mark)}/declared", (mark + declared + text).encode(codec), may_refuse=not mark
        )
        yield _case(f"encoding/{codec}/{bool(mark)}/not declared", (mark + text).encode(codec), may_refuse=not mark)
        wrong = declared.replace("UTF-16", "UTF-8")
        yield _case(
            f"encoding/{codec}/{bool(mark)}/declared as UTF-8", (mark + wrong + text).encode(codec), refused=True
        )
        half = (mark + declared + "<rows><row><a>").encode(codec)
        rest = "x</a></row></rows>".encode(codec)
        for kind, unit in (("a lead alone", 0xD83D), ("a trail alone", 0xDE00)):
            alone = unit.to_bytes(2, "little" if codec.endswith("le") else "big")
            yield _case(f"encoding/{codec}/{bool(mark)}/{kind}", half + alone + rest, refused=True)
        yield _case(f"encoding/{codec}/{bool(mark)}/cut", (mark + declared + text).encode(codec)[:-1], refused=True)
    latin = text.encode("latin-1")
    yield _case("encoding/said/latin", latin, options={"encoding": "ISO-8859-1"})
    yield _case(
        "encoding/said/another",
        b"<?xml version='1.0' encoding='UTF-8'?>" + latin,
        options={"encoding": "ISO-8859-1"},
        refused=True,
    )
    yield _case("encoding/said/the same", text.encode(), options={"encoding": "UTF-8"})
    yield _case("encoding/said/overlong", b"<rows><row><a>\xc0\xaf</a></row></rows>", refused=True)
    yield _case("encoding/said/surrogates", b"<rows><row><a>\xed\xa0\xbd\xed\xb8\x80</a></row></rows>", refused=True)


_TEXTS: dict[str, tuple[str, ...]] = {
    "STRING": ("x", "", " ", "null", "é😀"),
    "BOOLEAN": ("true", "false", "1", "0", "TRUE", "yes", "", " true ", "2"),
    **dict.fromkeys(
        ("TINYINT", "SMALLINT", "INT", "BIGINT"),
        ("5", "+5", "-5", "007", "127", "128", "-128", "-129", "32768", "-32769", "2147483648", "9223372036854775807",
         "9223372036854775808", "-9223372036854775809", "--5", "5.0", "1e3", "0x5", "1,000", "1_000", "5 6", "٣",
         "", " 5\n", "-"),
    ),
    **dict.fromkeys(
        ("DECIMAL(10,2)", "DECIMAL(38,0)", "DECIMAL(5,5)"),
        ("1", "1.5", "1.50", "1.500", "1.239", "-0.5", ".5", "5.", "1,5", "1e2", "0.12345", "0.123456",
         "99999999.99", "100000000",
         "9" * 38, "9" * 39, "0" * 60 + "1", "0.5" + "0" * 60, "--5", "+1", "INF", "", "."),
    ),
    **dict.fromkeys(
        ("FLOAT", "DOUBLE"),
        ("1", "1.5", "0.1", "-0", "1e3", "1E-3", ".5", "5.", "INF", "-INF", "NaN", "Infinity", "nan", "1e400",
         "-1e400", "1e-400",
         "3.4028235e38", "3.5e38", "1e-50", "16777217", "1d", "0x1p3", "1,5", "--5", "", "1.00000017881393432617187499"),
    ),
    "DATE": ("2024-02-29", "2023-02-29", "2024-2-1", "20240201", "2024-02", "0001-01-01", "9999-12-31",
         "0000-01-01", "10:30", "now",
             "2024-02-01Z", "2024-02-01T00:00:00", "", "２０２４-01-01", " 2024-02-01 ", "-2024-02-01", "today"),
    **dict.fromkeys(
        ("TIMESTAMP", "TIMESTAMP_NTZ"),
        ("2024-02-29T10:30:00", "2024-02-29 10:30:00", "2024-02-29T10:30:00Z", "2024-02-29T10:30:00+02:00",
         "2024-02-29T10:30:00-14:00",
         "2024-02-29T10:30:00+14:01", "2024-02-29T10:30:00+02", "2024-02-29T10:30:00.5Z", "2024-02-29T10:30:00.123456",
         "2024-02-29T10:30:00.1234567Z", "2024-02-29T10:30:00.1234560Z", "2024-02-29", "10:30",
         "2024-02-29T24:00:00", "2024-02-29T23:59:60Z",
         "2023-02-29T00:00:00", "0001-01-01T00:00:00", "0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00",
         "1899-12-31T23:59:59Z",
         "1582-10-10T00:00:00Z", "now", "", "2024-02-29T10:30", "2024-02-29T10:30:00 Europe/Berlin", "1709202600"),
    ),
}  # fmt: skip


def _values() -> Iterator[Case]:
    for kind, texts in _TEXTS.items():
        columns: Columns = {"_x": kind, "v": kind, "w": [kind], "o": {"_VALUE": kind, "_y": kind}}
        for text in texts:
            places = {
                "an attribute": f"<row x='{text}'/>",
                "an element": f"<row><v>{text}</v></row>",
                "an array": f"<row><w>{text}</w><w>{text}</w></row>",
                "a struct": f"<row><o y='{text}'>{text}</o></row>",
            }
            for place, row in places.items():
                yield _case(f"typed/{kind}/{place}/{text[:50]!r}", f"<rows>{row}</rows>", columns)


def _options() -> Iterator[Case]:
    document = "<rows><row id=' 1 '><a>  x </a><n> 5 </n><o u=' q '>  t  </o><o2>  </o2><r>null</r><r/></row></rows>"
    columns: Columns = {
        "_id": "STRING",
        "a": "STRING",
        "n": "INT",
        "o": {"_u": "STRING", "_VALUE": "STRING"},
        "o2": {"_VALUE": "STRING"},
        "r": ["STRING"],
    }
    for spaces, null in itertools.product((None, "true", "false", "FALSE"), (None, "null", "", "5", "x")):
        options = {} if spaces is None else {"ignoreSurroundingSpaces": spaces}
        options |= {} if null is None else {"nullValue": null}
        asked = {name: value.lower() if name.startswith("ignore") else value for name, value in options.items()}
        yield _case(f"options/{spaces}/{null}", document, columns, options=asked)
    other: Columns = {"@id": "STRING", "o": {"@u": "STRING", "#text": "STRING"}, "_id": "STRING"}
    both = "<rows><row id='1'><_id>2</_id><o u='3'>4</o></row></rows>"
    yield _case("options/prefix and tag", both, other, options={"attributePrefix": "@", "valueTag": "#text"})
    yield _case(
        "options/a tag", "<rows><entry><a>1</a></entry><row/></rows>", {"a": "INT"}, options={"rowTag": "entry"}
    )
    yield _case("options/a tag that is not there", "<rows><entry/></rows>", {"a": "INT"})


def _compressed() -> Iterator[Case]:
    random = Random(3)
    rows = "".join(f"<row id='{number}'><a>{random.randbytes(20).hex()}</a></row>\n" for number in range(600))
    data = f"<rows>{rows}</rows>".encode()
    columns: Columns = {"_id": "INT", "a": "STRING"}
    for suffix in COMPRESS:
        for kind, packed in damaged(suffix, data, random):
            file = one(f"a.xml.{suffix}", packed)
            odd = "behind" in kind or "flip" in kind
            yield Case(f"xml/compressed/{suffix}/{kind}", "xml", file, columns, _ROW, may_refuse=odd)


def _files() -> Iterator[Case]:
    row = b"<rows><row><a>%d</a></row></rows>"
    columns: Columns = {"a": "INT"}
    several = {f"{name}.xml": row % number for number, name in enumerate("cab")}
    yield Case("xml/files/in order", "xml", lambda: several, columns, _ROW)
    bad = {**several, "b.xml": b"<rows><row>"}
    yield Case("xml/files/one is cut", "xml", lambda: bad, columns, _ROW)
    yield Case("xml/files/one is empty", "xml", lambda: {**several, "d.xml": b"", "_e.xml": b"x"}, columns, _ROW,
               expected=({"a": 1}, {"a": 2}, {"a": 0}))  # fmt: skip
    yield Case("xml/files/a zip by its name", "xml", one("a.zip", row % 1), columns, _ROW, refused=True)
    yield Case("xml/files/gzip by its bytes", "xml", one("a.xml", COMPRESS["gz"](row % 1)), columns, _ROW, refused=True)
    tree = {"K=01/a.xml": row % 1, "K=x%2Fy/b.xml": row % 2, "K=__HIVE_DEFAULT_PARTITION__/c.xml": row % 3}
    found = ({"a": 1, "K": "01"}, {"a": 3, "K": None}, {"a": 2, "K": "x/y"})
    yield Case("xml/folders/texts", "xml", lambda: tree, columns, _ROW, expected=found)
    yield from (
        case for case in in_folders("xml", row % 1, {"a": 1}, columns=columns, options=_ROW) if case.where is None
    )
    years = {"y=2024/m=01/a.xml": row % 1, "y=2025/m=12/b.xml": row % 2}
    typed: Columns = {"y": "INT", "a": "INT"}
    yield Case("xml/folders/typed", "xml", lambda: years, typed, _ROW,
               expected=({"a": 1, "y": 2024, "m": "01"}, {"a": 2, "y": 2025, "m": "12"}))  # fmt: skip
    yield Case("xml/folders/not of their type", "xml", lambda: {"y=x/a.xml": row % 1}, typed, _ROW, refused=True)
    yield Case(
        "xml/folders/beyond their type",
        "xml",
        lambda: {"y=300/a.xml": row % 1},
        {"y": "TINYINT", "a": "INT"},
        _ROW,
        refused=True,
    )
    taken = {"a=7/a.xml": row % 1}
    yield Case("xml/folders/the data has it", "xml", lambda: taken, columns, _ROW, refused=True)
    yield Case(
        "xml/folders/the data has it, in another case",
        "xml",
        lambda: {"A=7/a.xml": row % 1},
        columns,
        _ROW,
        refused=True,
    )
    unread = {"b=7/a.xml": b"<rows><row><a>1</a><b>2</b></row></rows>"}
    yield Case(
        "xml/folders/the data has it, not read", "xml", lambda: unread, columns, _ROW, expected=({"a": 1, "b": "7"},)
    )
    cases = {"k=1/a.xml": row % 1, "K=2/b.xml": row % 2}
    yield Case("xml/folders/two spellings", "xml", lambda: cases, columns, _ROW, refused=True)
