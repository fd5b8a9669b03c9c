//! Decimal numbers of any precision up to a bound, and their order-preserving form.

use crate::error::{Error, ErrorKind, Result};
use bigdecimal::BigDecimal;
use bigdecimal::num_bigint::{BigInt, Sign};
use std::fmt;
use std::str::FromStr;

/// An exact decimal number. `1.0` and `1.00` are the same value.
///
/// ```
/// use sideindex::schema::Decimal;
/// let price: Decimal = "1.50".parse()?;
/// assert_eq!(price, "15e-1".parse()?);
/// assert_eq!(price.to_string(), "1.5");
/// # Ok::<(), sideindex::error::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
// In its normal form: no zero at the end of the digits. Boxed, so that it makes no value of another type larger.
pub struct Decimal(Box<BigDecimal>);

/// First byte of the ordered form: everything below zero is below zero, which is below everything above it.
const NEGATIVE: u8 = 0x40;
const ZERO: u8 = 0x80;
const POSITIVE: u8 = 0xC0;
/// Added to the place of the point, so that it is never negative.
const BIAS: i64 = 0x8000;

impl Decimal {
    /// The most digits before the point, and the most after it.
    pub const MAX_DIGITS: i64 = 1_000;

    /// `unscaled` × 10^−`scale`, which is how Java's `BigDecimal` and HBase have it.
    ///
    /// # Errors
    /// [`ErrorKind::WrongType`] when it has more digits than [`Self::MAX_DIGITS`] before or after the point.
    pub fn new(unscaled: BigInt, scale: i64) -> Result<Self> {
        // A number of so many bits has more digits than may be, wherever the point is.
        const MOST_BITS: u64 = 2 * 1_000 * 10 / 3;
        let too_long = || {
            Error::new(
                ErrorKind::WrongType,
                format!("expected a decimal of at most {0} digits before the point and {0} after it", Self::MAX_DIGITS),
            )
        };
        if unscaled.sign() == Sign::NoSign {
            return Ok(Self(Box::new(BigDecimal::from(0))));
        }
        // Before anything is computed with them.
        if unscaled.bits() > MOST_BITS || scale.abs_diff(0) > 4 * Self::MAX_DIGITS.unsigned_abs() {
            return Err(too_long());
        }
        let normal = BigDecimal::new(unscaled, scale).normalized();
        let (before, after) = extent(&normal);
        if before > Self::MAX_DIGITS || after > Self::MAX_DIGITS {
            return Err(too_long());
        }
        Ok(Self(Box::new(normal)))
    }

    /// The unscaled value and the scale, which is not negative here: 100 is (100, 0).
    pub fn unscaled(&self) -> (BigInt, i64) {
        let scale = self.0.fractional_digit_count().max(0);
        self.0.with_scale(scale).into_bigint_and_exponent()
    }

    /// What it takes in memory beside itself, in bytes.
    pub(crate) fn size(&self) -> usize {
        let bytes = usize::try_from(self.0.as_bigint_and_scale().0.bits() / 8).unwrap_or(usize::MAX);
        size_of::<BigDecimal>().saturating_add(bytes)
    }

