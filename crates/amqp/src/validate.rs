//! Validate: the iterative check of every value before it is decoded.
//!
//! It never recurses and never allocates: sizes must lie inside their enclosing size, nesting stays
//! within [`MAX_DEPTH`], and element counts must fit the remaining bytes, so that `array of null`
//! cannot claim 2^31 items. Texts are left to the decoder.
//!
//! Invariant: a value that passes can be decoded with memory in proportion to the input.

use crate::decode::DecodeError;
use crate::format::{self, Shape, Width, shape};

/// The deepest nesting of lists, maps, arrays and descriptors that is accepted.
pub const MAX_DEPTH: usize = 32;

/// The charge that shared constructors of arrays may use beyond the input's bytes.
///
/// An array writes its constructor once, while every decoded element carries it, descriptors
/// included. So each element is charged for the bytes it saves, up to twice the input and this.
const FREE_CHARGE: usize = 1024;

/// Checks one value at the start of `input` and returns how many bytes it takes.
///
/// # Errors
/// When the value is malformed, cut short, too deep, or has more elements than `max_elements`.
pub fn value(input: &[u8], max_elements: usize) -> Result<usize, DecodeError> {
    let mut walk = Walk::new(input, max_elements);
    while let Some(level) = walk.next_item()? {
        match level.element {
            Some(code) => walk.body(code, level, level.depth)?,
            None => walk.item(level)?,
        }
    }
    Ok(walk.at)
}

/// The bytes that one value at the start of `input` takes by its outermost size; nothing inside is
/// looked at.
///
/// # Errors
/// When its constructor is malformed or it ends after `input`.
pub fn extent(input: &[u8]) -> Result<usize, DecodeError> {
    let mut walk = Walk::new(input, 0);
    let root = walk.levels[0];
    let (code, _) = walk.constructor(root, 0)?;
    match shape(code).ok_or(DecodeError::UnknownFormat(code))? {
        Shape::Fixed(width) => walk.skip(width, root)?,
        Shape::Variable(width) | Shape::Compound(width) | Shape::Array(width) => {
            walk.skip_sized(width, root)?;
        }
    }
    Ok(walk.at)
}

/// One list, map or array that is being walked through.
#[derive(Clone, Copy)]
struct Level {
    name: &'static str,
    end: usize,
    /// Items still to come.
    left: usize,
    /// The nesting at which the items stand.
    depth: usize,
    /// The format code that all items share, in an array.
    element: Option<u8>,
}

struct Walk<'a> {
    input: &'a [u8],
    at: usize,
    /// The first is the input itself, with its one value.
    levels: [Level; MAX_DEPTH + 1],
    open: usize,
    elements: usize,
    max_elements: usize,
    charge_left: usize,
}

impl<'a> Walk<'a> {
    fn new(input: &'a [u8], max_elements: usize) -> Self {
        let root = Level {
            name: "input",
            end: input.len(),
            left: 1,
            depth: 0,
            element: None,
        };
        Self {
            input,
            at: 0,
            levels: [root; MAX_DEPTH + 1],
            open: 1,
            elements: 0,
            max_elements,
            charge_left: input.len().saturating_mul(2).saturating_add(FREE_CHARGE),
        }
    }

    /// The level whose next item is due, after leaving those that are complete.
    fn next_item(&mut self) -> Result<Option<Level>, DecodeError> {
        while let Some(top) = self.open.checked_sub(1) {
            let level = &mut self.levels[top];
            if level.left > 0 {
                level.left -= 1;
                return Ok(Some(*level));
            }
            if top > 0 && self.at < level.end {
                return Err(DecodeError::Trailing(level.end - self.at));
            }
            self.open = top;
        }
        Ok(None)
    }

    fn item(&mut self, level: Level) -> Result<(), DecodeError> {
        let (code, depth) = self.constructor(level, level.depth)?;
        self.body(code, level, depth)
    }

    /// A format code behind any number of descriptors, and the depth that these lead to.
    fn constructor(&mut self, level: Level, mut depth: usize) -> Result<(u8, usize), DecodeError> {
        loop {
            let code = self.byte(level)?;
            if code == format::LIST_0 {
                // An empty list nests as any other: it may be written in another form.
                deeper(depth)?;
            }
            if code != format::DESCRIBED {
                return Ok((code, depth));
            }
            depth = deeper(depth)?;
            self.descriptor(level)?;
        }
    }

    /// Descriptors other than ulong and symbol are reserved; those that nest are refused.
    /// [AMQP 1.2]
    fn descriptor(&mut self, level: Level) -> Result<(), DecodeError> {
        let code = self.byte(level)?;
        match shape(code) {
            Some(Shape::Fixed(width)) if code != format::LIST_0 => self.skip(width, level),
            Some(Shape::Variable(width)) => self.skip_sized(width, level),
            _ => Err(DecodeError::BadDescriptor(code)),
        }
    }

