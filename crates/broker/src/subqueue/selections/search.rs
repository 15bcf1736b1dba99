//! Search: how a selection comes to its next message.
//!
//! First what became available again, then on from the cursor: through the page where there is
//! one, else through the window, else by a read. Work is bounded; what is left of it goes on with
//! the next tick.

use store::SequenceNumber;

use super::Selection;
use super::evaluate::evaluate;
use super::reading::Ask;
use crate::context::Context;
use crate::context::clients::SelectionId;
use crate::message::entry::Entry;
use crate::queue::rows::Rows;
use crate::subqueue::SubqueueState;

/// Most messages, and bytes of them, that are asked for by number at once.
const POINTS: usize = 256;
const POINT_BYTES: usize = 1 << 20;

/// What a search has come to.
pub(super) enum SearchResult {
    /// A message that is selected, with its body in memory.
    Match(SequenceNumber, Entry),
    /// There is none, or not before a read has come back.
    Nothing,
    /// The turn's budget is used up.
    Interrupted,
}

/// Where a search goes next.
enum Next {
    /// This one is looked at; its body is in memory.
    Evaluate(SequenceNumber, Entry),
    /// It cannot be read.
    PassOver(SequenceNumber),
    /// It is passed, and read again by itself later.
    Revisit(SequenceNumber),
    /// There is nothing before this number.
    Advance(SequenceNumber),
    Read(Ask),
    Wait,
    End,
}

impl SubqueueState {
    /// The next message of a selection.
    pub(super) fn search(
        &mut self,
        id: SelectionId,
        rows: &Rows,
        cx: &mut Context<'_>,
    ) -> SearchResult {
        loop {
            let next = self.next_of_search(id, rows, cx);
            let selection = self.selections.get_mut(id);
            match next {
                Next::PassOver(number) => selection.pass(number),
                Next::Advance(number) => selection.cursor = number,
                Next::Revisit(number) => {
                    selection.pass(number);
                    selection.available(number);
                }
                Next::Read(ask) => {
                    self.read_for_selections(ask, rows, cx);
                    return SearchResult::Nothing;
                }
                Next::Wait => {
                    // What a restart knows by number only comes before all else.
                    self.refill(rows, cx);
                    return SearchResult::Nothing;
                }
                Next::End => return SearchResult::Nothing,
                Next::Evaluate(number, entry) => match self.evaluate_next(id, number, &entry, cx) {
                    Some(true) => return SearchResult::Match(number, entry),
                    Some(false) => {}
                    None => return SearchResult::Interrupted,
                },
            }
        }
    }

    /// Judges a message, which is passed then. `None` if there is no more work to be done now.
    fn evaluate_next(
        &mut self,
        id: SelectionId,
        number: SequenceNumber,
        entry: &Entry,
        cx: &mut Context<'_>,
    ) -> Option<bool> {
        let is_past = self.is_past(number, &entry.row, cx.now.wall);
        let selections = &mut self.selections;
        if !cx.take_evaluation() {
            selections.grace = selections.grace.checked_sub(1)?;
        }
        let selection = selections.get_mut(id);
        let body = cx.shared.bodies.get(entry.body);
        let body = body.expect("it was found in memory in this step, during which bodies stay");
        selection.pass(number);
        // What is past its deadline is the sweep's to take away.
        if is_past {
            return Some(false);
        }
        let count = entry.delivery_count;
        let (is_selected, units) = evaluate(&selection.selector, number, &entry.row, count, body);
        cx.pay_evaluation(units);
        Some(is_selected)
    }

    fn next_of_search(&self, id: SelectionId, rows: &Rows, cx: &Context<'_>) -> Next {
        let selections = &self.selections;
        if self.window.has_stragglers() {
            return Next::Wait;
        }
        let selection = selections.get(id);
        if let Some(number) = selection.again.first() {
            return self.look_at_again(*number, selection, cx);
        }
        let (cursor, end) = (selection.cursor, rows.end());
        if cursor >= end {
            return Next::End;
        }
        if selections.page.covers(cursor) {
            return match selections.page.next(cursor) {
                Some(number) => self.look_at(number, cx),
                None => Next::Advance(selections.page.until()),
            };
        }
        let mut known = self.window.range(cursor..SequenceNumber::MAX);
        match known.next() {
            Some((number, _)) => self.look_at(number, cx),
            None if cursor < self.window.end().min(end) => {
                Next::Advance(self.window.end().min(end))
            }
            None if self.beyond(rows) == 0 => Next::Advance(end),
            None => Next::Read(Ask::From(cursor)),
        }
    }

    fn look_at_again(
        &self,
        number: SequenceNumber,
        selection: &Selection,
        cx: &Context<'_>,
    ) -> Next {
        let selections = &self.selections;
        if selections.page.is_unreadable(number) {
            return Next::PassOver(number);
        }
        if let Some(entry) = self.in_memory(number, cx) {
            return Next::Evaluate(number, entry);
        }
        let most = if selections.cautious > 0 { 1 } else { POINTS };
        Next::Read(Ask::Points(
            selection.again.iter().take(most).copied().collect(),
        ))
    }

    fn look_at(&self, number: SequenceNumber, cx: &Context<'_>) -> Next {
        let selections = &self.selections;
        if selections.page.is_unreadable(number) {
            return Next::PassOver(number);
        }
        match self.in_memory(number, cx) {
            Some(entry) => Next::Evaluate(number, entry),
            None if self.window.get(number).is_some() => {
                Next::Read(Ask::Points(self.in_window_from(number, cx)))
            }
            None if selections.cautious > 0 => Next::Revisit(number),
            None => Next::Read(Ask::From(number)),
        }
    }

    /// The next messages of the window whose bodies are not in memory. What has gone between them
    /// is not walked over.
    fn in_window_from(&self, from: SequenceNumber, cx: &Context<'_>) -> Vec<SequenceNumber> {
        let most = if self.selections.cautious > 0 {
            1
        } else {
            POINTS
        };
        let known = self.window.range(from..SequenceNumber::MAX).take(most);
        let unread = known.filter(|(_, entry)| !cx.shared.bodies.is_resident(entry.body));
        let mut bytes = 0_usize;
        let fitting = unread.take_while(|(_, entry)| {
            let fits = bytes < POINT_BYTES;
            bytes = bytes.saturating_add(entry.row.size as usize);
            fits
        });
        fitting.map(|(number, _)| number).collect()
    }

    /// An available message whose body is in memory.
    fn in_memory(&self, number: SequenceNumber, cx: &Context<'_>) -> Option<Entry> {
        let known = [self.window.get(number), self.selections.page.get(number)];
        let mut known = known.into_iter().flatten();
        known
            .find(|entry| cx.shared.bodies.is_resident(entry.body))
            .copied()
    }
}
