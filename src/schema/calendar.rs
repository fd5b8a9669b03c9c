//! Timestamps as people write them.

use jiff::civil::Date;
use jiff::tz::TimeZone;

/// A timestamp in milliseconds since 1970 as RFC 3339 in UTC, or as the number where the calendar ends (years −9999 to
/// 9999). [`parse`] reads both.
pub fn show(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |t| format!("{t:.3}"))
}

/// Reads RFC 3339 with any offset, a date (its first millisecond in UTC), or milliseconds since 1970. None for anything
/// else, and for a fraction of a millisecond, which would be lost.
///
/// ```
/// use sideindex::schema::calendar;
/// let noon = calendar::parse("2026-12-01T12:00:00+01:00");
/// assert_eq!(noon, calendar::parse("2026-12-01T11:00:00.000Z"));
/// assert_eq!(noon.map(calendar::show).as_deref(), Some("2026-12-01T11:00:00.000Z"));
/// assert_eq!(calendar::parse("2026-12-01"), Some(1_796_083_200_000));
/// assert_eq!(calendar::parse("noon"), None);
/// ```
pub fn parse(text: &str) -> Option<i64> {
    if let Ok(ms) = text.parse() {
        return Some(ms);
    }
    // An annotation like [Europe/Berlin] is not part of RFC 3339, and would be skipped.
    if text.contains('[') {
        return None;
    }
    let timestamp = match text.parse::<jiff::Timestamp>() {
        Ok(timestamp) => timestamp,
        Err(_) if text.contains([':', 'T', 't']) => return None,
        Err(_) => TimeZone::UTC.to_timestamp(text.parse::<Date>().ok()?.at(0, 0, 0, 0)).ok()?,
    };
    let ms = timestamp.as_millisecond();
    (jiff::Timestamp::from_millisecond(ms).ok()? == timestamp).then_some(ms)
}
