//! Where the rows are whose leading key parts satisfy tests: intervals of row keys.
//!
//! The intervals hold every such row, and may hold others.

use crate::error::Result;
use crate::schema::domain::{Domain, Edge, Interval, Side};
use crate::schema::key::{Extent, KeyPart, PartKind, int_bytes};
use crate::schema::{Key, ScalarType, Value, entry, term};
use bytes::Bytes;

/// The most intervals that come of the values of several parts.
const MAX_INTERVALS: usize = 4_096;

/// Row keys from `start` on, up to and without `stop`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyInterval {
    /// The first.
    pub(crate) start: Bytes,
    /// The one after the last; none when there is no last.
    pub(crate) stop: Option<Bytes>,
}

/// What leading parts say of the keys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KeyRange {
    /// Sorted, and apart from each other; none when no row can be among them.
    pub(crate) intervals: Vec<KeyInterval>,
    /// The parts that were made use of, by place. What is asked of them has still to be tested.
    pub(crate) used: Vec<usize>,
    /// Each interval starts with the one key that can be in it.
    pub(crate) whole: bool,
}

/// The intervals in which every row is whose key parts are in `domains`, one for each part. None when they say nothing of
/// the start of the key.
///
/// # Errors
/// [`Corrupt`](crate::error::ErrorKind::Corrupt) for domains that are not of terms.
pub(crate) fn key_range(key: &Key, domains: &[Option<&Domain>]) -> Result<Option<KeyRange>> {
    let mut leading = Leading { key, domains, used: Vec::new(), starts: vec![(vec![None; domains.len()], Vec::new())] };
    let mut place = 0;
    while place < key.parts().len() && leading.add(place)? {
        place += 1;
    }
    let whole = place == key.parts().len();
    let Leading { starts, mut used, .. } = leading;
    let rest = domains.get(place).copied().flatten().filter(|_| !whole);
    let mut intervals = Vec::new();
    for (_, start) in starts {
        match rest {
            _ if whole => {
                let stop = Some([&start[..], &[0]].concat().into());
                intervals.push(KeyInterval { start: start.into(), stop });
            }
            Some(domain) => {
                for interval in domain.intervals() {
                    intervals.extend(within(&key.parts()[place], key.is_last(place), &start, interval)?);
                }
            }
            None if place == 0 => return Ok(None),
            None => {
                intervals.push(KeyInterval { stop: entry::after_prefix(&start).map(Bytes::from), start: start.into() })
            }
        }
    }
    used.extend(rest.map(|_| place));
    used.sort_unstable();
    used.dedup();
    let intervals = apart(intervals);
    // What leaves both ends of the table open is no part of it.
    let open = |first: &KeyInterval, last: &KeyInterval| first.start.is_empty() && last.stop.is_none();
    let everything = intervals.first().zip(intervals.last()).is_some_and(|(first, last)| open(first, last));
    Ok((!everything).then_some(KeyRange { intervals, used, whole }))
}

/// The starts of keys, grown part by part.
struct Leading<'a> {
    key: &'a Key,
    domains: &'a [Option<&'a Domain>],
    used: Vec<usize>,
    /// The values chosen for parts, and the encoded leading parts.
    starts: Vec<(Vec<Option<Value>>, Vec<u8>)>,
}

impl Leading<'_> {
    /// Appends a part; false when it has not a few values.
    fn add(&mut self, place: usize) -> Result<bool> {
        let part = &self.key.parts()[place];
        // A hash follows from what is hashed, failing that from being asked for.
        if let PartKind::Hash { of, .. } = &part.kind {
            let sources: Vec<usize> = self.key.sources(of).collect();
            let before = (self.starts.clone(), self.used.clone());
            let mut all = true;
            for source in sources {
                all = all && self.choose(source)?;
            }
            if all {
                self.starts.retain_mut(|(values, _)| {
                    // A value that cannot stand in its part is in no key.
                    values[place] = self.key.hash(place, values).ok().flatten();
                    values[place].is_some()
                });
            } else {
                (self.starts, self.used) = before;
            }
        }
        if !self.choose(place)? {
            return Ok(false);
        }
        let last = self.key.is_last(place);
        self.starts.retain_mut(|(values, start)| {
            values[place].as_ref().is_some_and(|value| part.write(value, last, start).is_ok())
        });
        Ok(true)
    }

    /// Chooses every value that a part may have; false when it may have any, or there would be too many starts.
    fn choose(&mut self, place: usize) -> Result<bool> {
        // All starts have chosen, or none has.
        if self.starts.first().is_none_or(|(values, _)| values[place].is_some()) {
            return Ok(true);
        }
        let Some(points) = self.domains[place].and_then(Domain::points) else { return Ok(false) };
        if self.starts.len() > 1 && self.starts.len().saturating_mul(points.len()) > MAX_INTERVALS {
            return Ok(false);
        }
        let values: Vec<Value> =
            points.into_iter().filter_map(|p| term::decode(p).transpose()).collect::<Result<_>>()?;
        self.used.push(place);
        let chosen = |(known, start): &(Vec<Option<Value>>, Vec<u8>)| {
            let with = |value: &Value| {
                let mut known = known.clone();
                known[place] = Some(value.clone());
                (known, start.clone())
            };
            values.iter().map(with).collect::<Vec<_>>()
        };
        self.starts = self.starts.iter().flat_map(chosen).collect();
        Ok(true)
    }
}

