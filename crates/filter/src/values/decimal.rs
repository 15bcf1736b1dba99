//! Decimal: IEEE 754 decimals, in the binary integer encoding, as numbers of filters.
//! [AMQP 1.6.13]
//!
//! Filters calculate with the nearest double where .NET would with its decimal. Only an integer
//! that a double cannot hold exactly stays an integer, so that it compares by its value. The
//! exponents of .NET's own layout are read too (docs/spec/entities.md#17.7).

use crate::values::value::Value;

/// Doubles hold all integers up to here exactly.
const MAX_EXACT_INTEGER: u128 = 1 << 53;
/// Added to the scale, the negative exponent that IEEE 754 reads in a decimal of .NET.
const DOTNET_OFFSET: i32 = 4_608;
/// Digits behind the point in a decimal of .NET, at most.
const MAX_DOTNET_SCALE: i32 = 28;

/// How one of the three widths divides its bits.
struct Layout {
    /// Bits in all.
    width: u32,
    /// Bits of the exponent in either form.
    exponent: u32,
    bias: i32,
    /// The largest coefficient; larger ones count as zero.
    largest: u128,
}

const DECIMAL_32: Layout = Layout {
    width: 32,
    exponent: 8,
    bias: 101,
    largest: 9_999_999,
};
const DECIMAL_64: Layout = Layout {
    width: 64,
    exponent: 10,
    bias: 398,
    largest: 9_999_999_999_999_999,
};
const DECIMAL_128: Layout = Layout {
    width: 128,
    exponent: 14,
    bias: 6_176,
    largest: 9_999_999_999_999_999_999_999_999_999_999_999,
};

pub(crate) fn of_32(bytes: [u8; 4]) -> Value<'static> {
    DECIMAL_32.number(u32::from_be_bytes(bytes).into())
}

pub(crate) fn of_64(bytes: [u8; 8]) -> Value<'static> {
    DECIMAL_64.number(u64::from_be_bytes(bytes).into())
}

pub(crate) fn of_128(bytes: [u8; 16]) -> Value<'static> {
    DECIMAL_128.number(u128::from_be_bytes(bytes))
}

impl Layout {
    fn number(&self, bits: u128) -> Value<'static> {
        let is_negative = bits >> (self.width - 1) & 1 == 1;
        let magnitude = match bits >> (self.width - 6) & 0b1_1111 {
            0b1_1111 => f64::NAN,
            0b1_1110 => f64::INFINITY,
            _ => return finite(is_negative, self.parts(bits)),
        };
        Value::Double(if is_negative { -magnitude } else { magnitude })
    }

    /// The coefficient, and the power of ten that it is multiplied by.
    fn parts(&self, bits: u128) -> (u128, i32) {
        // Two ones behind the sign: the exponent starts two bits later, and the coefficient is
        // at least 2^(its bits), with 100 in front.
        let is_large = bits >> (self.width - 3) & 0b11 == 0b11;
        let below = self.width - 1 - self.exponent - if is_large { 2 } else { 0 };
        let exponent = bits >> below & ((1 << self.exponent) - 1);
        let tail = bits & ((1 << below) - 1);
        let coefficient = if is_large {
            tail | 0b100 << below
        } else {
            tail
        };
        let coefficient = if coefficient > self.largest {
            0
        } else {
            coefficient
        };
        let exponent = i32::try_from(exponent)
            .unwrap_or(i32::MAX)
            .saturating_sub(self.bias);
        (coefficient, self.exponent_of_dotnet(exponent))
    }

    /// .NET shifts the upper part of a 128-bit decimal's exponent by 9 bits instead of 7.
    fn exponent_of_dotnet(&self, exponent: i32) -> i32 {
        let scale = -DOTNET_OFFSET - exponent;
        if self.width == 128 && (0..=MAX_DOTNET_SCALE).contains(&scale) {
            return -scale;
        }
        exponent
    }
}

fn finite(is_negative: bool, (coefficient, exponent): (u128, i32)) -> Value<'static> {
    let large = integer(coefficient, exponent).filter(|integer| *integer > MAX_EXACT_INTEGER);
    if let Some(integer) = large.and_then(|integer| of_integer(is_negative, integer)) {
        return integer;
    }
    // The standard library rounds correctly, which a product of powers would not.
    let magnitude = format!("{coefficient}e{exponent}")
        .parse()
        .unwrap_or(f64::NAN);
    Value::Double(if is_negative { -magnitude } else { magnitude })
}

/// The number if it is an integer and not too large.
fn integer(mut coefficient: u128, exponent: i32) -> Option<u128> {
    if exponent >= 0 {
        let power = 10_u128.checked_pow(exponent.unsigned_abs())?;
        return coefficient.checked_mul(power);
    }
    for _ in 0..exponent.unsigned_abs() {
        if coefficient == 0 || !coefficient.is_multiple_of(10) {
            return None;
        }
        coefficient /= 10;
    }
    Some(coefficient)
}

