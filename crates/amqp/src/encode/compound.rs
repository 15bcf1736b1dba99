//! Compound: lists and maps, begun before and finished after their items are written.
//!
//! The compact form is written first, and widened in the rare case that the items outgrow it.

use bytes::BytesMut;

use crate::encode;
use crate::format::{self, Width};
use crate::symbol::Symbol;
use crate::value::Value;

/// The bytes by which the full form's head is longer than the compact one's.
const WIDENING: usize = 6;
/// The head of the compact form: code, size, count.
const COMPACT_HEAD: usize = 3;
/// The head of the full form.
const FULL_HEAD: usize = COMPACT_HEAD + WIDENING;

/// Starts a list whose size and count take four bytes each; [`list32_finish`] fills them in.
pub fn list32_begin(out: &mut BytesMut) -> usize {
    full_begin(out, format::LIST_32, 0)
}

/// Ends the list that [`list32_begin`] started at `start`, after `items` values.
pub fn list32_finish(out: &mut BytesMut, start: usize, items: usize) {
    out[start + 5..start + FULL_HEAD].copy_from_slice(&size32(items));
    finish(out, start);
}

/// Starts a map whose size and count take four bytes each; [`map32_finish`] fills them in.
pub fn map32_begin(out: &mut BytesMut) -> usize {
    full_begin(out, format::MAP_32, 0)
}

/// Ends the map that [`map32_begin`] started at `start`, after `entries` keys and values.
pub fn map32_finish(out: &mut BytesMut, start: usize, entries: usize) {
    list32_finish(out, start, 2 * entries);
}

/// Starts a map of `entries` keys and values in its smallest form; [`map_finish`] fills in its
/// size.
pub fn map_begin(out: &mut BytesMut, entries: usize) -> usize {
    begin(out, format::MAP_8, 2 * entries)
}

/// Ends the map that was started at `start`.
#[inline]
pub fn map_finish(out: &mut BytesMut, start: usize) {
    finish(out, start);
}

/// Appends a map.
pub fn map(out: &mut BytesMut, entries: &[(Value, Value)]) {
    let start = map_begin(out, entries.len());
    for (key, value) in entries {
        encode::value(out, key);
        encode::value(out, value);
    }
    map_finish(out, start);
}

/// Appends a list of values.
pub(super) fn list(out: &mut BytesMut, items: &[Value]) {
    let start = list_begin(out, items.len());
    for item in items {
        encode::value(out, item);
    }
    list_finish(out, start);
}

/// Appends a field of several symbols: null for none, else always an array (docs/spec/amqp.md#1.3).
pub(crate) fn symbols(out: &mut BytesMut, symbols: &[Symbol]) {
    if symbols.is_empty() {
        return encode::null(out);
    }
    symbol_array(out, symbols);
}

/// Appends symbols as an array, however many there are.
pub(crate) fn symbol_array(out: &mut BytesMut, symbols: &[Symbol]) {
    let start = begin(out, format::ARRAY_8, symbols.len());
    let long = symbols
        .iter()
        .any(|symbol| symbol.as_str().len() > usize::from(u8::MAX));
    out.extend_from_slice(&[if long {
        format::SYMBOL_32
    } else {
        format::SYMBOL_8
    }]);
    for name in symbols.iter().map(Symbol::as_str) {
        let size = size32(name.len());
        out.extend_from_slice(if long { &size } else { &size[3..] });
        out.extend_from_slice(name.as_bytes());
    }
    finish(out, start);
}

/// Starts a list with a numeric descriptor; [`list_finish`] ends it.
#[inline]
pub(crate) fn described_list(out: &mut BytesMut, descriptor: u64, count: u8) -> usize {
    // Every composite type of the standard has a descriptor below 256.
    let start = out.len();
    let head = [
        format::DESCRIBED,
        format::SMALL_ULONG,
        descriptor as u8,
        format::LIST_8,
        0,
        count,
    ];
    out.extend_from_slice(&head);
    start + 3
}

/// Starts a list of `items` values in its smallest form; [`list_finish`] fills in its size.
pub fn list_begin(out: &mut BytesMut, items: usize) -> usize {
    begin(out, format::LIST_8, items)
}

/// Ends the list that was started at `start`.
#[inline]
pub fn list_finish(out: &mut BytesMut, start: usize) {
    finish(out, start);
}

/// Starts a list, map or array by its compact code, in full if the count asks for it.
pub(super) fn begin(out: &mut BytesMut, compact: u8, count: usize) -> usize {
    match u8::try_from(count) {
        Ok(count) => {
            let start = out.len();
            out.extend_from_slice(&[compact, 0, count]);
            start
        }
        Err(_) => full_begin(out, format::full(compact), count),
    }
}

fn full_begin(out: &mut BytesMut, code: u8, count: usize) -> usize {
    let start = out.len();
    out.extend_from_slice(&[code, 0, 0, 0, 0]);
    out.extend_from_slice(&size32(count));
    start
}

/// Fills in the size of the list, map or array at `start`, which ends where `out` does.
#[inline]
pub(super) fn finish(out: &mut BytesMut, start: usize) {
    if Width::of(out[start]) == Width::Four {
        let size = size32(out.len() - start - 5);
        out[start + 1..start + 5].copy_from_slice(&size);
        return;
    }
    match u8::try_from(out.len() - start - 2) {
        Ok(size) => out[start + 1] = size,
        Err(_) => widen(out, start),
    }
}

/// Turns the compact form at `start` into the full one.
#[cold]
fn widen(out: &mut BytesMut, start: usize) {
    let end = out.len();
    out.resize(end + WIDENING, 0);
    out.copy_within(start + COMPACT_HEAD..end, start + FULL_HEAD);
    let count = out[start + 2];
    out[start] = format::full(out[start]);
    out[start + 5..start + FULL_HEAD].copy_from_slice(&size32(usize::from(count)));
    finish(out, start);
}

/// A size or count as it stands on the wire.
pub(super) fn size32(size: usize) -> [u8; 4] {
    u32::try_from(size)
        .expect("messages are limited far below 4 GiB")
        .to_be_bytes()
}