/// The keys that start with `start` and go on with a value of an interval of whole terms.
fn within(part: &KeyPart, is_last: bool, start: &[u8], interval: &Interval) -> Result<Vec<KeyInterval>> {
    if let PartKind::Int { width, ordered } = part.kind {
        return ints(width, ordered, start, interval);
    }
    let extent = part.kind.extent().unwrap_or(Extent::Open);
    let behind = entry::after_prefix(start);
    let from = match place(part, &interval.from) {
        Place::First => Some(start.to_vec()),
        Place::Last => behind.clone(),
        Place::At(value, side) => beside(extent, is_last, start, &value, side, false),
    };
    let to = match place(part, &interval.to) {
        Place::First => Some(start.to_vec()),
        Place::Last => behind,
        Place::At(value, side) => beside(extent, is_last, start, &value, side, true),
    };
    // Nothing comes after the last key of all.
    let Some(from) = from else { return Ok(Vec::new()) };
    Ok(vec![KeyInterval { start: from.into(), stop: to.map(Bytes::from) }])
}

/// A place among the values of a part.
enum Place {
    First,
    At(Vec<u8>, Side),
    Last,
}

/// Where an edge between encoded values is among the values themselves. It may be inside of an encoding: what texts with a
/// prefix are between is not a whole term.
fn place(part: &KeyPart, edge: &Edge) -> Place {
    let (encoded, side) = match edge {
        Edge::Start => return Place::First,
        Edge::End => return Place::Last,
        Edge::At(encoded, side) => (encoded, *side),
    };
    let mut empty = Vec::new();
    let is_text = part.kind.scalar() == ScalarType::Text;
    term::encode(&if is_text { Value::from("") } else { Value::Bytes(Bytes::new()) }, &mut empty);
    match encoded.first() {
        Some(kind) if *kind == empty[0] => {}
        Some(kind) if *kind > empty[0] => return Place::Last,
        _ => return Place::First,
    }
    let run = &encoded[1..];
    match term::escaped_len(run) {
        Ok((len, _)) => Place::At(term::unescape(&run[..len - 2]), side),
        // Whatever starts so comes after it.
        Err(_) => Place::At(term::unescape(run), Side::Below),
    }
}

/// The first key of those on one side of a value; none when there is no key so large.
fn beside(extent: Extent, is_last: bool, start: &[u8], value: &[u8], side: Side, is_end: bool) -> Option<Vec<u8>> {
    let mut at = start.to_vec();
    at.extend_from_slice(value);
    match extent {
        Extent::Fixed(len) => {
            let whole = start.len() + usize::from(len);
            // A value of another length is none of the part's, but has its place among them.
            match at.len().cmp(&whole) {
                std::cmp::Ordering::Less => Some(at),
                std::cmp::Ordering::Equal if side == Side::Below => Some(at),
                _ => entry::after_prefix(&at[..whole]),
            }
        }
        Extent::Open if is_last => {
            if side == Side::Above {
                at.push(0);
            }
            Some(at)
        }
        Extent::Open => {
            at.truncate(start.len());
            term::escape(value, &mut at);
            if side == Side::Above { entry::after_prefix(&at) } else { Some(at) }
        }
        // A value that another one starts with may come after it, as the separator has it.
        Extent::Separated(_) if !is_end => Some(at),
        Extent::Separated(0) if !value.contains(&0) => {
            at.push(0);
            entry::after_prefix(&at)
        }
        Extent::Separated(_) => entry::after_prefix(start),
    }
}