    fn body(&mut self, code: u8, level: Level, depth: usize) -> Result<(), DecodeError> {
        match shape(code).ok_or(DecodeError::UnknownFormat(code))? {
            Shape::Fixed(width) => self.skip(width, level),
            Shape::Variable(width) => self.skip_sized(width, level),
            Shape::Compound(width) => self.enter_compound(code, width, level, depth),
            Shape::Array(width) => self.enter_array(width, level, depth),
        }
    }

    fn enter_compound(
        &mut self,
        code: u8,
        width: Width,
        level: Level,
        depth: usize,
    ) -> Result<(), DecodeError> {
        let is_map = matches!(code, format::MAP_8 | format::MAP_32);
        let name = if is_map { "map" } else { "list" };
        let inner = self.enter(name, width, level, depth)?;
        if is_map && !inner.left.is_multiple_of(2) {
            return Err(DecodeError::OddMap);
        }
        self.push(inner)
    }

    fn enter_array(&mut self, width: Width, level: Level, depth: usize) -> Result<(), DecodeError> {
        let mut inner = self.enter("array", width, level, depth)?;
        if inner.left == 0 && self.at == inner.end {
            // Some encoders leave out the constructor when there is nothing to construct.
            return Ok(());
        }
        let start = self.at;
        let (code, depth) = self.constructor(inner, inner.depth)?;
        let shape = shape(code).ok_or(DecodeError::UnknownFormat(code))?;
        self.charge(inner.left, self.at - start, shape)?;
        if let Shape::Fixed(width) = shape {
            let size = inner
                .left
                .checked_mul(width)
                .ok_or(DecodeError::CutShort("array"))?;
            self.skip(size, inner)?;
            inner.left = 0;
        }
        inner.depth = depth;
        inner.element = Some(code);
        self.push(inner)
    }

    /// Charges an array's elements for what they share instead of bringing it along.
    fn charge(
        &mut self,
        count: usize,
        constructor: usize,
        shape: Shape,
    ) -> Result<(), DecodeError> {
        let brings_bytes = shape != Shape::Fixed(0);
        let each = constructor - usize::from(brings_bytes);
        let limit = self.charge_left;
        self.charge_left = limit
            .checked_sub(count.saturating_mul(each))
            .ok_or(DecodeError::TooMany { count, limit })?;
        Ok(())
    }

    /// Reads size and count of a compound value.
    fn enter(
        &mut self,
        name: &'static str,
        width: Width,
        level: Level,
        depth: usize,
    ) -> Result<Level, DecodeError> {
        let size = self.size(width, level)?;
        let start = self.at;
        self.check(size, level)?;
        let inner = Level {
            name,
            end: start + size,
            left: 0,
            depth: deeper(depth)?,
            element: None,
        };
        let count = self.size(width, inner)?;
        self.count(count)?;
        Ok(Level {
            left: count,
            ..inner
        })
    }

    /// Lets the items of `level` come next; each of them takes a byte at least.
    fn push(&mut self, level: Level) -> Result<(), DecodeError> {
        if level.left > level.end - self.at {
            return Err(DecodeError::CutShort(level.name));
        }
        self.levels[self.open] = level;
        self.open += 1;
        Ok(())
    }

    fn count(&mut self, elements: usize) -> Result<(), DecodeError> {
        self.elements = self.elements.saturating_add(elements);
        if self.elements > self.max_elements {
            return Err(DecodeError::TooMany {
                count: self.elements,
                limit: self.max_elements,
            });
        }
        Ok(())
    }

    fn byte(&mut self, level: Level) -> Result<u8, DecodeError> {
        let at = self.at;
        self.skip(1, level)?;
        Ok(self.input[at])
    }

    fn size(&mut self, width: Width, level: Level) -> Result<usize, DecodeError> {
        let at = self.at;
        self.skip(width.bytes(), level)?;
        let bytes = &self.input[at..self.at];
        Ok(bytes
            .iter()
            .fold(0, |size, byte| size << 8 | usize::from(*byte)))
    }

    fn skip_sized(&mut self, width: Width, level: Level) -> Result<(), DecodeError> {
        let size = self.size(width, level)?;
        self.skip(size, level)
    }

    fn skip(&mut self, count: usize, level: Level) -> Result<(), DecodeError> {
        self.check(count, level)?;
        self.at += count;
        Ok(())
    }

    fn check(&self, count: usize, level: Level) -> Result<(), DecodeError> {
        // `at` never passes the end of the level it is in, which never passes the input's.
        if count > level.end - self.at {
            return Err(DecodeError::CutShort(level.name));
        }
        Ok(())
    }
}

fn deeper(depth: usize) -> Result<usize, DecodeError> {
    if depth == MAX_DEPTH {
        return Err(DecodeError::TooDeep(MAX_DEPTH));
    }
    Ok(depth + 1)
}
