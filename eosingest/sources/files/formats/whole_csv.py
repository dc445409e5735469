"""Cuts CSV into rows of several lines (`multiLine = true`), by a strict grammar.

For the inspection (inspection.py) and the tasks' reader, on the decoded text of whole_text.py. A quoted field ends before a
delimiter or a row's end, and other row's ends are in quotes only: so a quote that is never closed is found, and every reader
reads the same rows. Regular expressions match many whole rows at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from eosingest.sources.files.bytes.text_blocks import BadTextError, encoding_of
from eosingest.sources.files.formats.csv_rows import Dialect, escape_outside_of_quotes, or_another_escape, shown
from eosingest.sources.files.formats.whole_text import LONGEST_RECORD, decoded

_LOOKED_AT = 1 << 20  # so many characters without a whole row are searched for errors


def whole_rows(pieces: Iterable[bytes], options: Mapping[str, str]) -> Iterator[str]:
    """Yield a file's text in pieces of whole rows, each with its end. Raises BadTextError for the first wrong row."""
    grammar = Grammar.of(options)
    rest, line, waiting, wanted = "", 1, list[str](), 0
    for piece in decoded(pieces, encoding_of(options)):
        waiting.append(piece)
        wanted -= len(piece)
        if wanted > 0:  # a long row is not matched again for every piece
            continue
        text = rest + "".join(waiting)
        waiting.clear()
        end = grammar.rows.match(text).end()  # type: ignore[union-attr]
        if end:
            yield text[:end]
        line += text.count("\n", 0, end)
        rest = text[end:]
        wanted = len(rest)
        if len(rest) > _LOOKED_AT:
            grammar.look(rest, line, final=False)
    rest += "".join(waiting)
    if rest:
        last = rest + grammar.end
        end = grammar.rows.match(last).end()  # type: ignore[union-attr]
        if end < len(rest):
            grammar.look(rest[end:], line + rest.count("\n", 0, end), final=True)
        yield last