fn ints(width: u8, ordered: bool, start: &[u8], interval: &Interval) -> Result<Vec<KeyInterval>> {
    let value = |term: &[u8]| -> Result<i64> {
        match term::decode(term)? {
            Some(Value::Int(int)) => Ok(int),
            _ => Err(crate::error::Error::corrupt("expected an int term")),
        }
    };
    let (least, most) = if width == 4 { (i32::MIN.into(), i32::MAX.into()) } else { (i64::MIN, i64::MAX) };
    let low = match &interval.from {
        Edge::Start | Edge::End => Some(least),
        Edge::At(term, Side::Below) => Some(value(term)?),
        Edge::At(term, Side::Above) => value(term)?.checked_add(1),
    };
    let high = match &interval.to {
        Edge::Start | Edge::End => Some(most),
        Edge::At(term, Side::Below) => value(term)?.checked_sub(1),
        Edge::At(term, Side::Above) => Some(value(term)?),
    };
    let (Some(low), Some(high)) = (low.map(|l| l.max(least)), high.map(|h| h.min(most))) else { return Ok(Vec::new()) };
    // HBase's form has the negative numbers after the others, each in order.
    let pieces = if ordered { vec![(low, high)] } else { vec![(low.max(0), high), (low, high.min(-1))] };
    let key = |int: i64| int_bytes(int, width, ordered).map(|bytes| [start, &bytes].concat());
    let between = |(low, high): (i64, i64)| {
        let (from, to) = if low <= high { (key(low)?, key(high)?) } else { return None };
        Some(KeyInterval { start: from.into(), stop: entry::after_prefix(&to).map(Bytes::from) })
    };
    Ok(pieces.into_iter().filter_map(between).collect())
}

