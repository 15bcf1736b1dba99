//! Railbus as a peer of the others: durable, with the settings of every other row.

use std::time::Instant;

use anyhow::Result;

use super::{Peer, Running, Stop};
use crate::site::{Fresh, Site};

/// The broker of this workspace.
pub struct Railbus {
    site: Site,
}

impl Railbus {
    /// On `site`.
    pub fn new(site: Site) -> Self {
        Self { site }
    }
}

impl Peer for Railbus {
    fn name(&self) -> String {
        format!("Railbus {}", env!("CARGO_PKG_VERSION"))
    }

    fn notes(&self) -> Vec<String> {
        vec!["a message and a settlement count once they are synced".to_owned()]
    }

    fn start(&self) -> Result<Running> {
        let began = Instant::now();
        let fresh = self.site.fresh()?;
        let place = fresh.place()?;
        place.await_session(|| Ok(()))?;
        Ok(Running {
            place,
            took: began.elapsed(),
            broker: Box::new(fresh),
        })
    }
}

impl Stop for Fresh {
    fn stop(self: Box<Self>) -> Result<()> {
        Fresh::stop(*self)
    }
}
