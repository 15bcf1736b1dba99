//! Decimal: IEEE 754 decimals, in the binary integer encoding, as the nearest doubles.
//! [AMQP 1.6.13]
//!
//! Filters calculate with doubles where .NET would with its decimal, which AMQP's are not either.

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

pub(crate) fn of_32(bytes: [u8; 4]) -> f64 {
    DECIMAL_32.double(u32::from_be_bytes(bytes).into())
}

pub(crate) fn of_64(bytes: [u8; 8]) -> f64 {
    DECIMAL_64.double(u64::from_be_bytes(bytes).into())
}

pub(crate) fn of_128(bytes: [u8; 16]) -> f64 {
    DECIMAL_128.double(u128::from_be_bytes(bytes))
}

impl Layout {
    fn double(&self, bits: u128) -> f64 {
        let negative = bits >> (self.width - 1) & 1 == 1;
        let magnitude = match bits >> (self.width - 6) & 0b1_1111 {
            0b1_1111 => f64::NAN,
            0b1_1110 => f64::INFINITY,
            _ => self.finite(bits),
        };
        if negative { -magnitude } else { magnitude }
    }

    fn finite(&self, bits: u128) -> f64 {
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
        // The standard library rounds correctly, which a product of powers would not.
        format!("{coefficient}e{exponent}")
            .parse()
            .unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_of_all_widths_are_read() {
        // One: coefficient 1, exponent at its bias.
        assert_eq!(of_32((101_u32 << 23 | 1).to_be_bytes()), 1.0);
        assert_eq!(of_64((398_u64 << 53 | 1).to_be_bytes()), 1.0);
        assert_eq!(of_128((6_176_u128 << 113 | 1).to_be_bytes()), 1.0);
        // -12.5: coefficient 125, exponent -1.
        assert_eq!(of_32((1 << 31 | 100_u32 << 23 | 125).to_be_bytes()), -12.5);
    }

    #[test]
    fn a_large_coefficient_has_its_exponent_elsewhere() {
        // 9,999,999 is 100 followed by 21 bits: more than 23 bits can hold.
        let tail = 9_999_999_u32 & ((1 << 21) - 1);
        let bits = 0b11 << 29 | 101 << 21 | tail;
        assert_eq!(of_32(bits.to_be_bytes()), 9_999_999.0);
    }

    #[test]
    fn what_is_no_number_is_no_number() {
        assert!(of_32(0x7c00_0000_u32.to_be_bytes()).is_nan());
        assert_eq!(
            of_64(0x7800_0000_0000_0000_u64.to_be_bytes()),
            f64::INFINITY
        );
    }
}
