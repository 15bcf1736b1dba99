//! Formatted entity: the values of an entity as texts.
//!
//! A duration or a target that was written through this interface is returned as it was written, as
//! long as the entity still has that value; a configuration file may have changed it since.

use broker::{EntityInfo, EntityKind};
use entity::{duration, time};

use super::View;
use super::fields::status_text;
use crate::xml::{COUNTS, Writer};

/// Go reads counts into 32 bits.
const MAX_COUNT: u64 = i32::MAX as u64;

/// An entity, to be written.
#[derive(Clone, Copy)]
pub(super) struct FormattedEntity<'a> {
    pub info: &'a EntityInfo,
    pub view: View<'a>,
}

impl FormattedEntity<'_> {
    pub(super) fn lock_duration(self) -> String {
        let text = self.info.kept.texts.lock_duration.as_deref();
        of(self.info.queue.settings.lock_duration, text)
    }

    pub(super) fn time_to_live(self) -> String {
        let text = self.info.kept.texts.default_message_time_to_live.as_deref();
        of(self.info.queue.settings.default_message_time_to_live, text)
    }

    pub(super) fn history(self) -> String {
        let texts = &self.info.kept.texts;
        let text = texts.duplicate_detection_history_time_window.as_deref();
        let settings = &self.info.queue.settings;
        of(settings.duplicate_detection_history_time_window, text)
    }

    pub(super) fn idle(self) -> String {
        let text = self.info.kept.texts.auto_delete_on_idle.as_deref();
        of(self.info.queue.settings.auto_delete_on_idle, text)
    }

    pub(super) fn status(self) -> &'static str {
        status_text(self.info.queue.settings.status)
    }

    pub(super) fn forward_to(self) -> Option<String> {
        let texts = &self.info.kept.texts;
        let target = self.info.queue.settings.forward_to.as_deref();
        self.target(target, texts.forward_to.as_deref())
    }

    pub(super) fn dead_letters_to(self) -> Option<String> {
        let texts = &self.info.kept.texts;
        let settings = &self.info.queue.settings;
        let target = settings.forward_dead_lettered_messages_to.as_deref();
        self.target(target, texts.forward_dead_lettered_messages_to.as_deref())
    }

    /// A target written through this interface is returned as it is; a file has only a path.
    /// (docs/spec/admin.md#2.2)
    fn target(self, target: Option<&str>, written: Option<&str>) -> Option<String> {
        let target = target?;
        if written == Some(target) || target.contains("://") {
            return Some(target.to_owned());
        }
        Some(format!(
            "sb://{}/{}",
            self.view.host,
            target.trim_matches('/')
        ))
    }

    pub(super) fn max_message_kilobytes(self) -> u64 {
        let own = self.info.queue.settings.max_message_size;
        own.unwrap_or(self.view.settings.max_message_size) >> 10
    }

    pub(super) fn write_times(self, writer: &mut Writer) {
        let queue = &self.info.queue;
        writer.text("CreatedAt", time::text(queue.created));
        writer.text("UpdatedAt", time::text(queue.updated));
        if self.view.runtime {
            let accessed = queue.accessed.map(time::text);
            writer.text("AccessedAt", accessed.as_deref().unwrap_or(time::NEVER));
        }
    }
}

/// A duration in milliseconds as text; the text that was written, if it has this value.
fn of(millis: u64, written: Option<&str>) -> String {
    let written = written.filter(|text| duration::millis(text) == Some(millis));
    written.map_or_else(|| duration::text(millis), str::to_owned)
}

/// The numbers of messages of an entity. (docs/spec/entities.md#16)
pub(super) struct Counts {
    active: u64,
    dead_letter: u64,
    scheduled: u64,
    transfer: u64,
    transfer_dead_letter: u64,
}

pub(super) fn counts(info: &EntityInfo) -> Counts {
    let queue = &info.queue;
    // Messages of a topic are in transfer to its subscriptions.
    let transfer = match queue.kind {
        EntityKind::Topic => queue.active,
        EntityKind::Queue | EntityKind::Subscription => queue.transfer,
    };
    Counts {
        active: queue.active.saturating_sub(transfer) + queue.deferred,
        dead_letter: queue.dead_letter,
        scheduled: queue.scheduled,
        transfer,
        transfer_dead_letter: queue.transfer_dead_letter,
    }
}

impl Counts {
    pub(super) fn total(&self) -> u64 {
        let all = [
            self.active,
            self.dead_letter,
            self.scheduled,
            self.transfer,
            self.transfer_dead_letter,
        ];
        all.into_iter().fold(0, u64::saturating_add)
    }

    /// The declaration of the prefix is the element's only attribute: one client looks there for
    /// the prefix. (docs/spec/admin.md#5.7)
    pub(super) fn write(&self, writer: &mut Writer, prefix: &str) {
        let declaration = format!("xmlns:{prefix}");
        writer.open("CountDetails", &[(&declaration, COUNTS)]);
        let counts = [
            ("ActiveMessageCount", self.active),
            ("DeadLetterMessageCount", self.dead_letter),
            ("ScheduledMessageCount", self.scheduled),
            ("TransferMessageCount", self.transfer),
            ("TransferDeadLetterMessageCount", self.transfer_dead_letter),
        ];
        for (name, count) in counts {
            writer.number(&format!("{prefix}:{name}"), count.min(MAX_COUNT));
        }
        writer.close("CountDetails");
    }
}
