//! Program: the input of a target that runs it step by step.

/// The rest of the input; zeros follow its end.
pub struct Program<'a> {
    pub bytes: &'a [u8],
}

impl Program<'_> {
    pub fn byte(&mut self) -> u8 {
        match self.bytes.split_first() {
            Some((&byte, rest)) => {
                self.bytes = rest;
                byte
            }
            None => 0,
        }
    }
}
