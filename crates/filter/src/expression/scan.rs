//! Scan: the syntax of each kind of token.
//!
//! SQL: `name`, `[any name]`, `"any name"`, `@parameter`, `'it''s'`, `7`, `7.5`, `7E5`. JMS: names
//! may hold `_` and `$` and are never delimited; numbers are Java's: `7L`, `0x1F`, `017`, `7.`,
//! `.5`, `7f`.

use winnow::ascii::{digit1, hex_digit1, oct_digit1};
use winnow::combinator::{alt, delimited, opt, preceded, repeat};
use winnow::error::ContextError;
use winnow::prelude::*;
use winnow::token::{none_of, one_of, take_while};

use crate::expression::dialect::Dialect;
use crate::expression::token::Token;

type Scanned<T> = Result<T, ContextError>;

/// Splits one token off the front of `rest`.
pub(crate) fn token<'t>(dialect: Dialect, rest: &mut &'t str) -> Scanned<Token<'t>> {
    match dialect {
        Dialect::Sql => alt((
            sql_word.map(Token::Word),
            text.map(Token::Text),
            sql_number,
            delimited_name.map(Token::Name),
            preceded('@', sql_word).map(Token::Parameter),
            sql_sign.map(Token::Sign),
        ))
        .parse_next(rest),
        Dialect::Jms => alt((
            java_word.map(Token::Word),
            text.map(Token::Text),
            java_number,
            java_sign.map(Token::Sign),
        ))
        .parse_next(rest),
    }
}

fn sql_word<'t>(rest: &mut &'t str) -> Scanned<&'t str> {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    (one_of(char::is_alphabetic), take_while(0.., part))
        .take()
        .parse_next(rest)
}

fn java_word<'t>(rest: &mut &'t str) -> Scanned<&'t str> {
    let start = |c: char| c.is_alphabetic() || c == '_' || c == '$';
    let part = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
    (one_of(start), take_while(0.., part))
        .take()
        .parse_next(rest)
}

fn text(rest: &mut &str) -> Scanned<String> {
    enclosed('\'', '\'').parse_next(rest)
}

fn delimited_name(rest: &mut &str) -> Scanned<String> {
    alt((enclosed('[', ']'), enclosed('"', '"'))).parse_next(rest)
}

/// Anything between `open` and `close`; a `close` that belongs to it is doubled.
fn enclosed<'t>(open: char, close: char) -> impl Parser<&'t str, String, ContextError> {
    let doubled = (close, close).value(close);
    let content = repeat(0.., alt((none_of([close]), doubled)));
    delimited(
        open,
        content.fold(String::new, |mut content, next| {
            content.push(next);
            content
        }),
        close,
    )
}

fn sql_number<'t>(rest: &mut &'t str) -> Scanned<Token<'t>> {
    let fraction = || ('.', digit1);
    let whole = (digit1, opt(fraction()), opt(exponent)).take();
    let broken = (fraction(), opt(exponent)).take();
    alt((whole, broken)).map(number).parse_next(rest)
}

/// An integer, if it has neither a point nor an exponent. What is too large comes as infinity.
fn number(digits: &str) -> Token<'static> {
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    let integer = if is_integer {
        digits.parse().ok()
    } else {
        None
    };
    match (integer, is_integer) {
        (Some(integer), _) => Token::Integer(integer),
        (None, true) => Token::Double(f64::INFINITY),
        (None, false) => Token::Double(digits.parse().unwrap_or(f64::INFINITY)),
    }
}

fn exponent<'t>(rest: &mut &'t str) -> Scanned<&'t str> {
    (one_of(['e', 'E']), opt(one_of(['+', '-'])), digit1)
        .take()
        .parse_next(rest)
}

fn java_number<'t>(rest: &mut &'t str) -> Scanned<Token<'t>> {
    alt((java_double, java_integer)).parse_next(rest)
}

fn java_double<'t>(rest: &mut &'t str) -> Scanned<Token<'t>> {
    let suffix = || one_of(['f', 'F', 'd', 'D']);
    let pointed = alt((
        (digit1, '.', take_while(0.., '0'..='9'), opt(exponent)).take(),
        ('.', digit1, opt(exponent)).take(),
        (digit1, exponent).take(),
    ));
    let plain = (digit1, suffix()).map(|(digits, _)| digits);
    alt(((pointed, opt(suffix())).map(|(digits, _)| digits), plain))
        .map(|digits: &str| Token::Double(digits.parse().unwrap_or(f64::INFINITY)))
        .parse_next(rest)
}

fn java_integer<'t>(rest: &mut &'t str) -> Scanned<Token<'t>> {
    let hexadecimal = preceded(alt(("0x", "0X")), hex_digit1).map(|digits| radix(digits, 16));
    let octal = preceded('0', oct_digit1).map(|digits| radix(digits, 8));
    let decimal = digit1.verify(|digits: &str| digits == "0" || !digits.starts_with('0'));
    let integer = alt((hexadecimal, octal, decimal.map(number)));
    (integer, opt(one_of(['l', 'L'])))
        .map(|(integer, _)| integer)
        .parse_next(rest)
}

fn radix(digits: &str, radix: u32) -> Token<'static> {
    u64::from_str_radix(digits, radix).map_or(Token::Double(f64::INFINITY), Token::Integer)
}

fn sql_sign<'t>(rest: &mut &'t str) -> Scanned<&'t str> {
    let one = one_of([
        '(', ')', ',', '.', ';', '+', '-', '*', '/', '%', '=', '<', '>',
    ]);
    alt(("<=", ">=", "<>", "!=", one.take())).parse_next(rest)
}

fn java_sign<'t>(rest: &mut &'t str) -> Scanned<&'t str> {
    let one = one_of(['(', ')', ',', '+', '-', '*', '/', '=', '<', '>']);
    alt(("<=", ">=", "<>", one.take())).parse_next(rest)
}
