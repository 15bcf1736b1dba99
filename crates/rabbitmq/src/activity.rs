//! Activity: whether a consumer is the one that gets messages, as its client is told.
//! (docs/spec/rabbitmq.md#10.1)
//!
//! The client is told by the properties of a flow: after its first credit, and on each change.

/// What a client is told of one consumer.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    /// As the broker has said.
    active: Option<bool>,
    has_had_credit: bool,
    told: Option<bool>,
}

impl Activity {
    /// The broker says whether the consumer is active.
    pub(crate) fn set(&mut self, active: bool) {
        self.active = Some(active);
    }

    /// The client has given credit.
    pub(crate) fn credited(&mut self) {
        self.has_had_credit = true;
    }

    /// What the client does not know yet, and is to be told now.
    pub(crate) fn news(&mut self) -> Option<bool> {
        let news = self.active.filter(|_| self.has_had_credit)?;
        let is_new = self.told.replace(news) != Some(news);
        is_new.then_some(news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_told_after_its_first_credit_and_of_each_change() {
        let mut activity = Activity::default();
        activity.set(false);
        assert_eq!(activity.news(), None);
        activity.credited();
        assert_eq!(activity.news(), Some(false));
        assert_eq!(activity.news(), None);
        activity.set(true);
        assert_eq!(activity.news(), Some(true));
        activity.set(true);
        assert_eq!(activity.news(), None);
    }

    #[test]
    fn credit_that_comes_before_the_broker_has_said_anything_is_remembered() {
        let mut activity = Activity::default();
        activity.credited();
        assert_eq!(activity.news(), None);
        activity.set(true);
        assert_eq!(activity.news(), Some(true));
    }
}
