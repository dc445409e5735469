"""Decides for jobs that resume after the last sent key which tables allow it, and which keys violate it.

Used by snapshot.py, which waits for open writers before it takes the snapshot, and by source.py. It relies on the sequence of a
table's keys: an INSERT locks the table before it draws a key, so no lower key can follow after that wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from eosingest.errors import ChangedError, FatalError, SpecError
from eosingest.sources.postgres.keyset_sql import quoted
from eosingest.sources.postgres.ranges import WHOLE_KEYS, KeyRange, KeyValue, Relation

# Whether a table is plain, and the sequence that its column's default draws from, or that an identity column has.
_TABLE = """
select c.oid, c.relkind = 'r' and not c.relhassubclass and not exists (select from pg_inherits i where i.inhrelid = c.oid)
from pg_class c where c.oid = to_regclass(%s)
"""
_SEQUENCE = """
select s.seqrelid, s.seqcache, s.seqincrement, s.seqcycle from pg_sequence s where s.seqrelid in (
  select p.refobjid from pg_attribute a join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  join pg_depend p on p.classid = 'pg_attrdef'::regclass and p.objid = d.oid and p.refclassid = 'pg_class'::regclass
  where a.attrelid = %(oid)s and a.attname = %(key)s
    and pg_get_expr(d.adbin, d.adrelid) ~ $re$^nextval\\('([^']|'')+'::regclass\\)$$re$
  union all
  select p.objid from pg_attribute a join pg_depend p on p.refobjid = a.attrelid and p.refobjsubid = a.attnum
  where a.attrelid = %(oid)s and a.attname = %(key)s and a.attidentity <> '' and p.deptype = 'i'
    and p.classid = 'pg_class'::regclass and p.refclassid = 'pg_class'::regclass)
"""


def sequence_of(connection: Any, relation: Relation) -> int:
    """Return the oid of the sequence of a table's keys. Raises SpecError if none allows `incremental`."""
    (key,) = relation.keys
    oid, is_plain = connection.execute(_TABLE, (relation.name,)).fetchone()
    found = connection.execute(_SEQUENCE, {"oid": oid, "key": key.name}).fetchone()
    if not is_plain:
        raise _refused(relation, "it is partitioned, a part or a child: an INSERT draws a key before it locks the part")
    if key.type not in WHOLE_KEYS or found is None:
        raise _refused(relation, f"{key.name} has no default nextval('…') and is no identity column")
    sequence, cache, increment, cycles = found
    if cache != 1:
        raise _refused(relation, f"the sequence of {key.name} has CACHE {cache}: a session uses its keys later")
    if increment <= 0 or cycles:
        raise _refused(relation, f"the sequence of {key.name} does not ascend for ever")
    return int(sequence)


def _refused(relation: Relation, why: str) -> SpecError:
    return SpecError(
        f"source.incremental: not possible for {relation.name}: {why}; lower keys may be committed after greater ones",
        code="source-not-incremental",
        hint="nothing was sent; leave incremental out, or give the table a key from a sequence with CACHE 1",
    )


def last_sent(relation: Relation, sent: Iterable[KeyRange]) -> KeyValue | None:
    """Return the greatest key up to which the table was sent. Raises ChangedError if a job without `incremental` sent it."""
    last: KeyValue | None = None
    for split in sent:
        if not split.settled:
            raise ChangedError(
                f"{split.label} was sent without incremental: rows with lower keys may have been committed since",
                code="source-not-incremental",
                hint="nothing more was sent; take a new job name, or send the whole table again, in addition to the records in"
                " the sink, with: eosingest run SPEC --from-scratch",
                item=relation.name,
            )
        if last is None or int(split.upto[0]) > int(last[0]):
            last = split.upto
    return last


def refuse_keys_ahead(connection: Any, relation: Relation, last: KeyValue | None) -> None:
    """Raise FatalError if the table has a key, or one was sent (`last`), that its sequence has not given yet.

    It was set by hand, or the sequence was set back: the next keys would be lower than sent ones.
    """
    key = quoted(relation.keys[0].name)
    sequence = sequence_of(connection, relation)
    greatest, given = connection.execute(
        f"select (select max(t.{key}) from {relation.sql} as t), pg_sequence_last_value(%s)", (sequence,)
    ).fetchone()
    ahead = max(greatest or 0, int(last[0]) if last is not None else 0)
    if ahead > (given or 0):
        had, above = (f"the key {ahead}", f"{given or 0}") if not relation.hides_keys else ("a key", "a lower one")
        raise FatalError(
            f"source.incremental: {relation.name} has, or had, {had}, and its sequence has given none above"
            f" {above}: keys were set by hand, or the sequence was set back; those that it gives next would be missed",
            code="source-key-by-hand",
            hint="committed records are kept; set the sequence to the greatest key (setval) and run again; rows that came with"
            " keys below the sent ones need --from-scratch",
            item=relation.name,
        )
