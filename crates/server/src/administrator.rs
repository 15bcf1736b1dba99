//! Administrator: whoever runs the server and changes things while it is at work.

use std::sync::{Arc, Weak};

use broker::{BrokerLimits, Command};
use servicebus::{AccessRules, Directory};
use tokio::sync::watch;

use crate::apply::{Wish, apply};
use crate::desk::{Closed, Desk};
use crate::door::House;
use crate::options::Limits;
use crate::plan::{Plan, Wanted};

/// A way to a server's entities, keys and limits. Does not keep the server from ending.
#[derive(Clone)]
pub struct Administrator {
    house: Weak<House>,
    directory: watch::Sender<Arc<Directory>>,
}

impl Administrator {
    pub(crate) fn new(house: &Arc<House>, directory: watch::Sender<Arc<Directory>>) -> Self {
        Self {
            house: Arc::downgrade(house),
            directory,
        }
    }

    /// Replaces the rules of the namespace, as after a change of the configuration. What everyone
    /// may do and whether the development key is in use go with them; the rules of queues and topics
    /// stay as they are.
    ///
    /// Takes effect at once and as a whole: tokens and passwords are checked against `rules` from
    /// the next one on, and links that rest on a key that is gone, or on a right that it does not
    /// give any more, are detached.
    pub fn replace_access_rules(&self, rules: AccessRules) {
        self.directory
            .send_modify(|directory| Arc::make_mut(directory).set_access_rules(rules));
    }

    /// Makes the namespace as `wanted` says, all of it or nothing. What has changed is in the plan;
    /// if anything is refused in it, nothing has.
    ///
    /// # Errors
    /// When the server stops or has failed.
    pub async fn apply(&self, wanted: &Wanted) -> Result<Plan, Closed> {
        let mut desk = self.desk().await?;
        let plan = apply(&mut desk, wanted, Wish::Apply).await?;
        desk.close().await;
        Ok(plan)
    }

    /// Lets other limits hold: those of all connections together and of the broker at once, those of
    /// one connection for those that come from now on.
    ///
    /// # Errors
    /// When the server stops or has failed.
    pub async fn set_limits(
        &self,
        limits: Limits,
        connections: servicebus::Settings,
        broker: BrokerLimits,
    ) -> Result<(), Closed> {
        self.house()?.set_limits(limits, connections);
        let desk = self.desk().await?;
        desk.tell(vec![Command::SetLimits(broker)]).await?;
        desk.close().await;
        Ok(())
    }

    async fn desk(&self) -> Result<Desk, Closed> {
        let house = self.house()?;
        Desk::open_in(&house).await
    }

    fn house(&self) -> Result<Arc<House>, Closed> {
        self.house.upgrade().ok_or(Closed)
    }
}
