//! Control: what a run leaves out, to show that its loss is seen.

/// A part of the store's care that is left out. A run without it must fail.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Control {
    /// Files are not synced.
    SkipFileSyncs,
    /// Folders are not synced.
    SkipFolderSyncs,
    /// A sync that failed is done again, and believed.
    BelieveRetriedSync,
    /// The journal ends where the first checksum is wrong, whatever is known of later records.
    CutAtDamage,
    /// The merge drops a row that its group puts behind a removal of the same number.
    DropWhatComesBack,
}
