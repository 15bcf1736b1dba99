//! Like: matches a text against a pattern. (docs/spec/entities.md#17.8)
//!
//! `%` is any run of characters, `_` exactly one; an escape makes the next character literal. A
//! pattern is split at each `%`, and each piece is searched once, after the piece before it, so
//! matching takes time in proportion to the text. Pieces with a `_` may take more, which is charged
//! to the fuel.

use crate::expression::fuel::{Fuel, OutOfFuel};

/// A pattern, taken apart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Pattern {
    /// The texts between the `%`s. Without a `%` there is one piece.
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq)]
enum Piece {
    Literal(String),
    /// With at least one `_`, which is `None`.
    Mixed(Vec<Option<char>>),
}

impl Pattern {
    /// Takes `pattern` apart. `None` if it ends with its escape character.
    pub(crate) fn new(pattern: &str, escape: Option<char>) -> Option<Self> {
        let mut pieces = Vec::new();
        let mut piece = Vec::new();
        let mut characters = pattern.chars();
        while let Some(next) = characters.next() {
            match next {
                escaping if Some(escaping) == escape => piece.push(Some(characters.next()?)),
                '%' => pieces.push(Piece::new(&std::mem::take(&mut piece))),
                '_' => piece.push(None),
                literal => piece.push(Some(literal)),
            }
        }
        pieces.push(Piece::new(&piece));
        Some(Self { pieces })
    }

    /// Whether all of `text` is matched.
    pub(crate) fn matches(&self, text: &str, fuel: &mut Fuel) -> Result<bool, OutOfFuel> {
        let Some((first, behind)) = self.pieces.split_first() else {
            return Ok(text.is_empty());
        };
        let Some(rest) = first.strip_start(text, fuel)? else {
            return Ok(false);
        };
        let Some((last, middle)) = behind.split_last() else {
            return Ok(rest.is_empty());
        };
        let Some(mut rest) = last.strip_end(rest, fuel)? else {
            return Ok(false);
        };
        for piece in middle {
            match piece.after_first(rest, fuel)? {
                Some(behind) => rest = behind,
                None => return Ok(false),
            }
        }
        Ok(true)
    }
}

impl Piece {
    fn new(characters: &[Option<char>]) -> Self {
        match characters.iter().copied().collect() {
            Some(literal) => Self::Literal(literal),
            None => Self::Mixed(characters.to_vec()),
        }
    }

    /// The rest of `text` after this piece, if it starts with it.
    fn strip_start<'a>(
        &self,
        text: &'a str,
        fuel: &mut Fuel,
    ) -> Result<Option<&'a str>, OutOfFuel> {
        match self {
            Self::Literal(literal) => {
                fuel.read(literal.len())?;
                Ok(text.strip_prefix(literal.as_str()))
            }
            Self::Mixed(characters) => {
                let (behind, looked_at) = strip_mixed(text, characters);
                fuel.spend(looked_at)?;
                Ok(behind)
            }
        }
    }

    /// The part of `text` before this piece, if it ends with it.
    fn strip_end<'a>(&self, text: &'a str, fuel: &mut Fuel) -> Result<Option<&'a str>, OutOfFuel> {
        match self {
            Self::Literal(literal) => {
                fuel.read(literal.len())?;
                Ok(text.strip_suffix(literal.as_str()))
            }
            Self::Mixed(characters) => {
                fuel.spend(characters.len())?;
                let start = text.char_indices().rev().nth(characters.len() - 1);
                let Some((start, _)) = start else {
                    return Ok(None);
                };
                let found = strip_mixed(&text[start..], characters).0.is_some();
                Ok(found.then_some(&text[..start]))
            }
        }
    }

    /// The rest of `text` after the first occurrence of this piece.
    fn after_first<'a>(
        &self,
        text: &'a str,
        fuel: &mut Fuel,
    ) -> Result<Option<&'a str>, OutOfFuel> {
        match self {
            Self::Literal(literal) => {
                let found = text.find(literal.as_str());
                fuel.read(found.unwrap_or(text.len()) + literal.len())?;
                Ok(found.map(|at| &text[at + literal.len()..]))
            }
            Self::Mixed(characters) => {
                for (start, _) in text.char_indices() {
                    let (behind, looked_at) = strip_mixed(&text[start..], characters);
                    fuel.spend(looked_at)?;
                    if behind.is_some() {
                        return Ok(behind);
                    }
                }
                Ok(None)
            }
        }
    }
}

/// The rest of `text` after `characters` at its start, and the number of characters compared.
fn strip_mixed<'a>(text: &'a str, characters: &[Option<char>]) -> (Option<&'a str>, usize) {
    let mut rest = text.chars();
    for (place, wanted) in characters.iter().enumerate() {
        let fits = rest
            .next()
            .is_some_and(|found| wanted.is_none_or(|wanted| wanted == found));
        if !fits {
            return (None, place + 1);
        }
    }
    (Some(rest.as_str()), characters.len())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn matches(text: &str, pattern: &str, escape: Option<char>) -> bool {
        let pattern = Pattern::new(pattern, escape).unwrap();
        pattern.matches(text, &mut Fuel::full()).unwrap()
    }

    #[test]
    fn patterns_match_all_of_a_text() {
        for (text, pattern, expected) in [
            ("", "", true),
            ("", "%", true),
            ("", "_", false),
            ("abc", "abc", true),
            ("abc", "ab", false),
            ("abc", "ab_", true),
            ("abc", "%", true),
            ("abc", "%b%", true),
            ("abc", "a%c", true),
            ("aba", "ab%ba", false),
            ("a\nb", "a_b", true),
            ("naïve", "na_ve", true),
            ("Abc", "abc", false),
            ("abab", "%ab", true),
            ("xaxbx", "%a_b%", true),
            ("xab", "%_b", true),
        ] {
            assert_eq!(
                matches(text, pattern, None),
                expected,
                "{text} LIKE {pattern}"
            );
        }
    }

    #[test]
    fn an_escape_makes_the_next_character_literal() {
        assert!(matches("50%", r"50\%", Some('\\')));
        assert!(!matches("500", r"50\%", Some('\\')));
        assert!(matches("a!b", "a!!b", Some('!')));
        assert!(matches("%", "%%", Some('%')));
        assert_eq!(Pattern::new("abc!", Some('!')), None);
    }

    #[test]
    fn a_hostile_pattern_runs_out_of_fuel_rather_than_time() {
        let text = "a".repeat(32 << 10);
        let many = Pattern::new(&"%a".repeat(250), None).unwrap();
        assert_eq!(many.matches(&text, &mut Fuel::full()), Ok(true));
        let never = Pattern::new(&format!("%{}b%", "_a".repeat(240)), None).unwrap();
        assert_eq!(never.matches(&text, &mut Fuel::full()), Err(OutOfFuel));
    }

    /// By the definition, without any cleverness.
    fn naive(text: &[char], pattern: &[char]) -> bool {
        match pattern.split_first() {
            None => text.is_empty(),
            Some(('%', rest)) => (0..=text.len()).any(|skipped| naive(&text[skipped..], rest)),
            Some((wanted, rest)) => text.split_first().is_some_and(|(found, behind)| {
                (*wanted == '_' || wanted == found) && naive(behind, rest)
            }),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn pieces_find_what_the_definition_does(text in "[abé]{0,8}", pattern in "[abé%_]{0,7}") {
            let expected = naive(&text.chars().collect::<Vec<_>>(), &pattern.chars().collect::<Vec<_>>());
            prop_assert_eq!(matches(&text, &pattern, None), expected);
        }
    }
}
