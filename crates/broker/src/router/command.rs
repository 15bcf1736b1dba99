//! Orders about routers and bindings.

use store::NamespaceId;

use crate::api::router::{RouterAnswer, RouterError, RouterOrder};
use crate::context::Context;
use crate::entities::directory::Directory;

/// Carries an order out.
pub(crate) fn carry_out(
    _directory: &mut Directory,
    _namespace: NamespaceId,
    order: RouterOrder,
    _cx: &mut Context<'_>,
) -> Result<RouterAnswer, RouterError> {
    match order {
        RouterOrder::Declare { name, .. }
        | RouterOrder::Remove { name }
        | RouterOrder::Describe { name } => Err(RouterError::NotFound(name)),
        RouterOrder::Bind(binding) | RouterOrder::Unbind(binding) => {
            Err(RouterError::NotFound(binding.source))
        }
        RouterOrder::List { .. } | RouterOrder::ListBindings { .. } => Ok(RouterAnswer::Done),
    }
}
