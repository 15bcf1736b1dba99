//! Lexer: turns a text into words, numbers, quoted texts and signs, each with its position.
//!
//! SQL expressions and JMS selectors differ in how names and numbers are written, so the lexer has
//! a mode for each. Keywords are words here; the parser distinguishes them from names.

use crate::expression::dialect::Dialect;
use crate::expression::error::{Fault, ParseError};
use crate::expression::scan;
use crate::expression::token::Token;

/// Most characters of a filter, an action or a selector. (docs/spec/entities.md#4)
pub const MAX_TEXT: usize = 1_024;

/// A token and the byte at which it starts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SpannedToken<'t> {
    pub token: Token<'t>,
    pub at: usize,
}

/// All tokens of `text`, `End` last.
pub(crate) fn tokens(text: &str, dialect: Dialect) -> Result<Vec<SpannedToken<'_>>, ParseError> {
    if text.len() > MAX_TEXT && text.chars().count() > MAX_TEXT {
        return Err(error(
            text,
            byte_of(text, MAX_TEXT),
            Fault::TooLong(MAX_TEXT),
        ));
    }
    let mut rest = text;
    let mut tokens = Vec::new();
    loop {
        rest = rest.trim_start();
        let at = text.len() - rest.len();
        let token = next(&mut rest, dialect).map_err(|fault| error(text, at, fault))?;
        let is_end = token == Token::End;
        tokens.push(SpannedToken { token, at });
        if is_end {
            return Ok(tokens);
        }
        check_end(text, tokens.last(), rest)?;
    }
}

fn next<'t>(rest: &mut &'t str, dialect: Dialect) -> Result<Token<'t>, Fault> {
    let Some(first) = rest.chars().next() else {
        return Ok(Token::End);
    };
    match scan::token(dialect, rest) {
        Ok(Token::Name(name)) if name.is_empty() => Err(Fault::EmptyName),
        Ok(Token::Double(double)) if !double.is_finite() => Err(Fault::NumberOutOfRange),
        Ok(token) => Ok(token),
        Err(_) => Err(unexpected(first, dialect)),
    }
}

/// A number does not run into a word.
fn check_end(text: &str, last: Option<&SpannedToken<'_>>, rest: &str) -> Result<(), ParseError> {
    let is_number = matches!(
        last,
        Some(SpannedToken {
            token: Token::Integer(_) | Token::Double(_),
            ..
        })
    );
    match rest.chars().next() {
        Some(next) if is_number && (next.is_alphanumeric() || next == '_' || next == '.') => {
            Err(error(
                text,
                text.len() - rest.len(),
                Fault::UnexpectedCharacter(next),
            ))
        }
        _ => Ok(()),
    }
}

/// Why there is no token that starts with `first`.
fn unexpected(first: char, dialect: Dialect) -> Fault {
    match first {
        '\'' => Fault::UnterminatedText,
        '[' | '"' if dialect == Dialect::Sql => Fault::UnterminatedName,
        other => Fault::UnexpectedCharacter(other),
    }
}

/// The error that `fault` is at the byte `at` of `text`.
pub(crate) fn error(text: &str, at: usize, fault: Fault) -> ParseError {
    let before = text.get(..at).unwrap_or(text);
    ParseError {
        position: before.chars().count() + 1,
        fault,
    }
}

fn byte_of(text: &str, character: usize) -> usize {
    text.char_indices()
        .nth(character)
        .map_or(text.len(), |(at, _)| at)
}