    /// Appends the ordered form, which ends itself: a byte for the sign, the place of the point (2 bytes), two digits a
    /// byte counted from 1, 0x00. Below zero everything after the first byte is inverted.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let digits = self.0.as_bigint_and_scale().0.magnitude().to_string();
        let start = out.len() + 1;
        match self.0.sign() {
            Sign::NoSign => return out.push(ZERO),
            Sign::Plus => out.push(POSITIVE),
            Sign::Minus => out.push(NEGATIVE),
        }
        // Within ±MAX_DIGITS, so that the truncation loses nothing.
        out.extend(((extent(&self.0).0 + BIAS) as u16).to_be_bytes());
        for pair in digits.as_bytes().chunks(2) {
            let second = pair.get(1).map_or(0, |d| d - b'0');
            out.push((pair[0] - b'0') * 10 + second + 1);
        }
        out.push(0);
        if self.0.sign() == Sign::Minus {
            out[start..].iter_mut().for_each(|b| *b = !*b);
        }
    }

    /// The length of the ordered form at the start of `bytes`, each of which is inverted by `mask`, as far as its end can be
    /// seen.
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`].
    pub fn encoded_len(bytes: &[u8], mask: u8) -> Result<usize> {
        let end = match bytes.first().map(|b| b ^ mask) {
            Some(ZERO) => return Ok(1),
            Some(POSITIVE) => mask,
            Some(NEGATIVE) => !mask,
            Some(other) => return Err(Error::corrupt(format!("expected the sign of a decimal, found {other:#04x}"))),
            None => return Err(Error::corrupt("expected a decimal, found the end")),
        };
        let digits = bytes.get(3..).unwrap_or_default();
        let count = digits.iter().position(|b| *b == end);
        count.map(|n| n + 4).ok_or_else(|| Error::corrupt("expected the end of a decimal's digits, found the end"))
    }

    /// Undoes [`Self::encode`].
    ///
    /// # Errors
    /// [`ErrorKind::Corrupt`] for anything [`Self::encode`] does not write.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let unfit = || Error::corrupt(format!("expected a decimal, found {}", bytes.escape_ascii()));
        if Self::encoded_len(bytes, 0)? != bytes.len() {
            return Err(unfit());
        }
        let (mask, sign) = match bytes[0] {
            NEGATIVE => (0xFF, Sign::Minus),
            POSITIVE => (0x00, Sign::Plus),
            _ => return Self::new(BigInt::ZERO, 0),
        };
        let body: Vec<u8> = bytes[1..bytes.len() - 1].iter().map(|b| b ^ mask).collect();
        let before = i64::from(u16::from_be_bytes([body[0], body[1]])) - BIAS;
        let mut digits = Vec::with_capacity(2 * body.len());
        for pair in &body[2..] {
            let pair = pair.checked_sub(1).filter(|p| *p < 100).ok_or_else(unfit)?;
            digits.extend([pair / 10, pair % 10]);
        }
        if digits.last() == Some(&0) {
            digits.pop();
        }
        if digits.first().is_none_or(|d| *d == 0) || digits.last() == Some(&0) {
            return Err(unfit());
        }
        let scale = i64::try_from(digits.len()).map_err(|_| unfit())? - before;
        let unscaled = BigInt::from_radix_be(sign, &digits, 10).ok_or_else(unfit)?;
        Self::new(unscaled, scale).map_err(|_| unfit())
    }
}

/// How many digits a normal number has before its point (negative: so many zeros follow the point first) and after it.
fn extent(normal: &BigDecimal) -> (i64, i64) {
    let scale = normal.fractional_digit_count();
    if normal.sign() == Sign::NoSign {
        return (0, 0);
    }
    (i64::try_from(normal.digits()).unwrap_or(i64::MAX).saturating_sub(scale), scale)
}

impl FromStr for Decimal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        // Longer ones have too many digits, and take long to read.
        let fits = text.len() <= 4_096 && text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c));
        let plain = text.bytes().all(|b| b.is_ascii_digit() || b"+-.eE".contains(&b));
        let read = if fits && plain { BigDecimal::from_str(text).ok() } else { None };
        let (unscaled, scale) = read
            .ok_or_else(|| {
                let shown: String = text.chars().take(40).collect();
                Error::new(ErrorKind::WrongType, format!("expected a decimal number like 12.50, found {shown:?}"))
            })?
            .into_bigint_and_exponent();
        Self::new(unscaled, scale)
    }
}

impl From<i64> for Decimal {
    fn from(int: i64) -> Self {
        Self(Box::new(BigDecimal::from(int).normalized()))
    }
}

impl From<u64> for Decimal {
    fn from(int: u64) -> Self {
        Self(Box::new(BigDecimal::from(int).normalized()))
    }
}

/// In full, without an exponent.
impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.to_plain_string())
    }
}
