//! Directory: which namespace a connection belongs to, and the entities that it knows of.

use std::sync::Arc;

use access::Directory;
use dialect::{Dialect, ForcedClose};
use tokio::time::Instant;

use super::Connection;
use super::phase::DrainReason;
use crate::transport::stream::Stream;

impl<S: Stream, D: Dialect> Connection<S, D> {
    /// Passes changes of entities to the client, before it handles any later output or input.
    pub(super) fn update_directory(&mut self) {
        // The last change of a namespace is that it is deleted; its sender is gone then.
        if self.directory_receiver.has_changed().unwrap_or(true) {
            let directory = Arc::clone(&self.directory_receiver.borrow_and_update());
            let known = self.client.directory();
            if !known.is_deleted() && !std::ptr::eq(&raw const *directory, known) {
                let now = self.server.clock.moment();
                self.client.set_directory(now, directory);
            }
        }
    }

    /// Watches the namespace that the connection has found while it opens.
    pub(super) fn follow_namespace(&mut self) {
        let namespace = self.client.directory().namespace();
        if namespace == self.namespace {
            return;
        }
        self.namespace = namespace;
        // A client that needs no credential may find it after its open.
        self.is_counted = false;
        match self.server.namespaces.subscribe(namespace) {
            Some(mut receiver) => {
                // It may have changed since it was found.
                receiver.mark_changed();
                if let Some(tracer) = &mut self.tracer {
                    tracer.follow(receiver.clone());
                }
                self.directory_receiver = receiver;
            }
            None => {
                let now = self.server.clock.moment();
                let deleted = Arc::new(Directory::deleted(namespace));
                self.client.set_directory(now, deleted);
            }
        }
    }

    /// Counts the connection among those of its namespace, once it can be told that there are too
    /// many. A client without a credential takes no place from others.
    pub(super) fn take_place(&mut self) {
        if self.is_counted || !self.client.is_opened() || self.client.is_unauthenticated() {
            return;
        }
        self.is_counted = true;
        if let (Some(tracer), Some(host)) = (&mut self.tracer, self.client.host()) {
            tracer.name_server(host);
        }
        match self.server.namespaces.admit(self.namespace) {
            Ok(place) => self.namespace_place = place,
            Err(limit) => {
                // What it has asked for came with its open or its credential. It has no answers to
                // wait for.
                self.client.commands().clear();
                let reason = DrainReason::Forced(ForcedClose::NamespaceIsFull(limit));
                self.drain_until(Instant::now(), reason);
            }
        }
    }
}
