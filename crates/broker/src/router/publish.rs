//! Publish: a message goes to all queues and topics that a router's bindings tell.

use crate::api::id::RequestId;
use crate::api::output::Output;
use crate::api::publication::{Publication, PublishError};
use crate::context::Context;
use crate::entities::directory::Directory;

/// Routes a message, and answers.
pub(crate) fn publish(
    _directory: &mut Directory,
    request: RequestId,
    publication: Publication,
    cx: &mut Context<'_>,
) {
    let result = Err(PublishError::NotFound(publication.router));
    cx.emit(Output::Published { request, result });
}
