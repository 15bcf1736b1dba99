//! Clock of a script: its time passes by the broker's clock, or by that of its namespace alone.

use broker::{Command, Mono, Now, Wall};
use store::NamespaceId;

use super::{START, Stage};

/// By which clock the time of a script passes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Clock {
    Broker,
    /// The broker's stands still at that time, and its namespace has come as far as that.
    Namespace {
        broker: u64,
        namespace: u64,
    },
}

impl Clock {
    pub(super) const OF_NAMESPACE: Self = Self::Namespace {
        broker: 0,
        namespace: 0,
    };
}

impl Stage {
    /// What the script's clocks show.
    pub(super) fn now(&self) -> Now {
        self.at(self.mono)
    }

    /// What the broker's clocks show.
    pub(super) fn broker_now(&self) -> Now {
        match self.clock {
            Clock::Broker => self.now(),
            // It has been told of all that has passed but what has since the last turn.
            Clock::Namespace { broker, namespace } => self.at(broker + self.mono - namespace),
        }
    }

    fn at(&self, mono: u64) -> Now {
        Now {
            wall: Wall((START + mono).saturating_add_signed(self.wall_offset)),
            mono: Mono(mono),
        }
    }

    /// What lets the time pass that has passed in the script since the last turn.
    pub(super) fn advance_clock(&mut self) -> Option<Command> {
        let Clock::Namespace { namespace, .. } = &mut self.clock else {
            return None;
        };
        let ms = self.mono - std::mem::replace(namespace, self.mono);
        let namespace = NamespaceId(0);
        (ms > 0).then_some(Command::AdvanceClock { namespace, ms })
    }

    /// The clocks of namespaces do not survive the process.
    pub(super) fn restart_clock(&mut self) {
        if let Clock::Namespace { broker, namespace } = &mut self.clock {
            (*broker, *namespace) = (self.mono, self.mono);
        }
    }

    /// When the shard wants to be told, in the script's time.
    pub(super) fn next_deadline(&self) -> Option<u64> {
        let deadline = self.shard.deadline()?;
        let now = self.broker_now();
        let mono = deadline.mono.map(|at| at.0.saturating_sub(now.mono.0));
        let wall = deadline.wall.map(|at| at.0.saturating_sub(now.wall.0));
        let left = mono.into_iter().chain(wall).min()?;
        Some(self.mono.saturating_add(left))
    }
}