@dataclass(frozen=True)
class Grammar:
    """The regular expressions of a dialect. Their quantifiers are possessive, so that they take linear time."""

    dialect: Dialect
    end: str
    rows: re.Pattern[str]
    one: re.Pattern[str]
    field: re.Pattern[str]
    opened: re.Pattern[str]
    plain: re.Pattern[str]

    @staticmethod
    def of(options: Mapping[str, str]) -> Grammar:
        """Make the grammar of the options of a spec."""
        dialect = Dialect.of(options)
        end = {name.lower(): value for name, value in options.items()}.get("linesep", "\n")
        delimiter, quote, escape, ends = map(re.escape, (dialect.delimiter, dialect.quote, dialect.escape, end))
        if dialect.escape in ("", dialect.quote):
            body = rf"[^{quote}]*+(?:{quote}{quote}[^{quote}]*+)*+" if dialect.escape else rf"[^{quote}]*+"
            inside = rf"[^{quote}]|{quote}{quote}" if dialect.escape else rf"[^{quote}]"
            stops, escaped = "", ""
        else:
            body = inside = rf"(?:[^{quote}{escape}]|{escape}.)"
            body += "*+"
            stops, escaped = escape, rf"|{escape}(?!{quote}|{escape}|{delimiter}|[\r\n]|\Z)"
        if len(dialect.delimiter) == 1:
            plain = (
                rf"(?!{quote})(?:[^{delimiter}\r\n{stops}]{escaped})*+"
                if escaped
                else rf"(?!{quote})[^{delimiter}\r\n]*+"
            )
        else:
            plain = rf"(?!{quote})(?:(?!{delimiter})[^\r\n{stops}]{escaped})*+"
        field = rf"(?:{quote}{body}{quote}(?={delimiter}|{ends})|{plain})"
        row = rf"{field}(?:{delimiter}{field})*+{ends}"
        comment = re.escape(dialect.comment)
        if comment:
            row = rf"(?:{comment}[^\r\n]*+{ends}|(?!{comment}){row})"
        skipped = rf"(?:{comment}[^\r\n]*+{ends}|{ends})*+" if comment else rf"(?:{ends})*+"
        flags = re.DOTALL
        return Grammar(
            dialect,
            end,
            rows=re.compile(rf"(?:{row})*+", flags),
            one=re.compile(rf"{skipped}({row})", flags),
            field=re.compile(rf"{field}(?:{delimiter}|{ends})", flags),
            opened=re.compile(rf"{quote}(?:{inside})*+", flags),
            plain=re.compile(plain, flags),
        )

    def each(self, text: str) -> Iterator[str]:
        """Yield the rows of a text of whole rows, each without its end; empty lines and comments are none."""
        at = 0
        while (found := self.one.match(text, at)) is not None:
            at = found.end()
            yield found[1].removesuffix(self.end)

    def look(self, text: str, line: int, *, final: bool) -> None:
        """Check a text that begins with an incomplete row. Raises BadTextError if that row is wrong.

        Not `final`: more text follows, and a row that may continue in it is not wrong.
        """
        if self.dialect.comment and text.startswith(self.dialect.comment):
            at = _up_to(text, "\r\n")
        else:
            at = 0
            while (found := self.field.match(text, at)) is not None:
                at = found.end()
        line += text.count("\n", 0, at)
        if text.startswith(self.dialect.quote, at) and not text.startswith(("\r", "\n"), at):
            self._quoted(text, at, line, final=final)
        else:
            self._plain(text, at, line, final=final)

    def _quoted(self, text: str, at: int, line: int, *, final: bool) -> None:
        behind = self.opened.match(text, at).end()  # type: ignore[union-attr]
        if behind >= len(text):
            if not final and len(text) - at <= LONGEST_RECORD:
                return
            raise BadTextError(
                f"a quoted field does not end: {_shown(text, at)}",
                line=line,
                hint=f"close the quote{or_another_escape(self.dialect)}",
            )
        if behind + 1 + max(len(self.end), len(self.dialect.delimiter)) > len(text) and not final:
            return
        rest = text[behind + 1 :]
        line += text.count("\n", at, behind)
        if rest.startswith(("\r", "\n")):
            raise self._other_end(rest, line)
        raise BadTextError(
            f"a quote inside a quoted field that is not escaped, or text after the field: {_shown(text, behind)}",
            line=line,
            hint=or_another_escape(self.dialect).removeprefix("; ")
            or "escape the quote, or remove the text after the field",
        )

    def _plain(self, text: str, at: int, line: int, *, final: bool) -> None:
        behind = self.plain.match(text, at).end() if not text.startswith(("\r", "\n"), at) else at  # type: ignore[union-attr]
        rest = text[behind:]
        if not final and len(rest) <= len(self.end):
            if len(text) - at > LONGEST_RECORD:
                raise BadTextError(f"a field of more than {LONGEST_RECORD >> 20} MiB", line=line)
            return
        if rest.startswith(("\r", "\n")):
            raise self._other_end(rest, line)
        if rest:
            raise escape_outside_of_quotes(_shown(text, behind), line)

    def _other_end(self, rest: str, line: int) -> BadTextError:
        found = rest[:2] if rest.startswith("\r\n") else rest[0]
        wanted = {"\n": "\\n", "\r\n": "\\r\\n"}.get(found)
        words = {"\n": "a line feed", "\r\n": "a carriage return and a line feed", "\r": "a carriage return"}
        hint = "make all rows of all files end alike"
        if wanted is not None:
            hint += f'; if they all do as this one, set source.options.lineSep = "{wanted}"'
        return BadTextError(
            f"{words[found]} outside of quotes, where a row ends with {words[self.end]}",
            line=line,
            hint=hint,
        )


def _up_to(text: str, characters: str) -> int:
    found = [at for each in characters if (at := text.find(each)) >= 0]
    return min(found, default=len(text))


def _shown(text: str, at: int) -> str:
    """Return the text around an index, for a message."""
    return shown(text, at).strip()
