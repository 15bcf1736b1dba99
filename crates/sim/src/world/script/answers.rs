//! Answers: what the broker says to a scripted client, as the ledger is told of it.

use broker::{Output, RequestId};

use super::{Asked, Given, Script};
use crate::violation::Violation;

impl Script {
    pub(super) fn handle_outputs(&mut self) -> Result<(), Violation> {
        for output in std::mem::take(&mut self.world.script_outputs) {
            self.handle_output(output)?;
        }
        Ok(())
    }

    fn handle_output(&mut self, output: Output) -> Result<(), Violation> {
        match output {
            Output::Deliver { receiver, delivery } => {
                let ledger = self.ledger();
                let Some((entity, subqueue)) = ledger.source_of(receiver) else {
                    return Ok(());
                };
                let id = ledger.books.named(entity, delivery.message.number);
                if let Some(id) = id.filter(|_| delivery.lock_ms().is_some()) {
                    let token = delivery.token;
                    self.given.push(Given {
                        entity,
                        subqueue,
                        token,
                        id,
                    });
                }
                Ok(())
            }
            Output::Sent {
                request, result, ..
            } => match self.answer(request) {
                Some(Asked::Send(ids)) => {
                    let ledger = self.ledger();
                    ids.into_iter()
                        .try_for_each(|id| ledger.send_answered(id, result.is_ok()))
                }
                _ => Ok(()),
            },
            Output::Settled { request, result } => match self.answer(request) {
                Some(Asked::Settle(given, ask)) => {
                    let ledger = self.ledger();
                    ledger.answered(given.id, given.subqueue, ask, result.is_ok())
                }
                _ => Ok(()),
            },
            Output::Cancelled { request, result } => match self.answer(request) {
                Some(Asked::Cancel(queue, messages)) => {
                    let ledger = self.ledger();
                    ledger.cancel_answered(queue, &messages, result.is_ok())
                }
                _ => Ok(()),
            },
            Output::Declared { result, .. } => {
                self.transaction = result.ok();
                Ok(())
            }
            Output::Discharged { result, .. } => {
                let committed = result.is_ok() && !self.fails;
                self.discharged(committed)
            }
            _ => Ok(()),
        }
    }

    fn answer(&mut self, request: RequestId) -> Option<Asked> {
        // What is part of a transaction is answered for good with its end.
        if self.transaction.is_some() {
            return None;
        }
        let index = self.asked.iter().position(|(asked, _)| *asked == request)?;
        Some(self.asked.remove(index).1)
    }

    fn discharged(&mut self, done: bool) -> Result<(), Violation> {
        self.transaction = None;
        let asked = std::mem::take(&mut self.asked);
        let ledger = self.ledger();
        for (_, asked) in asked {
            match asked {
                Asked::Send(ids) => {
                    for id in ids {
                        ledger.send_answered(id, done)?;
                    }
                }
                Asked::Settle(given, ask) => {
                    ledger.answered(given.id, given.subqueue, ask, done)?;
                }
                Asked::Cancel(..) => {}
            }
        }
        Ok(())
    }
}
