//! Shares of an image: the number of copies left of each shared body.
//!
//! A shared body has a count from its first set until its last copy is released, which removes the
//! body. A write that breaks the contract never removes a body.

use super::{ContractViolation, Image};
use crate::record::BodyPointer;

impl Image {
    pub(super) fn share_body(
        &mut self,
        pointer: BodyPointer,
        copies: u32,
    ) -> Result<(), ContractViolation> {
        let key = (pointer.home, pointer.number);
        if copies == 0 {
            return Err(ContractViolation::SharedWrongly(pointer));
        }
        let before = self.shares.insert(key, copies);
        if before.is_some() || !self.bodies.contains_key(&key) {
            return Err(ContractViolation::SharedWrongly(pointer));
        }
        Ok(())
    }

    pub(super) fn release_body(&mut self, pointer: BodyPointer) -> Result<(), ContractViolation> {
        let key = (pointer.home, pointer.number);
        let left = self.shares.get_mut(&key);
        let left = left.ok_or(ContractViolation::NotShared(pointer))?;
        *left -= 1;
        if *left > 0 {
            return Ok(());
        }
        self.shares.remove(&key);
        let removed = self.bodies.remove(&key);
        removed
            .map(drop)
            .ok_or(ContractViolation::BodyNotThere(pointer))
    }
}