/// `None` if filters have no integer of this size.
fn of_integer(is_negative: bool, magnitude: u128) -> Option<Value<'static>> {
    if is_negative {
        let negative = i128::try_from(magnitude).ok()?.checked_neg()?;
        return i64::try_from(negative).ok().map(Value::Int);
    }
    u64::try_from(magnitude).ok().map(Value::of_u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_all_widths_are_read() {
        // One: coefficient 1, exponent at its bias.
        assert_eq!(of_32((101_u32 << 23 | 1).to_be_bytes()), Value::Double(1.0));
        assert_eq!(of_64((398_u64 << 53 | 1).to_be_bytes()), Value::Double(1.0));
        assert_eq!(
            of_128((6_176_u128 << 113 | 1).to_be_bytes()),
            Value::Double(1.0)
        );
        // -12.5: coefficient 125, exponent -1.
        assert_eq!(
            of_32((1 << 31 | 100_u32 << 23 | 125).to_be_bytes()),
            Value::Double(-12.5)
        );
    }

    #[test]
    fn a_large_coefficient_has_its_exponent_elsewhere() {
        // 9,999,999 is 100 followed by 21 bits: more than 23 bits can hold.
        let tail = 9_999_999_u32 & ((1 << 21) - 1);
        let bits = 0b11 << 29 | 101 << 21 | tail;
        assert_eq!(of_32(bits.to_be_bytes()), Value::Double(9_999_999.0));
    }

    #[test]
    fn what_is_no_number_is_no_number() {
        let Value::Double(number) = of_32(0x7c00_0000_u32.to_be_bytes()) else {
            panic!("a decimal that is no integer is a double");
        };
        assert!(number.is_nan());
        assert_eq!(
            of_64(0x7800_0000_0000_0000_u64.to_be_bytes()),
            Value::Double(f64::INFINITY)
        );
    }

    /// The bytes that .NET's library writes for a decimal: the exponent is shifted by 9 into the
    /// first byte and by 1 into the second one.
    fn of_dotnet(is_negative: bool, coefficient: u128, scale: u32) -> Value<'static> {
        let exponent = 6_176 - scale;
        let mut bytes = coefficient.to_be_bytes();
        bytes[0] = u8::try_from(exponent >> 9).unwrap() | if is_negative { 0x80 } else { 0 };
        bytes[1] = (exponent << 1).to_le_bytes()[0];
        of_128(bytes)
    }

    #[test]
    fn decimals_of_dotnet_are_read_by_their_value() {
        let twelve_and_a_half = [0x0c, 0x3e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 125];
        assert_eq!(of_128(twelve_and_a_half), Value::Double(12.5));
        assert_eq!(of_dotnet(false, 0, 0), Value::Double(0.0));
        assert_eq!(of_dotnet(false, 5, 0), Value::Double(5.0));
        assert_eq!(of_dotnet(true, 1, 28), Value::Double(-1e-28));
        let largest = (1_u128 << 96) - 1;
        assert_eq!(of_dotnet(false, largest, 0), Value::Double(largest as f64));
        assert_eq!(
            of_dotnet(false, largest, 28),
            Value::Double(7.922_816_251_426_433_5)
        );
    }

    #[test]
    fn exponents_beside_those_of_dotnet_are_the_standards() {
        let of_exponent = |exponent: u128| of_128(((exponent << 113) | 1).to_be_bytes());
        assert_eq!(of_exponent(6_176 - 4_608), Value::Double(1.0));
        assert_eq!(of_exponent(6_176 - 4_636), Value::Double(1e-28));
        // Far below the smallest double.
        assert_eq!(of_exponent(6_176 - 4_607), Value::Double(0.0));
        assert_eq!(of_exponent(6_176 - 4_637), Value::Double(0.0));
    }

    #[test]
    fn integers_that_no_double_holds_stay_integers() {
        let odd = (1_i64 << 53) + 1;
        assert_eq!(of_dotnet(false, odd as u128, 0), Value::Int(odd));
        assert_eq!(of_dotnet(true, odd as u128 * 100, 2), Value::Int(-odd));
        assert_eq!(
            of_dotnet(false, u64::MAX.into(), 0),
            Value::Unsigned(u64::MAX)
        );
        assert_eq!(of_dotnet(true, 1 << 63, 0), Value::Int(i64::MIN));
        let beyond = Value::Double(-(u64::MAX as f64));
        assert_eq!(of_dotnet(true, u64::MAX.into(), 0), beyond);
        // Its fraction makes it a double.
        let fraction = Value::Double((odd + 1) as f64);
        assert_eq!(of_dotnet(false, odd as u128 * 10 + 1, 1), fraction);
    }
}
