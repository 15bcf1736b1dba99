//! Commit: makes write sets durable in the journal, in groups.
//!
//! Large bodies are written before. The index is told after a group is durable.

pub mod commit_progress;
pub mod commits;
pub mod committer;
pub mod group;
pub mod stager;
pub mod submitter;
