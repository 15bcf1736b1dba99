//! The line of scripts that changes what may change while the broker runs.

use broker::{BrokerLimits, Command};

use super::{Stage, millis};

impl Stage {
    /// What is not named becomes what it is by the settings.
    pub(super) fn limits(&mut self, args: &[&str]) {
        let mut limits: BrokerLimits = self.settings.limits();
        for arg in args {
            let (name, value) = arg.split_once('=').unwrap();
            match name {
                "output-buffer" => limits.output_buffer_bytes = value.parse().unwrap(),
                "operations" => limits.transactions.operations = value.parse().unwrap(),
                "open" => limits.transactions.open = value.parse().unwrap(),
                "life" => limits.transactions.life = millis(value),
                other => panic!("unknown limit {other}"),
            }
        }
        self.turn(vec![Command::SetLimits(limits)]);
    }
}