/// The same keys in sorted intervals that do not touch.
fn apart(mut intervals: Vec<KeyInterval>) -> Vec<KeyInterval> {
    intervals.retain(|i| i.stop.as_ref().is_none_or(|stop| i.start < *stop));
    intervals.sort_unstable_by(|a, b| a.start.cmp(&b.start));
    let mut merged: Vec<KeyInterval> = Vec::with_capacity(intervals.len());
    for interval in intervals {
        let Some(last) = merged.last_mut().filter(|last| last.stop.as_ref().is_none_or(|stop| interval.start < *stop))
        else {
            merged.push(interval);
            continue;
        };
        last.stop = last.stop.take().zip(interval.stop).map(|(a, b)| a.max(b));
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Comparison;
    use fastrand::Rng;

    /// A kind of part and values for it, close to each other.
    fn part(rng: &mut Rng, is_last: bool) -> (&'static str, Vec<Value>) {
        let texts = |of: &[&str]| of.iter().map(|t| Value::from(*t)).collect();
        let bytes = |of: &[&'static [u8]]| of.iter().map(|b| Value::Bytes(Bytes::from_static(b))).collect();
        let ints = |of: &[i64]| of.iter().map(|i| Value::Int(*i)).collect();
        match rng.u8(0..if is_last { 8 } else { 10 }) {
            0 => ("text", texts(&["", "a", "ab", "a\0", "b", "\u{ff}"])),
            1 => ("bytes", bytes(&[b"", b"\0", b"\0\xff", b"\xff", b"\xff\xff"])),
            2 => ("text:2", texts(&["aa", "ab", "ba", "a\0"])),
            3 => ("bytes:1", bytes(&[b"\0", b"\x01", b"\xfe", b"\xff"])),
            4 => ("int", ints(&[i64::MIN, -2, -1, 0, 1, i64::MAX])),
            5 => ("int ordered", ints(&[i64::MIN, -2, -1, 0, 1, i64::MAX])),
            6 => ("int:4", ints(&[i32::MIN.into(), -1, 0, 1, i32::MAX.into()])),
            7 => ("int:4 ordered", ints(&[i32::MIN.into(), -1, 0, 1, i32::MAX.into()])),
            8 => ("text sep '|'", texts(&["", "a", "a!", "a}", "ab", "b"])),
            _ => ("bytes sep '\\x00'", bytes(&[b"", b"\x01", b"\x01\xff", b"\xff"])),
        }
    }

    /// Values that a test may name: those of the part, and some that are none of its.
    fn named(rng: &mut Rng, values: &[Value]) -> Bytes {
        let mut value = values[rng.usize(0..values.len())].clone();
        if rng.u8(0..4) == 0 {
            value = match value {
                Value::Text(text) if rng.bool() => Value::Text(text + "x"),
                Value::Text(text) => Value::Text(text.chars().take(1).collect()),
                Value::Bytes(bytes) => Value::Bytes([&bytes, &b"\0"[..]].concat().into()),
                Value::Int(int) => Value::Int(int.wrapping_add(rng.i64(-1..=1)).wrapping_mul(rng.i64(1..=2))),
                other => other,
            };
        }
        let mut out = Vec::new();
        term::encode(&value, &mut out);
        out.into()
    }

    fn domain(rng: &mut Rng, values: &[Value]) -> Domain {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        match rng.u8(0..5) {
            0 => Domain::compared(
                [Less, LessOrEqual, Equal, NotEqual, GreaterOrEqual, Greater][rng.usize(0..6)],
                &named(rng, values),
            ),
            1 => Domain::between(&named(rng, values), &named(rng, values)),
            2 => Domain::compared(Equal, &named(rng, values)),
            // As LIKE has it: the encodings that start so.
            3 if !matches!(values[0], Value::Int(_)) => {
                let mut start = named(rng, values).to_vec();
                start.truncate(start.len() - 2);
                let to = entry::after_prefix(&start).map_or(Edge::End, |end| Edge::At(end.into(), Side::Below));
                Domain::of(vec![Interval { from: Edge::At(start.into(), Side::Below), to }])
            }
            _ => Domain::values(&(0..rng.usize(1..4)).map(|_| named(rng, values)).collect::<Vec<_>>()),
        }
    }

    fn holds(range: &KeyRange, key: &[u8]) -> bool {
        range.intervals.iter().any(|i| *i.start <= *key && i.stop.as_ref().is_none_or(|stop| *key < **stop))
    }

    #[test]
    fn ranges_hold_the_rows_they_have_to_and_few_others() {
        let (mut ranges, mut inside) = (0, 0);
        for seed in 0..20_000 {
            let mut rng = Rng::with_seed(seed);
            let count = rng.usize(1..4);
            let parts: Vec<_> = (0..count).map(|i| part(&mut rng, i + 1 == count)).collect();
            let mut text: Vec<String> = parts.iter().enumerate().map(|(i, (k, _))| format!("p{i}={k}")).collect();
            let hashed = rng.u8(0..3) == 0;
            if hashed {
                text.insert(0, format!("h=md5(p{}):2", rng.usize(0..count)));
            }
            let key: Key = text.join(", ").parse().unwrap();
            let domains: Vec<Option<Domain>> =
                parts.iter().map(|(_, values)| (rng.u8(0..4) > 0).then(|| domain(&mut rng, values))).collect();
            let mut asked: Vec<Option<&Domain>> = domains.iter().map(Option::as_ref).collect();
            if hashed {
                asked.insert(0, None);
            }
            let Some(range) = key_range(&key, &asked).unwrap() else { continue };
            ranges += 1;
            assert!(range.intervals.windows(2).all(|w| w[0].stop.as_ref().is_some_and(|stop| *stop <= w[1].start)));
            for _ in 0..30 {
                let mut values: Vec<Option<Value>> =
                    parts.iter().map(|(_, values)| Some(values[rng.usize(0..values.len())].clone())).collect();
                if hashed {
                    values.insert(0, None);
                }
                let Ok(row) = key.join(&values) else { continue };
                let fits = |place: usize| {
                    let mut term = Vec::new();
                    values[place].iter().for_each(|v| term::encode(v, &mut term));
                    asked[place].is_none_or(|domain| domain.contains(&term))
                };
                let expected = (0..values.len()).all(fits);
                let held = holds(&range, &row);
                assert!(held || !expected, "seed {seed}: {key} lacks {}", row.escape_ascii());
                // Only separated text is not read exactly.
                if range
                    .used
                    .iter()
                    .all(|place| !matches!(key.parts()[*place].kind.extent(), Some(Extent::Separated(_))))
                {
                    let used = range.used.iter().all(|place| fits(*place));
                    assert_eq!(held, used, "seed {seed}: {key} has {}", row.escape_ascii());
                }
                inside += usize::from(held);
            }
        }
        assert!(ranges > 5_000 && inside > 10_000, "{ranges} ranges, {inside} rows in them");
    }

    #[test]
    fn hashes_are_computed_from_what_is_asked() {
        let key: Key = "hash=md5(user):2, user=text:4, action=text".parse().unwrap();
        let term = |text: &str| {
            let mut out = Vec::new();
            term::encode(&text.into(), &mut out);
            Bytes::from(out)
        };
        let users = Domain::values(&[term("anna"), term("otto"), term("nobody")]);
        let range = key_range(&key, &[None, Some(&users), None]).unwrap().unwrap();
        let starts: Vec<&[u8]> = range.intervals.iter().map(|i| i.start.as_ref()).collect();
        assert_eq!(starts.len(), 2, "nobody has too many bytes");
        assert!(starts.contains(&&b"\xa7\x0fanna"[..]));
        assert_eq!((range.used, range.whole), (vec![1], false));
        assert_eq!(key_range(&key, &[None, None, Some(&users)]).unwrap(), None);
        let action = Domain::values(&[term("click")]);
        assert!(key_range(&key, &[None, Some(&users), Some(&action)]).unwrap().unwrap().whole);
    }
}
