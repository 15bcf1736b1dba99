//! What scripts say and hear of whole entities.

use broker::{
    Command, DelayedRetry, EntityDescription, EntityPath, Order, QueueSettings, RetriedMessages,
    RetryBackoff, Status, Wall,
};

use super::{START, Stage, millis, named, receiver, time};
use crate::world::administer;

impl Stage {
    pub(super) fn remove(&mut self, args: &[&str]) {
        let path = named(args, "in=").unwrap_or("q").to_owned();
        let request = self.request("remove");
        self.turn(vec![administer(request, Order::Remove { path })]);
    }

    /// A receiver goes, alone, with its session, or with its connection.
    pub(super) fn leave(&mut self, verb: &str, args: &[&str]) {
        let receiver = receiver(args[0]);
        self.turn(vec![match verb {
            "detach" => Command::Detach { receiver },
            "lose" => Command::LoseReceiver { receiver },
            _ => Command::Disconnect {
                connection: receiver.connection,
            },
        }]);
    }

    /// The queue is declared again as it is.
    pub(super) fn redeclare(&mut self) {
        let path = "q".to_owned();
        let request = self.request("redeclare");
        self.turn(vec![administer(request, Order::Redeclare { path })]);
    }

    /// `own r1 name=mine`: a connection makes a queue for itself alone.
    pub(super) fn own(&mut self, args: &[&str]) {
        let name = named(args, "name=").unwrap_or("q").to_owned();
        let description = EntityDescription {
            settings: QueueSettings {
                exclusive: true,
                ..queue_settings(&args[1..])
            },
            ..EntityDescription::default()
        };
        let request = self.request_of(args[0], "own");
        let order = Order::Create {
            path: EntityPath::Queue(name),
            description: Box::new(description),
            rules: None,
        };
        self.turn(vec![administer(request, order)]);
    }

    /// What of a queue's counters is rarely of interest, and its times.
    pub(super) fn info(&mut self, args: &[&str]) {
        let info = self.shard.broker.queue(self.entity(args)).unwrap();
        let since_start = |at: Wall| time(at.0 - START);
        let text = format!(
            "transfer {} dead in transfer {} created {} updated {} accessed {}",
            info.transfer,
            info.transfer_dead_letter,
            since_start(info.created),
            since_start(info.updated),
            info.accessed.map_or("never".to_owned(), since_start),
        );
        self.tell(&text);
    }

    /// A queue's messages as Service Bus counts them, and its size.
    pub(super) fn counts(&mut self, args: &[&str]) {
        let info = self.shard.broker.queue(self.entity(args)).unwrap();
        let counts = info.counts();
        let text = format!(
            "active {} transfer {} all {} of {} bytes",
            counts.active,
            counts.transfer,
            counts.total(),
            info.size(),
        );
        self.tell(&text);
    }

    pub(super) fn queues(&mut self) {
        let queues = self.shard.broker.queues();
        let paths: Vec<_> = queues.map(|queue| queue.path).collect();
        self.tell(&format!("queues: {}", paths.join(" ")));
    }
}

/// The settings that a line names.
pub(super) fn queue_settings(args: &[&str]) -> QueueSettings {
    let mut settings = QueueSettings {
        lock_duration: 30_000,
        ..QueueSettings::default()
    };
    for arg in args {
        let (key, value) = arg.split_once('=').unwrap_or((arg, ""));
        match key {
            "lock" => settings.lock_duration = millis(value),
            "max-delivery" => settings.max_delivery_count = value.parse().unwrap(),
            "ttl" => settings.default_message_time_to_live = millis(value),
            "dead-letter-expired" => settings.dead_lettering_on_message_expiration = true,
            "max-size" => settings.max_size = value.parse().unwrap(),
            "max-message" => settings.max_message_size = Some(value.parse().unwrap()),
            "cloud" => settings.expiry = Some(broker::Expiry::Cloud),
            "name" => {}
            "forward" => settings.forward_to = Some(value.to_owned()),
            "forward-dead" => {
                settings.forward_dead_lettered_messages_to = Some(value.to_owned());
            }
            "dead-router" => {
                settings.dead_letter_router = Some(value.trim_matches('-').to_owned());
            }
            "dead-key" => settings.dead_letter_key = Some(value.to_owned()),
            "at-least-once" => {
                settings.dead_letter_strategy = broker::DeadLetterStrategy::AtLeastOnce;
            }
            "auto-delete" => settings.auto_delete = true,
            "priorities" => settings.priorities = Some(broker::Priorities::QUORUM),
            "levels" => {
                settings.priorities = Some(broker::Priorities {
                    highest: value.parse().unwrap(),
                    default: 0,
                });
            }
            "classic" | "quorum" => {
                settings.declared = Some(broker::Declared {
                    queue_type: match key {
                        "classic" => broker::QueueType::Classic,
                        _ => broker::QueueType::Quorum,
                    },
                    has_overflow: value == "overflow",
                });
            }
            "single" => settings.single_active_receiver = true,
            "sessions" => settings.requires_session = true,
            "expires" => settings.expires = millis(value),
            "max-length" => settings.max_length = Some(value.parse().unwrap()),
            "max-length-bytes" => settings.max_length_bytes = Some(value.parse().unwrap()),
            "reject-publish" => settings.overflow = broker::Overflow::RejectPublish,
            "reject-publish-dlx" => settings.overflow = broker::Overflow::RejectPublishDlx,
            // `MIN,MAX,FACTOR`
            "backoff" => {
                let mut parts = value.split(',');
                let mut part = || parts.next().unwrap();
                settings.retry_backoff = Some(RetryBackoff {
                    min: millis(part()),
                    max: millis(part()),
                    factor: part().parse().unwrap(),
                });
            }
            // `all`, `failed` or `returned`, then `MIN,MAX`
            "retry-all" | "retry-failed" | "retry-returned" => {
                let (min, max) = value.split_once(',').unwrap();
                settings.delayed_retry = DelayedRetry {
                    messages: match key {
                        "retry-all" => RetriedMessages::All,
                        "retry-failed" => RetriedMessages::Failed,
                        _ => RetriedMessages::Returned,
                    },
                    min: Some(millis(min)),
                    max: Some(millis(max)),
                };
            }
            "consumer-timeout" => settings.consumer_timeout = Some(millis(value)),
            "idle" => settings.auto_delete_on_idle = millis(value),
            "disabled" => settings.status = Status::Disabled,
            "send-disabled" => settings.status = Status::SendDisabled,
            "receive-disabled" => settings.status = Status::ReceiveDisabled,
            "window" => {
                settings.requires_duplicate_detection = true;
                settings.duplicate_detection_history_time_window = millis(value);
            }
            other => panic!("unknown setting {other}"),
        }
    }
    settings
}
