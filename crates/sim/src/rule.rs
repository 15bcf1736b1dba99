//! Rule: what simulated subscriptions select, by rules whose answer is known beforehand.
//!
//! Every message has a number `n` among its application properties, a small one. A rule compares it
//! in one way; some rules have an action that raises it by one. The name of a rule says all of
//! this, so a check that sees the name needs no text of a filter to know what the rule selects.

use broker::{Correlation, FilterDescription, RuleDescription, Value};

use crate::rng::Rng;

/// What a subscription has that was given no rule.
pub const DEFAULT: &str = "$Default";
/// Numbers of messages as they are sent are below.
pub const NUMBERS: u64 = 8;

/// Which messages a rule selects.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Selects {
    /// Every one.
    All,
    /// Not a single one.
    Nothing,
    /// Those whose number leaves this remainder.
    Remainder {
        /// After a division by that.
        by: i64,
        /// So much.
        left: i64,
    },
    /// Those of that number, by a correlation filter.
    Equal(i64),
    /// Those above that number; it cannot be evaluated for that number itself.
    Above(i64),
}

/// What a rule says to a message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[allow(missing_docs, reason = "named for what they are")]
pub enum Verdict {
    Selected,
    Left,
    Failed,
}

/// A rule of some subscription.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Rule {
    /// The messages that it selects.
    pub selects: Selects,
    /// Its copies have a number that is greater by one.
    pub raises: bool,
    /// Tells it from others that are the same.
    pub serial: u64,
}

impl Rule {
    const DEFAULT: Self = Self {
        selects: Selects::All,
        raises: false,
        serial: 0,
    };

    /// The rule of that kind.
    #[must_use]
    pub fn new(selects: Selects, raises: bool, serial: u64) -> Self {
        Self {
            selects,
            raises,
            serial,
        }
    }

    /// Some rule.
    pub fn any(rng: &mut Rng, serial: u64) -> Self {
        let number = rng.below(10) as i64;
        let by = rng.between(2, 4) as i64;
        let selects = match rng.below(10) {
            0 => Selects::All,
            1 => Selects::Nothing,
            2..=5 => Selects::Remainder {
                by,
                left: number % by,
            },
            6..=7 => Selects::Equal(number),
            _ => Selects::Above(number),
        };
        Self::new(selects, rng.chance(300), serial)
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> String {
        if *self == Self::DEFAULT {
            return DEFAULT.to_owned();
        }
        let (kind, first, second) = match self.selects {
            Selects::All => ("all", 0, 0),
            Selects::Nothing => ("nothing", 0, 0),
            Selects::Remainder { by, left } => ("remainder", by, left),
            Selects::Equal(number) => ("equal", number, 0),
            Selects::Above(number) => ("above", number, 0),
        };
        let action = if self.raises { "raises" } else { "keeps" };
        format!("{kind}-{first}-{second}-{action}-{}", self.serial)
    }

    /// Which rule is called that, in any case.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        if name.eq_ignore_ascii_case(DEFAULT) {
            return Some(Self::DEFAULT);
        }
        let name = name.to_lowercase();
        let mut parts = name.split('-');
        let kind = parts.next()?;
        let mut number = || parts.next()?.parse::<i64>().ok();
        let (first, second) = (number()?, number()?);
        let selects = match kind {
            "all" => Selects::All,
            "nothing" => Selects::Nothing,
            "remainder" => Selects::Remainder {
                by: first,
                left: second,
            },
            "equal" => Selects::Equal(first),
            "above" => Selects::Above(first),
            _ => return None,
        };
        let raises = parts.next()? == "raises";
        Some(Self::new(selects, raises, parts.next()?.parse().ok()?))
    }

    /// As it is given to a broker.
    #[must_use]
    pub fn describe(&self) -> RuleDescription {
        let filter = match self.selects {
            Selects::All => FilterDescription::True,
            Selects::Nothing => FilterDescription::False,
            Selects::Remainder { by, left } => FilterDescription::Sql(format!("n % {by} = {left}")),
            Selects::Equal(number) => FilterDescription::Correlation(Box::new(Correlation {
                properties: vec![("n".to_owned(), Value::Long(number))],
                ..Correlation::default()
            })),
            // Positive above, negative below, and a division by zero between the two.
            Selects::Above(number) => FilterDescription::Sql(format!("1000 / (n - {number}) > 0")),
        };
        RuleDescription {
            name: self.name(),
            filter,
            action: self.raises.then(|| "SET n = n + 1".to_owned()),
            ..RuleDescription::default()
        }
    }

    /// What it says to a message of that number.
    #[must_use]
    pub fn judge(&self, number: i64) -> Verdict {
        let selected = match self.selects {
            Selects::All => true,
            Selects::Nothing => false,
            Selects::Remainder { by, left } => number % by == left,
            Selects::Equal(wanted) => number == wanted,
            Selects::Above(least) if number == least => return Verdict::Failed,
            Selects::Above(least) => number > least,
        };
        if selected {
            Verdict::Selected
        } else {
            Verdict::Left
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_all_of_a_rule() {
        let mut rng = Rng::new(1);
        for serial in 0..100 {
            let rule = Rule::any(&mut rng, serial);
            assert_eq!(Rule::named(&rule.name()), Some(rule));
        }
        let default = Rule::named("$default").map(|rule| rule.selects);
        assert_eq!(default, Some(Selects::All));
    }
}
